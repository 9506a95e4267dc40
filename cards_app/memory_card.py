"""The memory card of a session (seed 001): made by rules only, without Django.

    from cards_app.memory_card import generate_memory_card

    card = generate_memory_card(session_data)
    print(card.title, card.to_yaml())

The rules are in ``cards_app/rules/``; docs/cards.md describes them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from cards_app.rules.card import ALGORITHM_VERSION, CardFields, check_fields, extract_card
from cards_app.rules.phrases import is_covered
from cards_app.rules.session_data import Line, read_session
from cards_app.rules.statements import Meaning

FIELDS = (
    "title",
    "summary_bullets",
    "decisions",
    "todos",
    "entities",
    "keywords",
    "notable_quotes",
)


NOT_COVERED = "The rules do not know this language: decisions and tasks may be missing."


@dataclass(frozen=True)
class Card(CardFields):
    """A card. ``extracted_at``: when it was made, if given; in UTC."""

    session_id: str
    algorithm_version: str = ALGORITHM_VERSION
    extracted_at: datetime | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
        return {
            "session_id": self.session_id,
            "algorithm_version": self.algorithm_version,
            "extracted_at": _iso(self.extracted_at),
            **self.fields(),
            "outcome": self.outcome,
            "language_covered": self.language_covered,
        }

    @property
    def language_covered(self) -> bool:
        """Return whether the rules have phrases for decisions and tasks in the card's language."""
        return is_covered("\n".join([self.title, *self.summary_bullets, *self.notable_quotes]))

    def to_yaml(self) -> str:
        """Return seed 001's template: three comments, then the fields.

        The same card gives the same bytes, on every platform and in any locale.
        """
        from cards_app.rules.card_yaml import card_yaml  # noqa: PLC0415 yaml is slow to import

        return card_yaml(
            self.fields(),
            session_id=self.session_id,
            generated=_iso(self.extracted_at),
            algorithm_version=self.algorithm_version,
            note="" if self.language_covered else NOT_COVERED,
        )

    def fields(self) -> dict[str, str | list[str]]:
        """Return the seven fields of the template, in its order."""
        values = {name: getattr(self, name) for name in FIELDS}
        return {
            name: value if isinstance(value, str) else list(value) for name, value in values.items()
        }


def generate_memory_card(
    session_data: object, *, extracted_at: datetime | None = None, meaning: Meaning | None = None
) -> Card:
    """Return the card of a session.

    session_data: ``{"session_id", "messages": [{"role", "content", "timestamp"}]}``. The same
    session and time give the same card. Each message is read once and not kept, so ``messages``
    may be an iterator over a long session. extracted_at: the time that the card shows, with a time
    zone; the clock is never read. meaning: returns the vector of a text by the embedder
    ``MEANING_MODEL`` (``rules/judge.py``); with it, more decisions and tasks are found.
    Raises SessionDataError, a ValueError whose ``path`` is the place of the invalid data, and
    ValueError for a time without a zone.
    """
    session_id, lines = read_session(session_data)
    return card_of_lines(lines, session_id=session_id, extracted_at=extracted_at, meaning=meaning)


def card_of_lines(
    lines: Iterable[Line],
    *,
    session_id: str,
    extracted_at: datetime | None = None,
    meaning: Meaning | None = None,
) -> Card:
    """Return the card of lines that were validated already."""
    if extracted_at is not None:
        if extracted_at.tzinfo is None:
            raise ValueError("extracted_at: must have a time zone.")
        extracted_at = extracted_at.astimezone(timezone.utc)
    fields = extract_card(lines, meaning=meaning)
    return Card(**vars(fields), session_id=session_id, extracted_at=extracted_at)


def check_card(card: object, *, session_data: object = None) -> list[str]:
    """Run seed 001's validation checklist.

    Return every failure with the path of its field; the list is empty for a valid card.

    card: a Card, or an object with its fields, such as from YAML. session_data: the data of the
    session. Only with it can the check detect a cut title without "...".
    """
    fields = {**card.fields(), "outcome": card.outcome} if isinstance(card, Card) else card
    if session_data is None:
        return check_fields(fields)
    _, lines = read_session(session_data)
    return check_fields(fields, lines=lines)


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat().replace("+00:00", "Z")
