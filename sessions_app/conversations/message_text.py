"""The text of a stored message for prompts, searches and summaries."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet

from memoryproject.foundation.integrations.lenient import Fields
from memoryproject.foundation.retrieval.subqueries import may_repeat_a_query
from memoryproject.foundation.text.characters import cut_at_word
from memoryproject.foundation.text.terms import IndexedText, index_text
from sessions_app.conversations.phrases import TEXTS
from sessions_app.models import CLIENT, Message, Role
from sessions_app.models.messages import ASKING, has_token_of

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


def text_of(message: Message, *, is_last: bool = False) -> str:
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


def text_with_reactions(message: Message) -> str:
    """Return the text and the reactions to it, for summaries."""
    return "\n".join(filter(None, (text_of(message), _reactions(message))))


def _reactions(message: Message) -> str:
    return reaction_line(
        role=message.role,
        kind=message.kind,
        content=without_notice(message.content),
        metadata=message.metadata,
    )


def as_chat_lines(
    messages: Sequence[Message], *, is_group: bool
) -> list[tuple[Message | None, str, str]]:
    """Return stored messages as a chat model takes them: each with its role and its text.

    Content that isn't text is named as such, and in a group each message names its author. A
    reaction stands before the person's next message, or at the end in a line of its own, without a
    message: the assistant never wrote it.
    """
    lines: list[tuple[Message | None, str, str]] = []
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


def speaker_of(message: Message, *, user_role: str = CLIENT) -> str:
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


def is_knowledge(message: Message) -> bool:
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


# What a person sees beside a message, in short lines for prompts and summaries.

MAX_CITED = 300
# In a stored message's metadata: the line that it answers, as {"role", "text", "sender", "name"}. A
# name has who wrote it in a group. What a provider sends has a role only if it quotes us.
QUOTED = "quoted"


def cited(text: object) -> str:
    """Return a text on one line, cut at MAX_CITED, that can't end the brackets around it."""
    return f"“{_on_one_line(text)}”"


def _on_one_line(text: object) -> str:
    line = " ".join(str(text).split()).translate(str.maketrans("[]“”", "()''"))
    return cut_at_word(line, MAX_CITED)


def quote_of(*, role: str, kind: str, content: str, sender: str, name: str) -> dict[str, str]:
    """Return what a message that answers this one keeps of it in its metadata."""
    text = content if kind in ("text", "interactive", "button") else f"({kind}) {content}"
    named = {"name": name} if name else {}
    return {"role": role, "text": cut_at_word(text.strip(), MAX_CITED), "sender": sender, **named}


def context_lines(metadata: Mapping[str, Any], edited_at: datetime | None) -> list[str]:
    """Return the lines that stand before a person's message, without the reactions to it."""
    return [f"[{line}]" for line in _lines(metadata, edited_at)]


def _lines(metadata: Mapping[str, Any], edited_at: datetime | None) -> Iterator[str]:
    if ad := _shown(metadata.get("referral"), "headline", "body", "source_url"):
        yield f"came from the ad {ad}"
    if product := _shown(metadata.get("referred_product"), "product_retailer_id"):
        yield f"about the product {product}"
    quoted = Fields.of(metadata.get(QUOTED))
    whose = {"assistant": "the assistant’s", "user": "their own"}.get(str(quoted.get("role")))
    if whose == "their own" and (name := _on_one_line(quoted.get("name") or "")):
        whose = f"{name}’s"
    if str(quoted.get("text") or "").strip():
        yield f"in reply to {whose or 'the'} message {cited(quoted['text'])}"
    elif metadata.get("reply_to_id"):
        yield f"in reply to {whose or 'an'} earlier message"
    if metadata.get("frequently_forwarded"):
        yield "forwarded many times: others wrote it"
    elif metadata.get("forwarded"):
        yield "forwarded: somebody else wrote it"
    if edited_at is not None:
        yield "edited since"


def _shown(found: Any, *keys: str) -> str:
    values = [str(value).strip() for key in keys if (value := Fields.of(found).get(key))]
    return cited(" – ".join(values)) if values else ""


def reaction_line(*, role: str, kind: str, content: str, metadata: Mapping[str, Any]) -> str:
    """Return what was put on a message, for the line after it; "" without reactions.

    A reaction is an answer: "Confirm Tuesday?" 👍
    """
    signs = [str(sign) for sign in Fields.of(metadata.get("reactions")).values() if sign]
    if not signs:
        return ""
    whose = "the assistant’s" if role == Role.ASSISTANT else "their own"
    text = cited(content.strip() or f"({kind})")
    return f"[reacted with {' '.join(signs)} to {whose} message {text}]"
