"""Store messages: number them, count their tokens, move the window of the history."""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Subquery
from django.db.models.functions import Coalesce

from memoryproject.foundation.bulk_rows import sent_together
from memoryproject.foundation.integrations.llm.base import message_tokens
from memoryproject.foundation.text.characters import estimate_tokens
from sessions_app.conversations import message_text, session_lifecycle
from sessions_app.models import ChatSession, Message, Role, SessionStatus
from sessions_app.signals import business_wrote

logger = logging.getLogger(__name__)

# The last messages always stay in the window, whatever their length.
KEEP_LAST = 2

WINDOW_BATCH = 200
# Mostly one or two leave the window; after that, ten times as many are read.
FIRST_LEAVING = 20

CHANGED_BY_MESSAGES = (
    "message_counter",
    "total_tokens",
    "window_start",
    "last_active",
    "vectors_requested_at",
)


def window_prune(*, session: ChatSession, token_limit: int) -> None:
    """Move the window's start forward until it holds at most ``token_limit`` tokens, or only
    the last messages. Reads the messages that leave the window, not those before or long after.
    The rows stay; ``session`` is changed, not saved.
    """
    if session.total_tokens <= token_limit:
        return
    newest = session.messages.exclude(role=Role.SUMMARY).order_by("-order_num").values("order_num")
    last, only = (Subquery(newest[place : place + 1]) for place in (KEEP_LAST - 1, 0))
    leaving = session.messages.filter(order_num__lt=Coalesce(last, only, 1)).order_by("order_num")
    rows, size = leaving.values_list("order_num", "tokens"), FIRST_LEAVING
    while session.total_tokens > token_limit:
        batch = list(rows.filter(order_num__gte=session.window_start)[:size])
        for order_num, tokens in batch:
            session.window_start = order_num + 1
            session.total_tokens -= tokens
            if session.total_tokens <= token_limit:
                break
        if len(batch) < size:
            break
        size *= 10


def window_recompute(*, session: ChatSession, token_limit: int) -> None:
    """Set ``window_start``, ``total_tokens`` and ``message_counter`` from the stored messages:
    the window holds the newest of them within ``token_limit``, and always the last two.

    Reads from the newest backwards, in batches, only as far as the window goes. ``session``
    is locked by the caller; it is changed, not saved.
    """
    session.window_start = 1
    session.total_tokens = 0
    session.message_counter = 0
    kept_messages = 0
    for order_num, tokens, role in _backwards(session):
        session.message_counter = max(session.message_counter, order_num)
        if kept_messages >= KEEP_LAST and session.total_tokens + tokens > token_limit:
            # Same result as pruning one by one: the window starts after the messages that left
            # it.
            session.window_start = order_num + 1
            return
        session.total_tokens += tokens
        kept_messages += role != Role.SUMMARY


def _backwards(session: ChatSession) -> Iterator[tuple[int, int, str]]:
    """Return the number, the tokens and the role of each message, newest first."""
    messages = session.messages.order_by("-order_num").values_list("order_num", "tokens", "role")
    batch = list(messages[:WINDOW_BATCH])
    while batch:
        yield from batch
        if len(batch) < WINDOW_BATCH:
            return
        batch = list(messages.filter(order_num__lt=batch[-1][0])[:WINDOW_BATCH])


@dataclass(frozen=True)
class NewMessage:
    """A message to store, by the names of Message's fields; ``content`` is kept unchanged."""

    role: str
    content: str
    timestamp: datetime
    sender: str = ""
    recipient: str = ""
    kind: str = "text"
    provider: str = ""
    number_id: str = ""
    provider_message_id: str | None = None
    answers: Message | None = None
    was_received: bool = True
    image_path: str | None = None
    media: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)


def has_text(new: Sequence[NewMessage]) -> bool:
    """Return whether any of the messages may be recalled by a vector: see messages_lacking."""
    return any(each.content and each.role in (Role.USER, Role.ASSISTANT) for each in new)


def messages_add(
    *, session: ChatSession, new: Sequence[NewMessage], token_limit: int, now: datetime
) -> list[Message]:
    """Store the session's next messages, in order, and keep the window within ``token_limit``.

    The number of queries doesn't depend on the number of messages.

    ``session`` is locked by the caller's transaction and is saved. Raises DataValidationError,
    a ValueError, for an unknown role (ERR-SESSION-004) and for an archived session; then
    nothing is stored.
    """
    for each in new:
        _check(session, each, token_limit)
    if not new:
        return []
    messages = [
        message_row(session, each, order_num, now)
        for order_num, each in enumerate(new, start=session.message_counter + 1)
    ]
    session.message_counter += len(messages)
    session.total_tokens += sum(message.tokens for message in messages)
    # A summary that a worker adds is no activity: it doesn't delay the session's expiry.
    is_active = any(message.role != Role.SUMMARY for message in messages)
    if is_active:
        session.last_active = now
    with sent_together():
        Message.objects.bulk_create(messages)
        window_prune(session=session, token_limit=token_limit)
        changed = {name: getattr(session, name) for name in CHANGED_BY_MESSAGES}
        ChatSession.objects.filter(pk=session.pk).update(**changed)
        if is_active:
            session_lifecycle.activity_record(chat_id=session.chat_id, at=now)
    texts = [each.content for each in messages if each.role == Role.ASSISTANT]
    if texts:
        details = {"session_id": session.pk, "texts": texts}
        transaction.on_commit(
            lambda: business_wrote.send_robust(sender=ChatSession, **details), robust=True
        )
    if session.status != SessionStatus.ACTIVE:
        # The sweep finds the card of an active session, so that the answer doesn't wait for it.
        session_lifecycle.cards_request(session_ids=[session.pk])
    return messages


def message_row(session: ChatSession, new: NewMessage, order_num: int, now: datetime) -> Message:
    """Return a new row of a session, which isn't stored yet."""
    indexed = message_text.indexed_of(new.content, new.metadata)
    return Message(
        session=session,
        chat_id=session.chat_id,
        order_num=order_num,
        received_at=now,
        tokens=stored_tokens(new.content, new.metadata),
        terms=indexed.terms,
        term_count=indexed.length,
        **vars(new),
    )


def _check(session: ChatSession, new: NewMessage, token_limit: int) -> None:
    """Reject invalid messages; log those that are accepted but unusual."""
    if new.role not in Role.values:
        raise DataValidationError(
            f"Unknown role {new.role!r}: a message's role is one of {', '.join(Role.values)}."
        )
    if session.status == SessionStatus.ARCHIVED:
        raise SessionArchivedError(
            f"Session {session.session_id} is archived, which makes it read-only: "
            "add to the chat's active session."
        )
    if not new.content.strip() and new.kind == "text" and FORM not in new.metadata:
        logger.warning("A message without text was stored in session %s.", session.session_id)
    tokens = stored_tokens(new.content, new.metadata)
    if tokens > token_limit:
        logger.warning(
            "A message of %d tokens exceeds the limit of %d in session %s: it is kept whole.",
            tokens,
            token_limit,
            session.session_id,
        )


def message_retext(
    *, message: Message, content: str, session: ChatSession, token_limit: int
) -> None:
    """Replace the text of a stored message and keep the window correct.

    A card that was made from the old text is deleted.
    """
    grown = stored_tokens(content, message.metadata) - message.tokens
    indexed = message_text.indexed_of(content, message.metadata)
    message.content = content
    message.tokens += grown
    message.terms, message.term_count = indexed.terms, indexed.length
    # Save before pruning the window: the new token count may remove this very message.
    message.save(update_fields=["content", "tokens", "terms", "term_count"])
    message.embeddings.all().delete()
    if message.role == Role.ASSISTANT:
        read = ChatSession.objects.filter(pk=session.pk, promises_until__gte=message.order_num)
        read.update(promises_until=message.order_num - 1)
    session_lifecycle.cards_outdate(session_ids=[session.pk])
    if message.order_num >= session.window_start:
        session.total_tokens += grown
        window_prune(session=session, token_limit=token_limit)
        session.save(update_fields=["total_tokens", "window_start"])


# Errors of chat memory (seed 003, section 5.7).


class ChatMemoryError(Exception):
    """The base of the errors of chat memory."""


class DataValidationError(ChatMemoryError, ValueError):
    """The data is invalid, and nothing of it was stored.

    The text says what is wrong, where, and how to correct it.
    """


class SessionArchivedError(DataValidationError):
    """The session is archived, which makes it read-only."""


class ConversationNotFoundError(ChatMemoryError):
    """There is no session with this id."""

    def __init__(self, conversation_id: UUID | str) -> None:
        super().__init__(f"There is no session {conversation_id}.")
        self.conversation_id = conversation_id


class GenericMemoryError(ChatMemoryError):
    """The database or a skill failed.

    The cause is its ``__cause__``. The data is unchanged.
    """


# Check the messages that callers add to a conversation.

MAX_MESSAGES = 1_000
MAX_ADDRESS_LENGTH = 255
MAX_PATH_LENGTH = 1024


def checked_message(message: NewMessage, *, place: int, image_root: Path | None) -> NewMessage:
    """Return a caller's message ready to be stored.

    ``place`` counts from 0 in the caller's list. Raises DataValidationError that names the
    place and the field. A timestamp without a time zone counts as UTC (ERR-INTEGRATION-004). A
    message with a missing picture is stored all the same (EDGE-008). Both log a WARNING.
    """
    where = f"messages[{place}]"
    if message.role not in Role.values:
        raise DataValidationError(
            f"{where}.role: unknown role {message.role!r}; it is one of {', '.join(Role.values)}."
        )
    _check_text(f"{where}.content", message.content)
    for name in ("sender", "recipient"):
        _check_text(f"{where}.{name}", getattr(message, name), longest=MAX_ADDRESS_LENGTH)
    if message.image_path is not None:
        _check_text(f"{where}.image_path", message.image_path, longest=MAX_PATH_LENGTH)
        _warn_of_missing_image(message.image_path, image_root)
    return replace(
        message,
        timestamp=_in_utc(f"{where}.timestamp", message.timestamp),
        metadata=_checked_metadata(f"{where}.metadata", message.metadata),
    )


def _check_text(where: str, text: object, *, longest: int | None = None) -> None:
    if not isinstance(text, str):
        raise DataValidationError(f"{where}: must be a text, not {type(text).__name__}.")
    if "\x00" in text:
        raise DataValidationError(f"{where}: holds a NUL character, which can't be stored.")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise DataValidationError(f"{where}: holds half of a character (a lone surrogate).")
    if longest is not None and len(text) > longest:
        raise DataValidationError(f"{where}: has {len(text)} characters, at most {longest} fit.")


def _in_utc(where: str, timestamp: object) -> datetime:
    if not isinstance(timestamp, datetime):
        raise DataValidationError(
            f"{where}: must be a date and time, not {type(timestamp).__name__}."
        )
    if timestamp.tzinfo is None:
        logger.warning("%s has no time zone: it counts as UTC.", where)
        return timestamp.replace(tzinfo=timezone.utc)
    try:
        return timestamp.astimezone(timezone.utc)
    except OverflowError:
        raise DataValidationError(f"{where}: is out of range.") from None


def _checked_metadata(where: str, metadata: object) -> dict[str, Any]:
    """Return the metadata; raise DataValidationError for what JSON can't hold.

    The same for values that the database can't hold (ERR-SESSION-003).
    """
    if not isinstance(metadata, Mapping):
        raise DataValidationError(f"{where}: must be an object, not {type(metadata).__name__}.")
    found = dict(metadata)
    try:
        text = json.dumps(found, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        logger.error("%s can't be written as JSON (%s).", where, error)
        raise DataValidationError(f"{where}: can't be written as JSON: {error}.") from None
    # After a backslash of its own it is six characters, not NUL.
    if "\\u0000" in text.replace("\\\\", ""):
        raise DataValidationError(f"{where}: holds a NUL character, which can't be stored.")
    _check_text(where, text)
    if not all(isinstance(key, str) for key in found):
        raise DataValidationError(f"{where}: its keys must be texts.")
    return found


def _warn_of_missing_image(image_path: str, image_root: Path | None) -> None:
    if image_root is not None and not (image_root / image_path).is_file():
        logger.warning("There is no picture at %s; its path is stored.", image_path)


# The parts of a chat API's message that are stored: tool calls, results, content in parts.

FORM = "openai_message"
# Parts that hold no text, by the names that chat APIs give them; and what stands in their place.
OTHER_PARTS = {
    **dict.fromkeys(["image_url", "input_image", "output_image", "image"], "image"),
    **dict.fromkeys(["input_audio", "output_audio", "audio_url", "audio"], "audio"),
    **dict.fromkeys(["input_video", "video_url", "video"], "video"),
    **dict.fromkeys(["input_file", "file"], "file"),
    "document": "document",
}
# What a model thought is kept with its message, and is no text of it.
THOUGHT_PARTS = frozenset(["thinking", "redacted_thinking", "reasoning", "reasoning_text"])
TOOL_CALLS, TOOL_CALL_ID, NAME, PARTS = "tool_calls", "tool_call_id", "name", "content_parts"


@dataclass(frozen=True)
class ChatForm:
    """``parts``: the content as it was given, if in parts; None for a text."""

    tool_calls: Sequence[Mapping[str, Any]] = ()
    tool_call_id: str = ""
    name: str = ""
    parts: Sequence[Mapping[str, Any]] | None = None

    def stored_in(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Return the metadata with this form; unchanged where there is nothing to store."""
        found = {
            TOOL_CALLS: [dict(call) for call in self.tool_calls],
            TOOL_CALL_ID: self.tool_call_id,
            NAME: self.name,
            PARTS: None if self.parts is None else [dict(part) for part in self.parts],
        }
        form = {name: value for name, value in found.items() if value}
        return {**metadata, FORM: form} if form else dict(metadata)


def chat_form(metadata: Mapping[str, Any]) -> ChatForm:
    """Return the form that a message's metadata holds."""
    form = metadata.get(FORM)
    if not isinstance(form, dict):
        return ChatForm()
    return ChatForm(
        form.get(TOOL_CALLS, ()), form.get(TOOL_CALL_ID, ""), form.get(NAME, ""), form.get(PARTS)
    )


def own_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata as the caller gave it."""
    if FORM not in metadata:
        return metadata
    return {name: value for name, value in metadata.items() if name != FORM}


def text_of_parts(parts: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of content in parts. A part that isn't text is named in its place.

    Its size in tokens isn't known, so prompts hold the name.
    """
    texts = []
    for part in parts:
        kind = str(part.get("type", ""))
        text = part_text(part)
        if text is None and kind not in THOUGHT_PARTS:
            text = f"[{OTHER_PARTS.get(kind, 'part')}]"
        texts.append(text)
    return "\n".join(text for text in texts if text is not None)


def part_text(part: Mapping[str, Any]) -> str | None:
    """Return the text of a part; None where it is none, or a thought."""
    kind = part.get("type")
    text = None if kind in THOUGHT_PARTS else part.get("refusal" if kind == "refusal" else "text")
    return text if isinstance(text, str) else None


def stored_tokens(content: str, metadata: Mapping[str, Any]) -> int:
    """Return an estimate of the tokens that a stored message has in a prompt."""
    if FORM not in metadata:
        return estimate_tokens(content)
    return message_tokens(content, chat_form(metadata).tool_calls)


def form_size(value: object) -> int:
    """Return the size in bytes of what is to be stored as JSON."""
    return len(json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass"))
