"""Store what a reader found, or show what would be stored.

Messages go the way of old messages that a phone shares, memories the way of their import. So the
same file twice adds nothing, and what was forgotten here doesn't come back.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from itertools import islice
from typing import Any
from uuid import UUID, uuid5
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _, gettext_lazy

from memories_app.models import Visibility
from memories_app.store.retract import forgotten_among, keyed_hash
from memories_app.visibility import scope_of
from memoryproject.foundation.audit.audit_events import Actor, audit_record
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.integrations.lenient import fingerprint, storable
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import (
    WhatsAppChatError,
    whatsapp_chat_normalise,
)
from sessions_app import models
from sessions_app.conversations.chat_addresses import addresses_lock
from sessions_app.conversations.chat_queries import chat_at
from sessions_app.forgetting.facade import receipts_of
from sessions_app.inbound.facade import IntakeRules, old_thread_take
from sessions_app.media.fetch import MediaDependencies, media_fetch, media_row_create
from sessions_app.memories.transfer import memories_import
from sessions_app.models.messages import Role
from sessions_app.models.summaries import MediaState
from sessions_app.moving import records as moved
from sessions_app.moving.sources import FromSource, Source

AT_ONCE = 500
SHOWN, MAX_NOTES = 10, 1_000
FORGOTTEN = gettext_lazy("it was forgotten here")
_KEYS = UUID("0d0a6c0e-6a55-5a4e-9d2c-6f3b6f2f7a11")


@dataclass
class Report:
    """The result. ``notes`` are [{place, why, bad}]; further ones are only counted.

    ``chats``: by their ids, how many messages and memories the file has for each.
    """

    kind: str
    preview: bool
    refused: bool = False
    messages: int = 0
    memories: int = 0
    files: int = 0
    there: int = 0
    skipped: int = 0
    bad: int = 0
    chats: dict[str, Counter[str]] = field(default_factory=dict)
    first: list[dict[str, Any]] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)

    def tell(self, skipped: moved.Skipped) -> None:
        self.bad += skipped.is_bad
        self.skipped += not skipped.is_bad
        self.note(skipped.place, skipped.why, skipped.is_bad)

    def note(self, place: str, why: Any, is_bad: bool = False) -> None:
        if len(self.notes) < MAX_NOTES:
            self.notes.append({"place": moved.place_shown(place), "why": str(why), "bad": is_bad})

    def count(self, chat: str, what: str, shown: Mapping[str, Any]) -> None:
        self.chats.setdefault(chat, Counter())[what] += 1
        if len(self.first) < SHOWN:
            place = moved.place_shown(str(shown["place"]))
            self.first.append({"what": what, "chat": chat, **shown, "place": place})

    def as_dict(self) -> dict[str, Any]:
        chats = [{"whatsapp_chat": chat or None, **counts} for chat, counts in self.chats.items()]
        return {**vars(self), "chats": chats}


@dataclass
class MoveIn:
    """One run. ``read``: returns what the file holds, each time it is called.

    ``media``: where files of messages are kept; None: they aren't kept.
    """

    kind: str
    source: Source
    read: Callable[[], Iterator[moved.Found]]
    options: moved.Options
    rules: IntakeRules
    embedder: Embedder | None
    media: MediaDependencies | None
    actor: Actor
    now: datetime

    def run(self, *, preview: bool, all_or_nothing: bool = False) -> Report:
        """Store everything, or nothing for a preview.

        ``all_or_nothing``: also nothing if anything can't be read; the report is then ``refused``.
        Raises MoveError, EmbedderError and DatabaseError; what is in stays, and a retry is safe.
        """
        if all_or_nothing and not preview:
            before = self.run(preview=True)
            if before.bad:
                before.refused = True
                return before
        self.report = Report(self.kind, preview)
        self._seen: Counter[tuple[Any, ...]] = Counter()
        self._erased: dict[str, datetime] = {}
        with transaction.atomic() if preview else nullcontext():
            self._take()
            if preview:
                transaction.set_rollback(True)
        return self.report

    def _take(self) -> None:
        waiting: dict[str, list[moved.Said]] = {}
        has_memories = False
        for found in self.read():
            if isinstance(found, moved.Skipped):
                self.report.tell(found)
            elif isinstance(found, moved.Known):
                has_memories = True
            elif chat := self._chat(found.chat, found.place):
                some = waiting.setdefault(chat, [])
                some.append(found)
                shown = {"place": found.place, "from": found.sender, "text": found.text[:200]}
                ours = {"ours": found.is_ours, "at": found.at.isoformat()}
                self.report.count(chat, "messages", {**shown, **ours})
                if len(some) == AT_ONCE:
                    self._messages(chat, waiting.pop(chat))
        for chat, some in waiting.items():
            self._messages(chat, some)
        if has_memories:
            self._memories()
        counts = ("messages", "memories", "files", "bad")
        audit_record(
            "move.in",
            self.actor,
            "archive",
            kind=self.kind,
            **{name: getattr(self.report, name) for name in counts},
        )

    def _chat(self, chat: str, place: str) -> str:
        """Return the stored form of a chat's id, "" if it has none that can be used."""
        # A number is typed as people write it, or copied from a page, with marks of direction.
        typed = self.options.chat
        number = moved.number_named(typed) or moved.number_named(f"+{typed}")
        no_chat = _("%(chat)s is no number with its country code, and no id of a chat.")
        try:
            if typed.lstrip("+").isdecimal() and not number:
                raise WhatsAppChatError
            return whatsapp_chat_normalise(number or typed or chat)
        except WhatsAppChatError as error:
            if typed:
                raise moved.MoveError(no_chat, "chat", chat=typed) from error
            unknown = _("it doesn't tell whose it is: choose a chat")
            why = no_chat % {"chat": chat} if chat else unknown
            self.report.tell(moved.Skipped(place, why, is_bad=True))
            return ""

    def _erased_until(self, chat: str) -> datetime:
        """Return when the person of a chat was erased: what was said before stays erased."""
        if chat and chat not in self._erased:
            rows = receipts_of(
                models.ForgetReceipt.objects.filter(kind=models.ForgottenKind.CHAT), chat
            )
            last = rows.aggregate(last=Max("forgotten_at"))["last"]
            self._erased[chat] = last or moved.EARLIEST
        return self._erased.get(chat, moved.EARLIEST)

    # Messages.

    def _messages(self, chat: str, some: Sequence[moved.Said]) -> None:
        names = [one.sender for one in some if not one.is_ours]
        keyed = {self._key(chat, one): one for one in some}
        with transaction.atomic():
            # Two runs at once take their turns.
            addresses_lock([chat])
            fresh = self._fresh(chat, keyed)
            person = next((name for name in names if name and not name.startswith("+")), "")
            events = [moved.old_message(key, chat, keyed[key], self.kind, person) for key in fresh]
            stored = old_thread_take(events, self.rules, self.now) if events else []
        if stored is None:
            why = _("memory is off in its chat, or the person has stopped us")
            for key in fresh:
                self.report.tell(moved.Skipped(keyed[key].place, why))
            return
        self.report.messages += len(stored)
        self._files({key: one for key, one in keyed.items() if one.media})

    def _key(self, chat: str, one: moved.Said) -> str:
        """Return the id under which a message is stored, the same for each run."""
        at = one.at
        if self.kind == moved.WHATSAPP:
            # As the file shows it: it is the same message where another zone was set before.
            at = at.astimezone(ZoneInfo(settings.BUSINESS_TIME_ZONE)).replace(tzinfo=timezone.utc)
        what = [one.key] if one.key else [at.isoformat(), one.sender, one.text, one.media]
        number, same = 0, (chat, *what)
        if not one.key:
            self._seen[same] += 1
            number = self._seen[same]
        return f"import:{self.kind}:{fingerprint({'of': [chat, one.is_ours, number, *what]})}"

    def _fresh(self, chat: str, keyed: Mapping[str, moved.Said]) -> list[str]:
        """Return the keys of the messages that are neither stored here nor forgotten."""
        known = models.InboundDelivery.objects.filter(
            provider=moved.CONSOLE, delivery_key__in=list(keyed)
        )
        delivered = {row.delivery_key: row.message for row in known.select_related("message")}
        of_chat = chat_at(chat)
        stored = _stored(of_chat, list(keyed.values())) if of_chat else Counter()
        texts = [one.text for one in keyed.values()]
        gone = _forgotten(of_chat, str(Visibility.CHAT), texts) if of_chat else set()
        until = self._erased_until(chat)
        fresh = []
        for key, one in keyed.items():
            self._seen[_alike(chat, one)] += 1
            is_gone = one.text in gone or one.at <= until
            there = delivered.get(key)
            if is_gone or (key in delivered and there is None):
                self.report.tell(moved.Skipped(one.place, FORGOTTEN))
            elif there or self._seen[_alike(chat, one)] <= stored[_alike("", one)]:
                self.report.there += 1
                if there and self.kind == moved.WHATSAPP and there.timestamp != one.at:
                    models.Message.objects.filter(pk=there.pk).update(timestamp=one.at)
            else:
                fresh.append(key)
        return fresh

    def _files(self, keyed: Mapping[str, moved.Said]) -> None:
        """Keep the files of messages that have none yet; a preview only counts them."""
        lacking = models.Message.objects.filter(
            provider=moved.CONSOLE, provider_message_id__in=list(keyed)
        )
        # What an interrupted run left to a worker, who can't have it.
        models.MediaFile.objects.filter(message__in=lacking, state=MediaState.FAILED).delete()
        for message in lacking.filter(media_file__isnull=True):
            one = keyed[message.provider_message_id or ""]
            row = media_row_create(message) if self.media else None
            if row is None or self.media is None:
                self.report.tell(moved.Skipped(one.place, _("files of messages aren't kept here")))
                continue
            if self.report.preview:
                self.report.files += 1
                continue
            provider = {moved.CONSOLE: FromSource(self.source, one.media)}
            kept = replace(self.media, providers=provider)
            state = media_fetch(media_id=row.pk, dependencies=kept)
            if state == "stored":
                self.report.files += 1
            else:
                row.refresh_from_db()
                why = _("its file isn't kept: %(why)s") % {"why": row.error_code or state}
                self.report.tell(moved.Skipped(one.place, why))

    # Memories.

    def _memories(self) -> None:
        places: list[str] = []
        embedder = None if self.report.preview else self.embedder
        lines = self._memory_lines(places)
        result = memories_import(lines=lines, embedder=embedder, actor=self.actor)
        self.report.memories += result.created
        self.report.there += result.duplicates
        for error in result.errors:
            self.report.tell(moved.Skipped(places[error["line"] - 1], error["detail"], is_bad=True))
        self.report.bad += result.errors_left_out

    def _memory_lines(self, places: list[str]) -> Iterator[bytes]:
        """Yield the lines of the memories that come in; add their places."""
        known = (found for found in self.read() if isinstance(found, moved.Known))
        while some := list(islice(known, AT_ONCE)):
            records = [(one.place, record) for one in some if (record := self._record(one))]
            texts: dict[tuple[str, str], list[str]] = {}
            for _place, record in records:
                texts.setdefault(_scope(record), []).append(str(record["content"]))
            chats = {chat: chat_at(chat) for chat, _visibility in texts if chat}
            gone = {of: _forgotten(chats.get(of[0]), of[1], texts[of]) for of in texts}
            for place, record in records:
                scope = chat, _visibility = _scope(record)
                of_chat, at = chats.get(chat), moved.moment(record.get("created_at")) or self.now
                if of_chat is not None and of_chat.memory_enabled is False:
                    self.report.tell(moved.Skipped(place, _("memory is off in its chat")))
                elif at <= self._erased_until(chat) or str(record["content"]) in gone[scope]:
                    self.report.tell(moved.Skipped(place, FORGOTTEN))
                else:
                    places.append(place)
                    yield json.dumps(record).encode()

    def _record(self, one: moved.Known) -> dict[str, Any]:
        """Return the record of a memory; an empty one if it can't be told whose it is."""
        record: dict[str, Any] = {"content": None, **storable(one.record)}
        content, chat = str(record["content"]), str(record.get("whatsapp_chat") or "")
        is_ours = self.kind == moved.ARCHIVE
        if chat or not is_ours:
            chat = self.options.chat or chat
        if chat and not (chat := self._chat(chat, one.place)):
            return {}
        if chat:
            record["whatsapp_chat"] = chat
        if not is_ours:
            record["memory_id"] = str(uuid5(_KEYS, f"{self.kind}\0{chat}\0{one.key or content}"))
            record.setdefault("source", "import")
        self.report.count(chat, "memories", {"place": one.place, "text": content[:200]})
        if one.unread:
            why = _("it comes in without a time of its own: %(time)s is none that can be read")
            self.report.note(one.place, why % {"time": ", ".join(one.unread)})
        return record


def _scope(record: Mapping[str, Any]) -> tuple[str, str]:
    """Return the chat and the visibility that a memory will have."""
    chat = str(record.get("whatsapp_chat") or "")
    return chat, str(record.get("visibility") or (Visibility.CHAT if chat else Visibility.OWNER))


def _forgotten(of_chat: models.Chat | None, visibility: str, texts: Sequence[str]) -> set[str]:
    """Return those of the texts that were forgotten: as memories so visible, or in the chat."""
    scope = scope_of(visibility, of_chat.pk if of_chat else None)
    found = forgotten_among(texts=texts, scope=scope)
    if of_chat is None:
        return found
    hashes = {keyed_hash(text, purpose="receipt"): text for text in texts if text}
    receipts = models.ForgetReceipt.objects.filter(
        kind=models.ForgottenKind.MESSAGE, chat_id=of_chat.pk, content_hash__in=list(hashes)
    )
    return found | {hashes[each] for each in receipts.values_list("content_hash", flat=True)}


def _alike(chat: str, one: moved.Said) -> tuple[Any, ...]:
    """Return what a message shares with its copy that came another way: phones show minutes."""
    return chat, one.is_ours, one.text.strip(), one.at.replace(second=0, microsecond=0)


def _stored(chat: models.Chat, some: Sequence[moved.Said]) -> Counter[tuple[Any, ...]]:
    times = [one.at for one in some]
    minute = timedelta(minutes=1)
    rows = chat.messages.filter(
        timestamp__gte=min(times) - minute,
        timestamp__lte=max(times) + minute,
        role__in=(Role.USER, Role.ASSISTANT),
    )
    return Counter(
        ("", role == Role.ASSISTANT, text.strip(), at.replace(second=0, microsecond=0))
        for role, text, at in rows.values_list("role", "content", "timestamp")
    )
