"""Learn from the turns of a chat, in a worker."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db import DatabaseError

from memories_app.errors import MemoryValidationError
from memoryproject.foundation.errors.stored_errors import named_error_text
from memoryproject.foundation.integrations.embedders.base import Embedder, EmbedderError
from memoryproject.foundation.integrations.llm.base import ChatModel, ChatModelError, ChatRequest
from memoryproject.foundation.leases import LeaseLostError
from memoryproject.foundation.text.chunks import halves
from sessions_app.extraction.extraction_claims import ExtractionLease, extraction_claim
from sessions_app.extraction.extraction_prompt import FactsFormError, Written, learning_request
from sessions_app.extraction.fact_store import Outcome, SourceChangedError, facts_store
from sessions_app.extraction.source_text import SourceText, source_text_of
from sessions_app.limits import answer_limits, intake

if TYPE_CHECKING:
    from sessions_app.extraction.facts_form import Fact

logger = logging.getLogger(__name__)

# How often messages that change while they are read are read again at once.
READINGS = 3
NOTHING = "nothing to learn from"

# Errors that aren't a mistake of this program.
FAILURES = (
    ChatModelError,
    FactsFormError,
    EmbedderError,
    MemoryValidationError,
    SourceChangedError,
    DatabaseError,
)


@dataclass(frozen=True)
class Extractor:
    """Learn facts from turns.

    Facts below ``min_confidence`` wait for staff. ``memory_enabled`` applies if the chat itself
    doesn't say. ``godfather``: the ids of the owner.
    """

    chat_model: ChatModel
    embedder: Embedder
    min_confidence: float = 0.7
    time_zone: str = "UTC"
    memory_enabled: bool = True
    godfather: Collection[str] = ()
    limits: intake.UsageLimits = field(default_factory=intake.UsageLimits)


def chat_learn(*, chat_id: UUID, extractor: Extractor) -> int:
    """Learn from every turn of the chat that is due; return how many facts were stored.

    Returns at once if another worker holds the work. A failing model leaves the rest for later; a
    turn that failed too often is given up, with the reason for staff.
    """
    fact_count = 0
    while lease := extraction_claim(chat_id):
        try:
            outcome = _learn(lease, extractor)
            fact_count += outcome.learned + outcome.waiting
        except LeaseLostError as lost:
            logger.warning("%s", lost)
        except intake.LimitReachedError as limit:
            lease.wait(limit)
        except FAILURES as error:
            logger.warning("Nothing was learned from turn %s: %s", lease.turn_id, error)
            lease.postpone(named_error_text(error))
        except Exception as error:
            logger.exception("Learning from turn %s failed.", lease.turn_id)
            lease.postpone(named_error_text(error))
    return fact_count


def _learn(lease: ExtractionLease, extractor: Extractor) -> Outcome:
    for reading in range(1, READINGS + 1):
        source = source_text_of(
            lease.turn_id, memory_enabled=extractor.memory_enabled, godfather=extractor.godfather
        )
        if source is None:
            lease.finish(NOTHING)
            return Outcome()
        written = [Written(*each) for each in zip(source.texts, source.names, strict=True)]
        facts = _facts(written, source, lease, extractor)
        lease.renew()
        try:
            return facts_store(
                facts=facts,
                source=source,
                lease=lease,
                embedder=extractor.embedder,
                min_confidence=extractor.min_confidence,
                memory_enabled=extractor.memory_enabled,
                written_on=source.written_at.astimezone(ZoneInfo(extractor.time_zone)).date(),
            )
        except SourceChangedError as changed:
            if reading == READINGS:
                raise
            logger.info("A turn is read again: %s", changed)
    raise AssertionError("not reached")


def _facts(
    written: Sequence[Written], source: SourceText, lease: ExtractionLease, extractor: Extractor
) -> list[Fact]:
    """Return the facts that the model finds; in two halves if all is too long for it."""
    from sessions_app.extraction.facts_form import read_facts  # noqa: PLC0415 pydantic is slow

    request = _request(written, source, extractor)
    try:
        completion = _metered(source, extractor).complete(request, before_attempt=lease.renew)
    except ChatModelError as error:
        smaller = _halves(written) if error.overflow else None
        if smaller is None:
            raise
        logger.info("The messages are too long for the model: they are read in two parts.")
        return [fact for half in smaller for fact in _facts(half, source, lease, extractor)]
    return read_facts(completion.text)


def _metered(source: SourceText, extractor: Extractor) -> ChatModel:
    """Return the chat model, counted for the chat of the messages."""
    return answer_limits.MeteredChatModel(
        extractor.chat_model, source.chat_id, source.is_owners, extractor.limits, in_background=True
    )


def _halves(written: Sequence[Written]) -> list[list[Written]] | None:
    """Return the messages in two halves, None if they are too short for that to help."""
    if len(written) > 1:
        middle = len(written) // 2
        return [list(written[:middle]), list(written[middle:])]
    divided = halves([each.text for each in written])
    if divided is None:
        return None
    return [[Written("".join(pieces), written[0].name)] for pieces in divided]


def _request(written: Sequence[Written], source: SourceText, extractor: Extractor) -> ChatRequest:
    return learning_request(
        messages=written,
        question=source.question,
        written_at=source.written_at,
        time_zone=extractor.time_zone,
        fence=uuid.uuid4().hex[:12],
    )
