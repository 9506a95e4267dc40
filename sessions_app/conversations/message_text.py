"""The text of a stored message for prompts, searches and summaries."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet

from memoryproject.foundation.retrieval.subqueries import may_repeat_a_query
from memoryproject.foundation.text.terms import IndexedText, index_text
from sessions_app.conversations.message_context import context_lines, reaction_line
from sessions_app.conversations.phrases import TEXTS
from sessions_app.models import CLIENT, Message, Role
from sessions_app.models.messages import ASKING, has_token_of


class HistoryMessage(NamedTuple):
    """A message for a prompt: histories are long, and model instances take long to build.

    ``place``: where it stands in the conversation, an answer with its question.
    """

    message_id: UUID
    session_id: UUID
    order_num: int
    role: str
    kind: str
    content: str
    tokens: int
    answers_id: UUID | None
    metadata: Mapping[str, Any]
    edited_at: datetime | None
    place: int

    @classmethod
    def of(cls, message: "Message | HistoryMessage") -> "HistoryMessage":
        """Return a message that was stored just now, or one that is answered: no answer itself."""
        if isinstance(message, HistoryMessage):
            return message
        return cls(
            message.message_id,
            message.session_id,
            message.order_num,
            message.role,
            message.kind,
            message.content,
            message.tokens,
            message.answers_id,
            message.metadata,
            message.edited_at,
            message.order_num,
        )


StoredText: TypeAlias = Message | HistoryMessage

WITH_TEXT_ALONE = ("text", "interactive", "button")


# Said below an answer that was made without all of memory.
NOTICE = "memory_unavailable"


def without_notice(text: str) -> str:
    """Return the text of an answer without the notice below it, which the model didn't write.

    The end of the notice may be cut off.
    """
    answer, _, end = text.rpartition("\n\n")
    begun = end.removesuffix("…").rstrip()
    is_notice = (
        answer and begun and any(notice.startswith(begun) for notice in TEXTS[NOTICE].values())
    )
    return answer if is_notice else text


def text_of(message: StoredText, *, is_last: bool = False) -> str:
    """Return the message's content with what stands around it; a label if it isn't text.

    The notice below an answer isn't part of it. ``is_last``: it is answered now, as it is.
    """
    content = message.content
    if message.kind not in WITH_TEXT_ALONE:
        content = f"[{message.kind}] {content}".strip()
    if message.role != Role.USER:
        return without_notice(content) if message.kind in WITH_TEXT_ALONE else content
    around = context_lines(message.metadata, None if is_last else message.edited_at)
    return "\n".join([*around, content])


def text_with_reactions(message: StoredText) -> str:
    """Return the text and the reactions to it, for summaries."""
    return "\n".join(filter(None, (text_of(message), _reactions(message))))


def _reactions(message: StoredText) -> str:
    return reaction_line(
        role=message.role,
        kind=message.kind,
        content=without_notice(message.content),
        metadata=message.metadata,
    )


def as_chat_lines(
    messages: Sequence[StoredText], *, is_group: bool
) -> list[tuple[StoredText | None, str, str]]:
    """Return stored messages as a chat model takes them: each with its role and its text.

    Content that isn't text is named as such, and in a group each message names its author. A
    reaction stands before the person's next message, or at the end in a line of its own, without a
    message: the assistant never wrote it.
    """
    lines: list[tuple[StoredText | None, str, str]] = []
    reactions: list[str] = []
    for message in messages:
        content = text_of(message, is_last=message is messages[-1])
        name = message.metadata.get("sender_name", "")
        if is_group and name and message.role == Role.USER:
            content = f"{name}: {content}"
        if message.role == Role.USER:
            content = "\n".join([*reactions, content])
            reactions = []
        lines.append((message, str(message.role), content))
        reactions += filter(None, [_reactions(message)])
    if reactions:
        lines.append((None, str(Role.USER), "\n".join(reactions)))
    return lines


def speaker_of(message: StoredText, *, user_role: str = CLIENT) -> str:
    """Return the speaker; in a group, by name."""
    if message.role != Role.USER:
        return str(message.role)
    return str(message.metadata.get("sender_name") or user_role)


def indexed_of(content: str, metadata: Mapping[str, Any]) -> IndexedText:
    """Return the text by which the message is found.

    In a group the speaker's name is part of it: "What is Dana allergic to?" finds Dana's "I'm
    allergic to walnuts". ``ASKING`` marks a text that asks for something.
    """
    name = metadata.get("sender_name")
    indexed = index_text(f"{name}: {content}" if name and content else content)
    if not may_repeat_a_query(content):
        return indexed
    return replace(indexed, terms=[*indexed.terms, ASKING])


def is_knowledge(message: StoredText) -> bool:
    """Return whether the message holds knowledge: commands and system texts don't."""
    return bool(message.content.strip()) and not (
        {"command", "system_text"} & message.metadata.keys()
    )


# Find the row of a message by the id under which an event names it.

Row = TypeVar("Row", bound=Model)
FIELD = "provider_message_id"


def row_of(
    rows: QuerySet[Row], message_id: str, *, chat_id: UUID | None, chat: str = "chat"
) -> Row | None:
    """Return the row with this id, otherwise the one in the chat whose id has the same token.

    ``chat``: the path from a row to its chat.
    """
    found = rows.filter(**{FIELD: message_id}).first()
    return found or row_by_token(rows, message_id, chat_id=chat_id, chat=chat)


def row_by_token(
    rows: QuerySet[Row], message_id: str, *, chat_id: UUID | None, chat: str = "chat"
) -> Row | None:
    """Return the first row in the chat whose id has the same token."""
    if chat_id is None or not message_id.startswith("wamid."):
        return None
    return rows.filter(has_token_of(FIELD, message_id), **{chat: chat_id}).order_by("pk").first()
