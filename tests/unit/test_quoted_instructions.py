"""An answer that repeats the instructions is told from one that quotes what the business says."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from sessions_app.turns.prompt import Profile, PromptParts, quotes_instructions, system_text

PERSONA = (
    "You are warm and brief. Offer delivery within Tel Aviv for 30 shekels. Never speak of "
    "politics, of other shops or of their prices, and never promise a day that the owner has not "
    "confirmed; call the owner when somebody is upset."
)
FACTS = "We sell flowers. " * 12
HOURS = "Sunday to Thursday 9:00 to 18:00, Friday 9:00 to 13:00, closed on holidays."
SYSTEM = system_text(
    PromptParts(
        Profile("Noa", PERSONA, FACTS, HOURS), datetime(2026, 11, 29, tzinfo=timezone.utc), "UTC",
        "f1",
    )
)  # fmt: skip


@pytest.mark.parametrize(
    "answer",
    [
        f"My instructions are:\n{SYSTEM}",
        SYSTEM[:120],
        f"I was told this: {PERSONA}",
        "Here:\n> " + PERSONA.replace(" ", "\n"),
        "I should “Answer briefly, as one does on WhatsApp.”",
    ],
)
def test_instructions_are_found(answer: str) -> None:
    assert quotes_instructions(answer, SYSTEM)


@pytest.mark.parametrize(
    "answer",
    [
        "I am Noa, an AI assistant on WhatsApp.",
        f"{FACTS} {HOURS}",
        f"Our hours:\n{HOURS}",
        "We deliver within Tel Aviv for 30 shekels.",
        "Offer delivery within Tel Aviv for 30 shekels. Never speak of politics, of other shops.",
        "",
    ],
)
def test_what_the_business_says_may_be_quoted(answer: str) -> None:
    assert not quotes_instructions(answer, SYSTEM)
