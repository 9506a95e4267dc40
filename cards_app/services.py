"""Store cards, read them, move them to another chat, and delete them."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from cards_app.memory_card import FIELDS, Card, check_card
from cards_app.models import MemoryCard
from memoryproject.foundation.outgoing_webhooks.deliveries import HookEvent, hooks_raise
from memoryproject.foundation.outgoing_webhooks.models import EventType
from memoryproject.foundation.process.narrowing import present
from memoryproject.foundation.text.terms import index_text


class CardCheckError(Exception):
    """A card fails its checklist. ``failures`` lists the places and reasons.

    The text only gives their number: a card's own text never appears in a log.
    """

    def __init__(self, failures: list[str]) -> None:
        super().__init__(f"The card fails its checklist in {len(failures)} points: {failures}")
        self.failures = failures


def card_store(
    *, card: Card, chat_id: UUID, session_started_at: datetime, source_digest: str, last_order: int
) -> MemoryCard:
    """Store a session's card in place of the previous one.

    A card from the same source and rules changes nothing and publishes no event. Raises
    CardCheckError; then nothing is stored.
    """
    known = MemoryCard.objects.filter(pk=card.session_id).defer("terms").first()
    if known is not None and known.source_digest == source_digest:
        if known.last_order != last_order:
            known.last_order = last_order
            known.save(update_fields=["last_order"])
        return known
    failures = check_card(card)
    if failures:
        raise CardCheckError(failures)
    stored, _ = MemoryCard.objects.update_or_create(
        session_id=UUID(card.session_id),
        defaults={
            **card.fields(),
            "outcome": card.outcome,
            "chat_id": chat_id,
            "session_started_at": session_started_at,
            "algorithm_version": card.algorithm_version,
            "extracted_at": present(card.extracted_at),
            "source_digest": source_digest,
            "last_order": last_order,
            "terms": index_text(searched_text(card)).terms,
        },
    )
    hooks_raise([_made(stored)])
    return stored


def _made(card: MemoryCard) -> HookEvent:
    """Return the event for integrators, without the card's content."""
    data = {"session_id": str(card.session_id), "algorithm_version": card.algorithm_version}
    return HookEvent(EventType.CARD_MADE, card.session_id, data, card.chat_id)


def searched_text(card: Card) -> str:
    """Return the text whose words find the card."""
    lists = (getattr(card, name) for name in FIELDS if name != "title")
    ended = [card.outcome["settled"], *card.outcome["open"]] if card.outcome else []
    return "\n".join([card.title, *(text for items in lists for text in items), *ended])


def cards_before(*, chat_id: UUID, before: datetime, most: int) -> list[MemoryCard]:
    """Return the cards of the chat's latest sessions that began before ``before``, newest first.

    Sessions without any text are skipped.
    """
    earlier = MemoryCard.objects.filter(chat_id=chat_id, session_started_at__lt=before)
    earlier = earlier.exclude(summary_bullets=[])
    return list(earlier.defer("terms").order_by("-session_started_at", "-pk")[:most])


def cards_delete(*, session_ids: Collection[UUID]) -> int:
    """Delete the cards of these sessions; return their number."""
    deleted, _ = MemoryCard.objects.filter(pk__in=list(session_ids)).delete()
    return deleted


def chat_cards_delete(*, chat_id: UUID) -> int:
    """Delete the cards of a chat; return their number."""
    deleted, _ = MemoryCard.objects.filter(chat_id=chat_id).delete()
    return deleted


def cards_move(*, from_chat: UUID, to_chat: UUID) -> None:
    """Move all cards of a chat to another one of the same person."""
    MemoryCard.objects.filter(chat_id=from_chat).update(chat_id=to_chat)
