"""Export and import memories as lines of JSON; chats are named by their WhatsApp addresses."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, Any
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from memories_app.models import Memory
from memories_app.store.import_memories import MemoryImport
from memories_app.store.transfer_record import AT_ONCE, Record, RecordError, read_record, records_of
from memoryproject.foundation.audit.audit_events import Actor, audit_record
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import (
    EXAMPLE,
    WhatsAppChatError,
    whatsapp_chat_normalise,
)
from memoryproject.foundation.redaction.redact import redact_data
from sessions_app.conversations.chat_addresses import chat_at_or_new
from sessions_app.conversations.chat_queries import chat_at
from sessions_app.conversations.epochs import ChatGoneError, chats_keep
from sessions_app.models import Chat

# Further errors are only counted, so that an invalid file can't exhaust the memory.
MAX_ERRORS = 1_000
_MAX_CHATS = 10_000
VECTORS_TELL = "Choose redaction or vectors: vectors tell what was said."
# A memory with vectors of several models is a tenth of this size.
MAX_LINE_BYTES = 8 * 1024 * 1024
# The beginning of Python's own message; the position follows it.
TOO_DEEP = "maximum recursion depth exceeded"


@dataclass
class ImportReport:
    """The result of an import. ``errors`` are [{line, detail}], lines counted from 1."""

    created: int = 0
    duplicates: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)
    errors_left_out: int = 0

    def refuse(self, line: int, detail: str) -> None:
        if len(self.errors) < MAX_ERRORS:
            self.errors.append({"line": line, "detail": detail})
        else:
            self.errors_left_out += 1

    def as_dict(self) -> dict[str, Any]:
        hidden = set() if self.errors_left_out else {"errors_left_out"}
        return {name: value for name, value in vars(self).items() if name not in hidden}


def lines_of(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines; of an overlong one only its start, which is refused as no JSON."""
    while line := file.readline(MAX_LINE_BYTES):
        rest = line
        while len(rest) == MAX_LINE_BYTES and not rest.endswith(b"\n"):
            rest = file.readline(MAX_LINE_BYTES)
        yield line


def memories_export(
    *, memories: QuerySet[Memory], actor: Actor, embeddings: bool = False, redacted: bool = False
) -> Iterator[str]:
    """Yield each memory as a line without a line feed.

    The export is audited before the first line; only a few memories are in memory at once.
    Redacted lines say so. They have no vectors, which tell what was said: ValueError for both.
    """
    if embeddings and redacted:
        raise ValueError(VECTORS_TELL)
    with transaction.atomic():
        more: dict[str, Any] = {"redacted": True} if redacted else {}
        audit_record(
            "export", actor, "memories", memories=memories.count(), embeddings=embeddings, **more
        )
    yield from memory_lines(memories, embeddings=embeddings, redacted=redacted)


def memory_lines(memories: QuerySet[Memory], *, embeddings: bool, redacted: bool) -> Iterator[str]:
    """Yield the lines of an export that is audited already."""
    marked = {"redacted": True} if redacted else {}
    for record in records_of(memories, chat_names=_chat_names, embeddings=embeddings):
        shown = {**marked, **redact_data(record)} if redacted else record
        yield json.dumps(shown, ensure_ascii=False)


def memories_import(
    *, lines: Iterable[bytes], embedder: Embedder | None, actor: Actor, obeys_switches: bool = False
) -> ImportReport:
    """Import lines that ``memories_export`` wrote.

    A memory whose id exists, or whose fact exists in its scope, is a duplicate. New chats are
    created. An invalid line is reported with its number, and the import continues. Blank lines
    count, and are ignored.

    embedder: makes the vectors that the lines lack; None: they get no vectors. ``obeys_switches``:
    lines of chats in which memory is off are refused.
    Raises EmbedderError and DatabaseError; earlier lines stay, and a retry is safe.
    """
    report = ImportReport()
    bring_in = MemoryImport(embedder=embedder, actor=actor, before_storing=_keep_chats)
    chats = _Chats(obeys_switches)
    part: list[tuple[bytes, Record]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            part.append((line, _read(line, chats)))
        except RecordError as error:
            report.refuse(number, str(error))
        if len(part) == AT_ONCE:
            _add(bring_in, part, chats, report)
            part = []
    _add(bring_in, part, chats, report)
    bring_in.finish()
    return report


def _keep_chats(part: Sequence[Record]) -> None:
    chats_keep({each.new.chat_id for each in part if each.new.chat_id})


def _add(
    bring_in: MemoryImport,
    part: Sequence[tuple[bytes, Record]],
    chats: "_Chats",
    report: ImportReport,
) -> None:
    if not part:
        return
    try:
        stored = bring_in.add([record for _line, record in part])
    except ChatGoneError:
        # As if these lines had come after the erasure.
        chats.forget()
        stored = bring_in.add([_read(line, chats) for line, _record in part])
    report.created += sum(stored)
    report.duplicates += len(stored) - sum(stored)


def _read(line: bytes, chats: "_Chats") -> Record:
    try:
        text = line.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
        record = json.loads(text, parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise RecordError(_("is not UTF-8")) from None
    except (ValueError, RecursionError) as error:
        raise RecordError(_("is not JSON: %(why)s") % {"why": _json_fault(error)}) from None
    if isinstance(record, dict) and record.get("redacted") is True:
        raise RecordError(_("was redacted when it was exported"))
    name = record.get("whatsapp_chat") if isinstance(record, dict) else None
    if name is None:
        return read_record(record, chat_id=None, now=timezone.now())
    known = chats.find(name)
    # A chat is created only for a valid line.
    read = read_record(record, chat_id=known or uuid4(), now=timezone.now())
    if known is None:
        read.new = replace(read.new, chat_id=chats.make(name))
    return read


def _refuse_constant(name: str) -> None:
    raise ValueError(_("%(name)s is no number of JSON") % {"name": name})


def _json_fault(error: ValueError | RecursionError) -> str:
    if isinstance(error, json.JSONDecodeError):
        text = _("%(what)s: line %(line)s column %(column)s (char %(place)s)")
        place = {"line": error.lineno, "column": error.colno, "place": error.pos}
        return text % {"what": _(error.msg), **place}
    if isinstance(error, RecursionError):
        where = str(error).removeprefix(TOO_DEEP)
        return _("maximum recursion depth exceeded%(where)s") % {"where": where}
    return str(error)


class _Chats:
    """Find and create chats, each address once."""

    def __init__(self, obeys_switches: bool) -> None:
        self._obeys_switches = obeys_switches
        self._known: dict[str, UUID] = {}

    def find(self, whatsapp_chat: Any) -> UUID | None:
        """Return the chat's id; None for a new chat. Raises RecordError for an invalid address."""
        if not isinstance(whatsapp_chat, str) or not whatsapp_chat.isprintable():
            raise _no_chat()
        if whatsapp_chat in self._known:
            return self._known[whatsapp_chat]
        chat = chat_at(whatsapp_chat)
        if chat is not None:
            if self._obeys_switches and chat.memory_enabled is False:
                raise RecordError(_("memory is off in its chat"))
            return self._keep(whatsapp_chat, chat)
        try:
            whatsapp_chat_normalise(whatsapp_chat)
        except WhatsAppChatError as error:
            raise _no_chat() from error
        return None

    def make(self, whatsapp_chat: str) -> UUID:
        with transaction.atomic():
            return self._keep(whatsapp_chat, chat_at_or_new(whatsapp_chat))

    def forget(self) -> None:
        self._known.clear()

    def _keep(self, whatsapp_chat: str, chat: Chat) -> UUID:
        if len(self._known) > _MAX_CHATS:
            self._known.clear()
        self._known[whatsapp_chat] = chat.pk
        return chat.pk


def _no_chat() -> RecordError:
    return RecordError("whatsapp_chat: " + _("is not a chat's address") + f" ({EXAMPLE})")


def _chat_names(ids: Collection[UUID]) -> Mapping[UUID, str]:
    return dict(Chat.objects.filter(pk__in=ids).values_list("pk", "whatsapp_chat"))
