"""The complete example of seed 001, read as the field tables say.

Three things differ from the print: keywords are ordered by their frequency, the decision is
cut where 100 characters end, and a todo that wasn't cut has no "...".
"""

from __future__ import annotations

from cards_app.rules.card import UNTITLED, CardFields, extract_card
from cards_app.rules.session_data import Line

EXAMPLE = [
    Line(
        "user",
        "I need help deploying the authentication service to production with zero downtime. "
        "We're using Docker and Kubernetes.",
    ),
    Line(
        "assistant",
        "I can help with that. For zero-downtime deployment, I recommend using a blue-green "
        "deployment strategy. What's your current setup?",
    ),
    Line("user", "We have 3 replicas running on EKS. Should we increase that during deployment?"),
    Line(
        "assistant",
        "Yes, I've decided to recommend increasing to 6 replicas during deployment. We need to "
        "ensure the health checks are properly configured first.",
    ),
]


def test_the_complete_example() -> None:
    assert extract_card(EXAMPLE) == CardFields(
        title="I need help deploying the authentication service to production with zero...",
        summary_bullets=(
            "[user] I need help deploying the authentication service to production with zero "
            "downtime. We're...",
            "[assistant] I can help with that. For zero-downtime deployment, I recommend using a "
            "blue-green...",
            "[user] We have 3 replicas running on EKS. Should we increase that during deployment?",
        ),
        decisions=(
            "Yes, I've decided to recommend increasing to 6 replicas during deployment. "
            "We need to ensure the...",
        ),
        todos=("We need to ensure the health checks are properly configured first.",),
        entities=("Docker", "Kubernetes", "EKS"),
        keywords=(
            *("deployment", "downtime", "using", "recommend", "replicas", "during"),
            *("deploying", "authentication", "service", "production"),
        ),
        notable_quotes=("What's your current setup?", "Should we increase that during deployment?"),
    )


def test_a_conversation_without_lines_has_an_untitled_card() -> None:
    assert extract_card([]) == CardFields(UNTITLED, (), (), (), (), (), ())
