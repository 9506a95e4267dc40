"""The archive: a Zip of lines of JSON with chats, messages, memories and files, out and in again.

``docs/moving.md`` describes its fields; the archive's own README tells them, too.
"""

import json
import logging
import shutil
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from memories_app.visibility import memories_for_staff
from memoryproject.foundation.audit.audit_events import Actor, audit_record
from memoryproject.foundation.integrations.lenient import Fields, compact
from memoryproject.foundation.integrations.media_storage.base import MediaStorage
from memoryproject.foundation.redaction.redact import redact_data
from memoryproject.foundation.text.uuids import iso_utc
from sessions_app.media.fetch import media_name
from sessions_app.memories.transfer import memories_export
from sessions_app.models import Chat, MediaFile, Message
from sessions_app.models.messages import AUTHOR, Role
from sessions_app.models.summaries import MediaState
from sessions_app.moving.records import Found, Known, MoveError, Options, Skipped, moment, said
from sessions_app.moving.sources import Source

logger = logging.getLogger(__name__)

FORMAT, VERSION = "memory-archive", 1
MANIFEST, CHATS, MESSAGES, MEMORIES = (
    "manifest.json",
    "chats.ndjson",
    "messages.ndjson",
    "memories.ndjson",
)
ROWS_AT_ONCE = 500
README = Path(__file__).with_name("archive_readme.txt").read_text(encoding="utf-8")


def archive_write(
    out: IO[bytes],
    *,
    chat: Chat | None,
    actor: Actor,
    storage: MediaStorage | None,
    redacted: bool = False,
) -> dict[str, int]:
    """Write the archive, of one chat or of all; return its counts.

    ``storage``: the files of messages are put in, too. Redacted, it has none of them. The export
    is audited first. Raises OSError.
    """
    chats = Chat.objects.filter(pk=chat.pk) if chat else Chat.objects.all()
    memories = memories_for_staff()
    messages = Message.objects.filter(chat__in=chats)
    if chat is not None:
        memories = memories.filter(chat_id=chat.pk)
    with transaction.atomic():
        more: dict[str, Any] = {"redacted": True} if redacted else {}
        audit_record(
            "export",
            actor,
            "chat" if chat else "archive",
            chat.pk if chat else "",
            messages=messages.count(),
            everything=True,
            media=storage is not None,
            **more,
        )
    counts: dict[str, int] = {}
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README.md", README)
        counts["chats"] = _write(archive, CHATS, map(_chat_line, chats.iterator()), redacted)
        counts["messages"] = _write(archive, MESSAGES, _message_lines(messages, storage), redacted)
        lines = memories_export(memories=memories, actor=actor, redacted=redacted)
        counts["memories"] = _write(archive, MEMORIES, map(json.loads, lines), False)
        counts["files"] = 0
        if storage is not None and not redacted:
            counts["files"] = _media_write(archive, messages, storage)
        about = {"format": FORMAT, "version": VERSION, "exported_at": iso_utc(timezone.now())}
        manifest = {**about, "redacted": redacted, **counts}
        archive.writestr(MANIFEST, json.dumps(manifest, indent=1))
    return counts


def _write(
    archive: zipfile.ZipFile, name: str, lines: Iterable[dict[str, Any]], redacted: bool
) -> int:
    number = 0
    with archive.open(name, "w", force_zip64=True) as file:
        for line in lines:
            shown = redact_data(line) if redacted else line
            file.write(json.dumps(shown, ensure_ascii=False).encode() + b"\n")
            number += 1
    return number


def _chat_line(chat: Chat) -> dict[str, Any]:
    name = chat.staff_name or chat.client_name
    return {
        "whatsapp_chat": chat.whatsapp_chat,
        "name": name,
        "is_group": chat.is_group,
        "created_at": iso_utc(chat.created_at),
    }


def _message_lines(messages: Any, storage: MediaStorage | None) -> Iterator[dict[str, Any]]:
    related = messages.select_related("chat", "media_file").defer("terms")
    in_order = related.order_by("chat_id", "session__created_at", "session_id", "order_num")
    for row in in_order.iterator(ROWS_AT_ONCE):
        kept: MediaFile | None = getattr(row, "media_file", None)
        media = {"filename": row.media.get("filename", "")}
        if kept is not None and kept.state == MediaState.STORED:
            media |= {"content_type": kept.content_type, "sha256": kept.sha256}
            media |= {"file": f"media/{media_name(kept.pk)}"} if storage else {}
        metadata = {key: value for key, value in row.metadata.items() if key != AUTHOR}
        yield {
            "message_id": str(row.pk),
            "whatsapp_chat": row.chat.whatsapp_chat,
            "session_id": str(row.session_id),
            "order_num": row.order_num,
            "role": row.role,
            "kind": row.kind,
            "content": row.content,
            "sender": row.sender,
            "timestamp": iso_utc(row.timestamp),
            "metadata": metadata,
            "media": compact(**media),
        }


def _media_write(archive: zipfile.ZipFile, messages: Any, storage: MediaStorage) -> int:
    number = 0
    rows = MediaFile.objects.filter(message__in=messages, state=MediaState.STORED)
    for key in rows.values_list("pk", flat=True).iterator():
        name = media_name(key)
        try:
            with storage.open(name) as file, archive.open(f"media/{name}", "w") as into:
                shutil.copyfileobj(file, into)
            number += 1
        except FileNotFoundError:
            # It was forgotten, or its time was over, since the list was read.
            logger.warning("A file of a message is gone: it isn't in the archive.")
    return number


def is_archive(source: Source) -> bool:
    return MANIFEST in source.names and MESSAGES in source.names


def read_archive(source: Source, options: Options) -> Iterator[Found]:
    """Read an archive. Raises MoveError for a redacted one, or one of a later version."""
    manifest = Fields.of(next(source.documents(MANIFEST))[1])
    if manifest.text("format") != FORMAT or manifest.get("version") != VERSION:
        raise MoveError(_("It isn't an archive of version %(version)s."), version=VERSION)
    if manifest.flag("redacted"):
        raise MoveError(_("It was redacted when it was exported: it is for readers only."))
    names = set(source.names)
    for place, line in source.documents():
        if isinstance(line, Skipped):
            yield line
        elif place.startswith(f"{MEMORIES}: "):
            yield Known(line if isinstance(line, dict) else {"content": None}, place)
        elif place.startswith(f"{MESSAGES}: "):
            yield _message(Fields.of(line), place, names)


def _message(line: Fields, place: str, names: set[str]) -> Found:
    role = line.text("role")
    if role not in (Role.USER, Role.ASSISTANT):
        return Skipped(place, _("a message of the role %(role)s") % {"role": role or "–"})
    metadata = Fields.of(line.get("metadata"))
    file = line.at("media").text("file")
    return said(
        moment(line.get("timestamp")),
        place,
        chat=line.text("whatsapp_chat"),
        is_ours=role == Role.ASSISTANT,
        text=line.text("content"),
        sender=metadata.text("sender_name"),
        key=line.text("message_id"),
        kind=line.text("kind") or "text",
        media=file if file in names else "",
        metadata=metadata,
    )
