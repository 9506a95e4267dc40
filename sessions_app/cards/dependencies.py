"""Make cards with the embedder in use, or enqueue sessions for the workers that do."""

from collections.abc import Callable, Sequence
from functools import partial
from uuid import UUID

from cards_app.models import MemoryCard
from cards_app.rules.judge import MEANING_MODEL
from cards_app.rules.statements import Meaning
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from memoryproject.foundation.process.jobs import enqueue
from sessions_app.cards.make_cards import card_make
from sessions_app.embedding.facade import embedder


def card_maker() -> Callable[..., MemoryCard]:
    """Return ``card_make`` with the meaning of texts, where the rules know the embedder in use."""
    return partial(card_make, meaning=_meaning())


def _meaning() -> Meaning | None:
    model = embedder()
    if model.model_id != MEANING_MODEL:
        return None

    def vector(text: str) -> Sequence[float] | None:
        try:
            return model.embed([text])[0]
        except EmbedderError:
            return None  # The phrases decide.

    return vector


def enqueue_cards(session_ids: Sequence[UUID]) -> None:
    """Enqueue these sessions."""
    keys = [str(key) for key in session_ids]
    enqueue("sessions_app.tasks.make_cards", keys, task_name=f"cards of {len(keys)} sessions")
