"""Build the answers of commands, and write memories in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from memories_app.models import Memory, Visibility
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.errors.stored_errors import error_text
from memoryproject.foundation.text.characters import cut_at_word
from sessions_app.conversations.facade import text_for
from sessions_app.models import Chat, Turn
from sessions_app.models.chats import GODFATHER, actor_in, reading_role
from sessions_app.models.turns import Outcome
from sessions_app.recall.facade import name_in_label
from sessions_app.turns.reply_store import Draft

SHORT_ID = 8
MAX_LENGTH = 300


def say(name: str, language: str, **values: object) -> Draft:
    """Return one of our texts as the answer.

    It is not knowledge and never recalled.
    """
    return system_text(text_for(name, language, **{key: str(each) for key, each in values.items()}))


def system_text(text: str, *, listed: Mapping[int, UUID | None] | None = None) -> Draft:
    """Return a text that is put together from our texts.

    ``listed``: the entries of its numbered list, each with its memory if it is one.
    """
    return Draft(text=text, is_system_text=True, model="command", listed=listed or {})


def list_of(memories: Sequence[Memory], *, first: int = 1) -> dict[int, UUID | None]:
    """Return the memories by the numbers that ``lines_of`` gives them."""
    return {number: memory.pk for number, memory in enumerate(memories, start=first)}


def failed(name: str, language: str, error: Exception) -> Draft:
    """Return one of our texts, with the error for staff."""
    draft = say(name, language)
    draft.outcome = Outcome.FAILED
    draft.error = error_text(error)
    return draft


def person(turn: Turn) -> Actor:
    """Return the actor who wrote the message."""
    return actor_in(turn.chat_id, turn.context)


def is_owners(turn: Turn) -> bool:
    """Return whether the command may use and change the memories of all chats."""
    return reading_role(turn.user_role, turn.context) == GODFATHER


def short_ids(ids: Sequence[UUID]) -> dict[UUID, str]:
    """Return the first eight digits of each id, or as many more as make it unique."""
    length = SHORT_ID
    while len({memory_id.hex[:length] for memory_id in ids}) < len(set(ids)):
        length += 4
    return {memory_id: memory_id.hex[:length] for memory_id in ids}


def lines_of(memories: Sequence[Memory], turn: Turn, *, first: int = 1) -> str:
    """Return the memories as a numbered list, with the details that identify them."""
    language = turn.chat.language
    ids = short_ids([memory.pk for memory in memories])
    names = _chat_names(memories, turn)
    lines = []
    for number, memory in enumerate(memories, start=first):
        marks = [ids[memory.pk]]
        if memory.visibility == str(Visibility.PUBLIC):
            marks.append(text_for("mark_public", language))
        if memory.chat_id in names:
            marks.append(text_for("mark_of_chat", language, who=names[memory.chat_id]))
        if memory.pinned:
            marks.append(text_for("mark_pinned", language))
        lines.append(numbered(number, memory.content, marks))
    return "\n".join(lines)


def numbered(number: int, content: str, marks: Iterable[str]) -> str:
    """Return one entry of a numbered list.

    Marks stand on a line of their own, so that they don't mix with a Hebrew text.
    """
    text = cut_at_word(" ".join(content.split()), MAX_LENGTH)
    return f"{number}. {text}\n    {' · '.join(marks)}"


def _chat_names(memories: Sequence[Memory], turn: Turn) -> dict[UUID | None, str]:
    """Return the names of other chats, which only the godfather sees."""
    if not is_owners(turn):
        return {}
    others = {memory.chat_id for memory in memories if memory.chat_id} - {turn.chat_id}
    chats = Chat.objects.filter(pk__in=others)
    return {chat.pk: name_in_label(chat.shown_name) for chat in chats}
