"""Add the cards of a chat's earlier sessions to the prompts of its turns, and remove them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from cards_app.rules.card_yaml import render_card
from cards_app.services import cards_before
from memoryproject.foundation.retrieval.fragments import MARK
from memoryproject.foundation.text.characters import CHARACTERS_A_TOKEN
from sessions_app.models import AnswerTrial, Turn, TurnReplay

# The name in the replay record.
CARDS = "cards"
TOKENS_A_CARD = 250


@dataclass(frozen=True)
class CardHit:
    """The card of an earlier session, rendered in at most ``TOKENS_A_CARD``."""

    session_id: UUID
    content: str
    said_on: datetime

    def as_dict(self) -> dict[str, Any]:
        """Return the entry for the replay record, with the field names of a recalled text."""
        return {
            "source": CARDS,
            "id": str(self.session_id),
            "session_id": str(self.session_id),
            "content": self.content,
            "score": None,
            "similarity": None,
            "created_at": self.said_on.isoformat(),
        }


def cards_recall(*, turn: Turn, most: int) -> list[CardHit]:
    """Return the cards of the latest sessions before the turn's own in its chat, newest first.

    Sessions of other chats are never included. Sessions in which nothing was said are skipped.
    """
    if most < 1 or turn.session is None:
        return []
    found = cards_before(chat_id=turn.chat_id, before=turn.session.created_at, most=most)
    longest = TOKENS_A_CARD * CHARACTERS_A_TOKEN
    return [
        CardHit(card.session_id, render_card(card.card, longest=longest), card.session_started_at)
        for card in found
    ]


def cards_retract(*, chat_id: UUID, session_ids: Sequence[UUID]) -> int:
    """Redact the cards of these sessions in the replays of the chat's turns.

    The cards' sources are being removed. Trials of these answers are deleted. Returns how many
    replays had one.
    """
    cleaned = 0
    for session_id in session_ids:
        had_it = TurnReplay.objects.filter(
            turn__chat_id=chat_id,
            recalled__contains=[{"source": CARDS, "session_id": str(session_id)}],
        )
        for replay in had_it.only("prompt", "recalled").iterator(chunk_size=100):
            _take_out(replay, session_id)
            cleaned += 1
    return cleaned


def _take_out(replay: TurnReplay, session_id: UUID) -> None:
    ours = {"source": CARDS, "session_id": str(session_id)}
    recalled, prompt = [], replay.prompt
    for entry in replay.recalled:
        if ours.items() <= entry.items():
            card_text = entry["content"]
            prompt = [
                {**message, "content": (message["content"] or "").replace(card_text, MARK)}
                for message in prompt
            ]
            entry = {**entry, "content": MARK}
        recalled.append(entry)
    TurnReplay.objects.filter(pk=replay.pk).update(prompt=prompt, recalled=recalled)
    AnswerTrial.objects.filter(turn=replay.pk).delete()
