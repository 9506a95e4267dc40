"""Read the messages of a turn that facts may be learned from."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sessions_app.conversations.message_text import is_knowledge
from sessions_app.models import GODFATHER, Chat, Message, Role, Turn, TurnState
from sessions_app.models.chats import chat_role, reading_role

# Longer than any burst that a person writes.
MAX_MERGED = 100


@dataclass(frozen=True)
class SourceText:
    """The messages of a turn.

    ``messages`` are the person's own, oldest first; ``question`` is the assistant's message right
    before. ``is_late`` is True if later turns of the chat were learned from already.
    """

    chat_id: UUID
    session_id: UUID
    is_owners: bool
    messages: Sequence[Message]
    names: Sequence[str]
    question: str
    is_late: bool
    is_group: bool = False

    @property
    def texts(self) -> list[str]:
        return [message.content for message in self.messages]

    @property
    def seen(self) -> list[tuple[UUID, str]]:
        """Return what was read; if it differs when facts are stored, they are void."""
        return [(message.pk, message.content) for message in self.messages]

    @property
    def written_at(self) -> datetime:
        return self.messages[-1].timestamp


def source_text_of(
    turn_id: int, *, memory_enabled: bool, godfather: Collection[str] = ()
) -> SourceText | None:
    """Return the messages; None if there is nothing to learn from.

    That is the case if memory is off by now, or the messages were revoked, deleted, or are
    commands.
    """
    turn = Turn.objects.select_related("chat").filter(pk=turn_id).first()
    if turn is None or turn.session_id is None or not _remembers(turn.chat, memory_enabled):
        return None
    role = chat_role(turn.chat, godfather=godfather)
    found = Message.objects.filter(turn__in=turn_with_merged(turn), session_id=turn.session_id)
    messages = [
        message
        for message in found.defer("terms").order_by("order_num")
        if message.role == Role.USER and message.revoked_at is None and is_knowledge(message)
    ]
    if not messages:
        return None
    return SourceText(
        chat_id=turn.chat_id,
        session_id=turn.session_id,
        is_owners=reading_role(role, turn.context) == GODFATHER,
        messages=messages,
        names=[_name(message, turn.chat) for message in messages],
        question=_question(messages[0]),
        is_group=turn.chat.is_group,
        is_late=Turn.objects.filter(
            chat_id=turn.chat_id, pk__gt=turn.pk, extraction__done_at__isnull=False
        ).exists(),
    )


def turn_with_merged(turn: Turn) -> list[int]:
    """Return the ids of the turn and of those of its burst that were merged into it."""
    merged = Turn.objects.filter(
        chat_id=turn.chat_id, pk__lt=turn.pk, state=TurnState.MERGED
    ).order_by("-pk")
    ids, tokens = [turn.pk], {str(turn.turn_id)}
    for older in merged.only("turn_id", "context")[:MAX_MERGED]:
        if older.context.get("merged_into") not in tokens:
            break
        ids.append(older.pk)
        tokens.add(str(older.turn_id))
    return ids


def _remembers(chat: Chat, memory_enabled: bool) -> bool:
    return memory_enabled if chat.memory_enabled is None else chat.memory_enabled


def _name(message: Message, chat: Chat) -> str:
    """Return the author's WhatsApp name."""
    return str(message.metadata.get("sender_name") or ("" if chat.is_group else chat.client_name))


def _question(first: Message) -> str:
    """Return the assistant's last message before this one, unless it is the system's."""
    before = Message.objects.filter(
        session_id=first.session_id, role=Role.ASSISTANT, order_num__lt=first.order_num
    )
    last = before.order_by("-order_num").defer("terms").first()
    if last is None or last.revoked_at is not None or not is_knowledge(last):
        return ""
    return last.content
