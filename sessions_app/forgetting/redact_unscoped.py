"""Takes what is forgotten out of what belongs to no chat: the queue, the admin's log, logins,
answers of the API, and deliveries that found no chat."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection
from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db.models import Model, Q, TextField
from django.db.models.functions import Cast
from django_q.models import OrmQ, Task

from memoryproject.foundation.rest_kit.models import IdempotentAnswer
from memoryproject.foundation.text.fragments import MARK, Fragments
from sessions_app.models import InboundDelivery

ROWS_AT_ONCE = 200
# A shorter name or number stands in too much that is about something else.
MIN_NAME_LENGTH = 4

# How cards are told from other answers, as JSON and as YAML.
OF_CARDS = ('"algorithm_version"', "# Algorithm: ")

_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)


class RestSweep:
    """``texts`` is what is looked for; ``ids`` are the objects that go, ``erased`` those of them
    that are whole sessions and chats with what is in them; ``names`` are the person's."""

    def __init__(
        self,
        *,
        texts: Fragments,
        ids: Collection[str],
        erased: Collection[str],
        names: Collection[str],
        carded: Collection[str],
    ) -> None:
        self.swept: Counter[str] = Counter()
        self._texts = texts
        self._ids = set(ids)
        self._erased = {_bare(key) for key in erased}
        self._names = sorted(name for name in names if len(name) >= MIN_NAME_LENGTH)
        self._carded = set(carded)

    def sweep(self) -> None:
        """Everywhere."""
        self._tasks()
        self._admin_log()
        self._logins()
        self._api_answers()
        self._deliveries_of_nobody()

    def _tasks(self) -> None:
        """Results and errors of finished work, and what waits in the queue."""
        fields = ("id", "name", "args", "kwargs", "result")
        for task in Task.objects.only(*fields).iterator(ROWS_AT_ONCE):
            told = [task.args, task.kwargs, task.result]
            if self._tells(told) or self._is_about([task.name, *told]):
                Task.objects.filter(pk=task.pk).delete()
                self._count(Task)
        for queued in OrmQ.objects.iterator(ROWS_AT_ONCE):
            if self._tells(queued.task) or self._is_about(queued.task):
                queued.delete()
                self._count(OrmQ)

    def _admin_log(self) -> None:
        entries = LogEntry.objects.only("object_id", "object_repr", "change_message")
        for entry in entries.iterator():
            told = [entry.object_repr, entry.change_message]
            about = entry.object_id in self._ids or self._is_about([entry.object_id, *told])
            if about or self._tells(told):
                LogEntry.objects.filter(pk=entry.pk).update(object_repr=MARK, change_message="")
                self._count(LogEntry)

    def _logins(self) -> None:
        """The admin's notices ("… was changed") may wait in a session to be shown."""
        for session in Session.objects.iterator():
            data = session.get_decoded()
            notices = data.get("_messages")
            if notices is not None and (self._tells(notices) or self._is_about(notices)):
                del data["_messages"]
                session.session_data = SessionStore().encode(data)
                session.save(update_fields=["session_data"])
                self._count(Session)

    def _api_answers(self) -> None:
        """Answers that are kept for calls that come twice. Of a call in progress nobody knows
        yet what it will answer."""
        rows = IdempotentAnswer.objects.filter(withheld=False)
        rows.filter(status__isnull=True).update(withheld=True)
        for row in rows.exclude(body="").only("body", "headers").iterator(ROWS_AT_ONCE):
            about = self._is_about([row.body, row.headers]) or self._is_card(row.body)
            if about or self._tells(_told(row.body)):
                IdempotentAnswer.objects.filter(pk=row.pk).update(
                    body="", headers={}, withheld=True
                )
                self._count(IdempotentAnswer)

    def _deliveries_of_nobody(self) -> None:
        """What a provider delivered of the person and nobody could assign to a chat: statuses,
        what could not be processed, changes whose message never came."""
        if not self._names:
            return
        nobodys = InboundDelivery.objects.filter(chat__isnull=True).filter(
            Q(raw__isnull=False) | Q(change__isnull=False)
        )
        held = Q()
        for name in self._names:
            held |= Q(raw_text__icontains=name) | Q(change_text__icontains=name)
        texts = {"raw_text": Cast("raw", TextField()), "change_text": Cast("change", TextField())}
        rows = nobodys.annotate(**texts).filter(held).values_list("pk", flat=True)
        emptied = InboundDelivery.objects.filter(pk__in=list(rows)).update(raw=None, change=None)
        self._count(InboundDelivery, emptied)

    def _tells(self, value: Any) -> bool:
        plain = json.loads(json.dumps(value, default=str, ensure_ascii=False))
        return bool(self._texts.cleaned(plain) != plain)

    def _is_about(self, value: Any) -> bool:
        """Whether it names a session or a chat that is erased, or the person."""
        if not self._erased and not self._names:
            return False
        text = json.dumps(value, default=str, ensure_ascii=False)
        if any(_bare(key) in self._erased for key in _UUID.findall(text)):
            return True
        folded = text.casefold()
        return any(name.casefold() in folded for name in self._names)

    def _is_card(self, body: str) -> bool:
        """Whether it is the card of a session whose messages change: single words of them may
        stand in it, which tell nothing by themselves."""
        if not any(mark in body for mark in OF_CARDS):
            return False
        return any(session_id in body for session_id in self._carded)

    def _count(self, model: type[Model], rows: int = 1) -> None:
        if rows:
            self.swept[model._meta.db_table] += rows


def _bare(key: str) -> str:
    return key.replace("-", "").lower()


def _told(body: str) -> Any:
    """An answer's document; the body itself where it is none."""
    try:
        return json.loads(body)
    except ValueError:
        return body
