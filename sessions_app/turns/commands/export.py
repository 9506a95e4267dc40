"""/export: list what is known about the person who asks."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.db.models import Count, Min, Q

from cards_app.models import MemoryCard
from memories_app.models import Memory, Visibility
from memories_app.visibility import memories_for_staff, memories_in_order
from memoryproject.foundation.audit.audit_events import audit_record
from sessions_app.conversations.facade import text_for
from sessions_app.models import Message, Turn
from sessions_app.models.messages import Role
from sessions_app.turns.commands.list_numbers import visible_to
from sessions_app.turns.commands.replies import is_owners, lines_of, list_of, person, system_text
from sessions_app.turns.reply_store import Draft

# More would flood a phone; staff can export a longer list.
MAX_COUNT = 200
MAX_CARDS = 50
EXPORTED = "exported"


def export_reply(*, turn: Turn) -> Draft:
    """List the memories of this chat and summarize what is stored of the conversation.

    The godfather's list also has the owner's memories. The conversation is given in counts and by
    the titles of its cards. Nothing of other people is included.
    """
    language = turn.chat.language
    rest = "export_rest_godfather" if is_owners(turn) else "export_rest_client"
    memories = memories_in_order(visible_to(turn).filter(_own(turn))).defer("terms")
    count = memories.count()
    listed = list(memories[:MAX_COUNT])
    text = text_for(
        "export",
        language,
        memories=_memories(listed, count, turn),
        history=_history(turn),
        rest=text_for(rest, language),
    )
    _record(turn, count)
    return system_text(text, listed=list_of(listed))


def _own(turn: Turn) -> Q:
    own = Q(visibility=Visibility.CHAT, chat_id=turn.chat_id)
    if is_owners(turn):
        own |= Q(visibility=Visibility.OWNER)
    return own


def _memories(listed: Sequence[Memory], count: int, turn: Turn) -> str:
    language = turn.chat.language
    if count:
        lines = lines_of(listed, turn)
        if count > len(listed):
            lines += "\n" + text_for("and_more", language, count=str(count - len(listed)))
        text = text_for("export_memories", language, lines=lines)
    else:
        text = text_for("export_no_memories", language)
    old = memories_for_staff().filter(_own(turn)).count() - count
    if old > 0:
        text += "\n\n" + text_for("export_old", language, count=str(old))
    return text


def _history(turn: Turn) -> str:
    language = turn.chat.language
    figures = Message.objects.filter(chat_id=turn.chat_id, revoked_at__isnull=True).aggregate(
        yours=Count("pk", filter=Q(role=Role.USER)),
        ours=Count("pk", filter=Q(role=Role.ASSISTANT)),
        sessions=Count("session", distinct=True),
        since=Min("timestamp"),
    )
    since = figures.pop("since")
    if since is None:
        return text_for("export_no_history", language)
    counts = {name: str(count) for name, count in figures.items()}
    history = text_for("export_history", language, since=f"{since:%Y-%m-%d}", **counts)
    return history + _cards(turn)


def _cards(turn: Turn) -> str:
    """Return the summary cards of earlier sessions, newest first."""
    language = turn.chat.language
    cards = MemoryCard.objects.filter(chat_id=turn.chat_id).order_by("-session_started_at")
    listed = list(cards.only("session_started_at", "title")[:MAX_CARDS])
    if not listed:
        return ""
    lines = [f"- {card.session_started_at:%Y-%m-%d}: {card.title}" for card in listed]
    count = cards.count()
    if count > MAX_CARDS:
        lines.append(text_for("and_more", language, count=str(count - MAX_CARDS)))
    return "\n\n" + text_for("export_cards", language, count=str(count), lines="\n".join(lines))


def _record(turn: Turn, count: int) -> None:
    """Record the export once for the turn, however often the turn runs."""
    if EXPORTED in turn.context:
        return
    with transaction.atomic():
        Turn.objects.filter(pk=turn.pk).update(context={**turn.context, EXPORTED: True})
        audit_record(
            action="export",
            actor=person(turn),
            object_type="chat",
            object_id=turn.chat_id,
            details={"memories": count, "by": "command"},
        )
