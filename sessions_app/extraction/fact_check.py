"""Check each fact of a model's answer against the message that it quotes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from django.utils import timezone

from memories_app.facts.facade import NewMemory, likeness_of
from memories_app.models import Visibility
from memories_app.store.facade import EXTRACTION
from sessions_app.extraction.doubts import doubts_of
from sessions_app.extraction.model_facts import has_other_name, is_carried, quoted_in
from sessions_app.extraction.passage import clause_of
from sessions_app.extraction.secrets import holds_secret
from sessions_app.extraction.source_text import SourceText
from sessions_app.models import Message

if TYPE_CHECKING:
    from sessions_app.extraction.facts_form import Fact

# The name in a memory's metadata of the reasons why it waits for staff.
TO_REVIEW = "to_review"


@dataclass(frozen=True)
class CheckedFacts:
    """The facts to store, and the numbers of those that nobody said or that hold a secret."""

    stated: Sequence[NewMemory]
    unsaid: int
    secret: int


def facts_checked(
    *, facts: Sequence[Fact], source: SourceText, min_confidence: float, written_on: date
) -> CheckedFacts:
    """Match each fact with the message that holds its quote; keep each statement once.

    A fact that raises a doubt is proposed, with the reasons in its metadata.
    """
    found: dict[str, NewMemory] = {}
    unsaid = secret = 0
    for fact in facts:
        quoted = quoted_in(fact.quote, source.texts)
        if quoted is None:
            unsaid += 1
            continue
        place, quote = quoted
        clause = clause_of(quote, fact.content)
        if holds_secret(fact.content, clause=clause.text, message="\n".join(source.texts)):
            secret += 1
            continue
        message = source.messages[place]
        reasons = [
            *doubts_of(
                fact.content, clause=clause, is_owners=source.is_owners, written_on=written_on
            ),
            *_other_doubts(fact, message, source, min_confidence),
        ]
        new = NewMemory(
            content=fact.content,
            visibility=str(Visibility.OWNER if source.is_owners else Visibility.CHAT),
            chat_id=source.chat_id,
            type=fact.type,
            source=EXTRACTION,
            source_message_id=message.pk,
            confidence=fact.confidence,
            said_at=min(message.timestamp, timezone.now()),
            speaker=message.sender if source.is_group else "",
            metadata={TO_REVIEW: reasons} if reasons else {},
            proposed=bool(reasons),
        )
        found.setdefault(likeness_of(fact.content).sense, new)
    return CheckedFacts(list(found.values()), unsaid, secret)


def _other_doubts(
    fact: Fact, message: Message, source: SourceText, min_confidence: float
) -> Iterator[str]:
    if fact.confidence < min_confidence:
        yield "confidence"
    their_words = [*source.texts, *source.names]
    if not is_carried(fact.content, texts=their_words, question=source.question):
        yield "other words"
    if has_other_name(fact.content, texts=their_words):
        yield "name"
    # A forwarded message holds the words of others, so it isn't this person's own statement.
    if message.metadata.get("forwarded"):
        yield "forwarded"
    if source.is_late:
        yield "late"
