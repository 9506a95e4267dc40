"""Redact what is kept of erased texts besides the answers.

In their chats these are messages of the assistant that no turn made, quotations, notes and raw
deliveries. They have no record of their source: those that quote a text which was said or shown in
their chat before are taken to have it from there. People's own messages stay. What belongs to no
chat stands in the queue, the admin's log, logins, and stored responses.
"""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib.admin.models import LogEntry
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db.models import Q, QuerySet
from django.utils import timezone
from django_q.models import OrmQ, Task

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.leases import RELEASED
from memoryproject.foundation.rest_kit.models import IdempotentAnswer
from memoryproject.foundation.retrieval.fragments import MARK, Fragments
from sessions_app import models
from sessions_app.conversations.preview_recorder import ChangeKind
from sessions_app.forgetting.redact_answers import AnswerRedaction, command_redact
from sessions_app.forgetting.sweep import ROWS_AT_ONCE, Lineage, Sweep, Trace
from sessions_app.models.jobs import OPEN_STATES


def chats_redact(sweep: Sweep, lineage: Lineage) -> tuple[list[AnswerRedaction], set[UUID]]:
    """Redact everything that the chats of the plan derived from the erased texts.

    Returns the redactions of the answers of each chat, and the chats that quoted the texts.
    """
    redactions, quoting = [], set()
    for chat_id in sorted(sweep.plan.chats):
        redactions.append(AnswerRedaction(sweep, lineage, chat_id))
        redactions[-1].redact()
        for kept in kept_texts(sweep, chat_id):
            kept.remove()
            quoting.add(chat_id)
    return redactions, quoting


def own_command_redact(sweep: Sweep) -> None:
    """Redact the command that asks for the forgetting, because it names the text."""
    if not sweep.keep_turn:
        return
    commands = models.Message.objects.filter(turn__pk=sweep.keep_turn, metadata__has_key="command")
    for message in commands.select_related("chat", "session"):
        command_redact(sweep, message)


def kept_texts(sweep: Sweep, chat_id: UUID) -> Iterator[Trace]:
    """Yield the quotations in a chat of what was said or shown there."""
    found, since = Fragments(sweep.plan.texts_by_chat[chat_id]), sweep.plan.since
    if not found or since is None:
        return
    messages = models.Message.objects.filter(chat=chat_id, received_at__gte=since)
    own = _without_turn(messages).order_by("pk").values_list("pk", "content")
    for key, content in own.iterator(ROWS_AT_ONCE):
        left = found.quotes_cut(content)
        if left != content:
            message = models.Message.objects.select_related("chat", "session").get(pk=key)
            change = partial(sweep.retext, message, ChangeKind.ANSWER, left)
            yield Trace(models.Message, key, change)
    for message in messages.filter(metadata__has_key="quoted").only("metadata"):
        quoted = message.metadata["quoted"]
        if found.cleaned(quoted) != quoted:
            yield Trace(models.Message, message.pk, partial(sweep.remove_quote, message))
    # Staff write them with the conversation before their eyes, in their own words, too.
    for note in models.Note.objects.filter(chat=chat_id, created_at__gte=since).only("text"):
        left, removed = found.cut(note.text)
        if removed:
            yield Trace(models.Note, note.pk, partial(_redact_note, sweep, note, left))
    for key in _holding(models.InboundDelivery.objects.filter(chat=chat_id), found, since):
        rows = models.InboundDelivery.objects.filter(pk=key)
        yield Trace(models.InboundDelivery, key, partial(sweep.empty_deliveries, rows))


def _without_turn(messages: QuerySet[models.Message]) -> QuerySet[models.Message]:
    """Return the assistant's messages that no turn made: imported, by staff, from the phone."""
    by_hand = Q(replied_turn=None) | Q(replied_turn__by_hand=True)
    return messages.filter(by_hand, role=models.Role.ASSISTANT)


def _redact_note(sweep: Sweep, note: models.Note, left: str) -> None:
    sweep.recorder.record(ChangeKind.NOTE, note.pk, note.text, left=left)
    models.Note.objects.filter(pk=note.pk).update(text=left)
    sweep.count_once(models.Note, note.pk)


def _holding(
    deliveries: QuerySet[models.InboundDelivery], found: Fragments, since: datetime
) -> Iterator[int]:
    """Yield the deliveries that hold the texts, except those of messages that say it themselves."""
    delivered = deliveries.filter(received_at__gte=since).filter(
        Q(raw__isnull=False) | Q(change__isnull=False)
    )
    rows = delivered.select_related("message").only("raw", "change", "message__content")
    for delivery in rows.iterator(ROWS_AT_ONCE):
        values = [delivery.raw, delivery.change]
        own = delivery.message.content if delivery.message is not None else ""
        if found.cleaned(values) != values and not found.are_in(own):
            yield delivery.pk


# What belongs to no chat.


# A shorter name or number occurs in too many unrelated texts.
MIN_NAME_LENGTH = 4

# The marks of a memory card in a stored response, as JSON and as YAML.
OF_CARDS = ('"algorithm_version"', "# Algorithm: ")

_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)


def unscoped_redact(sweep: Sweep) -> int | None:
    """Redact the texts in records that belong to no chat. Call it after ``unscoped_begin``.

    Returns the number of rows that were read if nothing was found in them, otherwise None.
    """
    for provider, subject in sorted(sweep.deleted_messages):
        about = models.InboundDelivery.objects.filter(provider=provider, subject_id=subject)
        sweep.empty_deliveries(about)
    # The response of a call in progress isn't known yet.
    answers = IdempotentAnswer.objects.filter(withheld=False, status__isnull=True)
    answers.update(withheld=True)
    _jobs_empty()
    traces, removed = UnscopedTraces(sweep), 0
    for trace in traces.find():
        trace.remove()
        sweep.count(trace.model, 1)
        removed += 1
    return None if removed else traces.read


def _jobs_empty() -> None:
    """Empty results of jobs. An export that holds, or will hold, what goes has to be made again."""
    exports = models.Job.objects.filter(kind=models.JobKind.EXPORT)
    exports = exports.filter(parts__isnull=False) | exports.filter(state__in=OPEN_STATES)
    keys = list(exports.order_by().values_list("pk", flat=True).distinct())
    failed = {**RELEASED, "state": models.JobState.FAILED, "error": ErrorText("job_forgotten")}
    models.Job.objects.filter(pk__in=keys).update(**failed, finished_at=timezone.now())
    # After the job: its worker stores no further part.
    models.JobPart.objects.filter(job__in=keys).delete()
    imports = models.Job.objects.filter(kind=models.JobKind.IMPORT).exclude(state__in=OPEN_STATES)
    imports.filter(result__errors__isnull=False).update(result=None)


class UnscopedTraces:
    """Find the traces in records that belong to no chat, once for the sweep and once for the probe.

    ``read`` counts the rows that were read.
    """

    def __init__(self, sweep: Sweep) -> None:
        self.read = 0
        self._texts = sweep.texts
        self._since = sweep.plan.since or sweep.now
        # Also the answers that were rewritten: a stored response may hold their old text.
        self._ids = {_bare(key) for key in sweep.ids | sweep.rewritten}
        self._erased = {_bare(key) for key in sweep.plan.erased}
        self._names = sorted(name for name in sweep.plan.names if len(name) >= MIN_NAME_LENGTH)
        self._card_sessions = set(sweep.card_sessions)

    def find(self) -> Iterator[Trace]:
        """Yield the traces of all tables."""
        yield from self._tasks()
        yield from self._admin_log()
        yield from self._logins()
        yield from self._api_answers()
        yield from self._deliveries_without_chat()
        yield from self._questions()

    def _tasks(self) -> Iterator[Trace]:
        """Yield finished tasks, and tasks that wait in the queue."""
        fields = ("id", "name", "args", "kwargs", "result", "started")
        tasks = Task.objects.only(*fields)
        if not self._erased and not self._names:
            # An older one can't quote the texts.
            tasks = tasks.filter(started__gte=self._since)
        for task in tasks.iterator(ROWS_AT_ONCE):
            self.read += 1
            values = [task.args, task.kwargs, task.result]
            quotes = task.started >= self._since and self._quotes(values)
            if quotes or self._is_about([task.name, *values]):
                yield Trace(Task, task.pk, task.delete)
        for queued in OrmQ.objects.iterator(ROWS_AT_ONCE):
            self.read += 1
            if self._quotes(queued.task) or self._is_about(queued.task):
                yield Trace(OrmQ, queued.pk, queued.delete)

    def _admin_log(self) -> Iterator[Trace]:
        """Yield the admin's entries about what was erased; another object's own words stay."""
        entries = LogEntry.objects.only("object_id", "object_repr", "change_message", "action_time")
        for entry in entries.iterator(ROWS_AT_ONCE):
            self.read += 1
            texts = [entry.object_repr, entry.change_message]
            key = entry.object_id or ""
            is_younger = entry.action_time >= self._since
            quotes = is_younger and not _UUID.fullmatch(key) and self._quotes(texts)
            if _bare(key) in self._ids or quotes or self._is_about([key, *texts]):
                row = LogEntry.objects.filter(pk=entry.pk)
                if entry.object_repr != MARK:
                    change = partial(row.update, object_repr=MARK, change_message="")
                    yield Trace(LogEntry, entry.pk, change)

    def _logins(self) -> Iterator[Trace]:
        """Yield logins with notices of the admin ("… was changed") that wait to be shown."""
        for session in Session.objects.iterator():
            self.read += 1
            data = session.get_decoded()
            notices = data.get("_messages")
            if notices is not None and (self._quotes(notices) or self._is_about(notices)):
                del data["_messages"]
                session.session_data = SessionStore().encode(data)
                save = partial(session.save, update_fields=["session_data"])
                yield Trace(Session, session.pk, save)

    def _api_answers(self) -> Iterator[Trace]:
        """Yield responses that are stored for repeated calls."""
        rows = IdempotentAnswer.objects.filter(withheld=False).exclude(body="")
        for row in rows.only("body", "headers", "created_at").iterator(ROWS_AT_ONCE):
            self.read += 1
            if is_receipt(row.body):
                continue
            text = f"{row.body} {row.headers}"
            is_named = any(_bare(key) in self._ids for key in _UUID.findall(text))
            quotes = row.created_at >= self._since and self._quotes(_without_id(row.body))
            if is_named or quotes or self._is_about(text) or self._is_card(row.body):
                changed = IdempotentAnswer.objects.filter(pk=row.pk)
                empty = partial(changed.update, body="", headers={}, withheld=True)
                yield Trace(IdempotentAnswer, row.pk, empty)

    def _questions(self) -> Iterator[Trace]:
        """Yield questions of the set that expect what was erased, or that quote it."""
        for row in models.CheckQuestion.objects.iterator(ROWS_AT_ONCE):
            self.read += 1
            texts = [row.text, row.expected]
            quotes = row.created_at >= self._since and self._quotes(texts)
            if quotes or _bare(str(row.memory_id)) in self._ids or self._is_about(texts):
                yield Trace(models.CheckQuestion, row.pk, row.delete)

    def _deliveries_without_chat(self) -> Iterator[Trace]:
        """Yield deliveries that matched no chat, and quote a text or name the person.

        These are statuses, deliveries that couldn't be processed, and changes whose message never
        arrived.
        """
        rows = models.InboundDelivery.objects.filter(
            chat__isnull=True, message__isnull=True
        ).filter(Q(raw__isnull=False) | Q(change__isnull=False))
        for row in rows.only("raw", "change", "received_at").iterator(ROWS_AT_ONCE):
            self.read += 1
            values = [row.raw, row.change]
            quotes = row.received_at >= self._since and self._quotes(values)
            if quotes or self._names_person(values):
                changed = models.InboundDelivery.objects.filter(pk=row.pk)
                yield Trace(
                    models.InboundDelivery, row.pk, partial(changed.update, raw=None, change=None)
                )

    def _quotes(self, value: Any) -> bool:
        if not self._texts:
            return False
        plain = json.loads(json.dumps(value, default=str, ensure_ascii=False))
        return bool(self._texts.cleaned(plain) != plain)

    def _is_about(self, value: Any) -> bool:
        """Return whether the value names an erased session or chat, or the person."""
        if not self._erased and not self._names:
            return False
        text = json.dumps(value, default=str, ensure_ascii=False)
        if any(_bare(key) in self._erased for key in _UUID.findall(text)):
            return True
        return self._names_person(value)

    def _names_person(self, value: Any) -> bool:
        if not self._names:
            return False
        text = json.dumps(value, default=str, ensure_ascii=False).casefold()
        return any(name.casefold() in text for name in self._names)

    def _is_card(self, body: str) -> bool:
        """Return whether the body is the card of a session whose messages change.

        Such a card may hold single words of the messages that don't match by themselves.
        """
        if not any(mark in body for mark in OF_CARDS):
            return False
        return any(session_id in body for session_id in self._card_sessions)


def _without_id(body: str) -> Any:
    """Return the parts of a response that state no id of their own, which would tell what they are.

    A message, memory or answer in it is judged by its id: others may have said the same.
    """

    def strays(value: Any) -> Any:
        if isinstance(value, dict):
            own = any(key in value for key in ("message_id", "memory_id", "turn_id"))
            return [
                strays(part) for part in value.values() if not own or isinstance(part, list | dict)
            ]
        return [strays(part) for part in value] if isinstance(value, list) else value

    return strays(_parse_body(body))


def is_receipt(body: str) -> bool:
    """Return whether a stored response is a receipt, which holds nothing that was forgotten."""
    found = _parse_body(body) if body.startswith('{"receipt_id"') else None
    # A receipt of an earlier version has fewer fields.
    return isinstance(found, dict) and {"swept", "probe"} <= set(found) <= set(
        models.ForgetReceipt().as_dict()
    )


def _bare(key: str) -> str:
    return key.replace("-", "").lower()


def _parse_body(body: str) -> Any:
    """Return a response's document, or the body itself if it isn't a document."""
    try:
        return json.loads(body)
    except ValueError:
        return body
