"""Render a card in a few lines, for a prompt."""

from __future__ import annotations

from cards_app.rules.card import CardFields
from cards_app.rules.session_data import Line
from cards_app.rules.speakers import section_words
from memoryproject.foundation.text.characters import cut_at_word

MIN_LENGTH = 80


def render_card(card: CardFields, *, longest: int) -> str:
    """Return the title, then decisions, tasks, questions, names and keywords.

    Return as many lines as fit into ``longest`` characters (80 or more), in the language of the
    title.
    """
    words = section_words([Line("user", card.title)])
    lines = [
        f"{words.about}: {card.title}",
        *(f"{words.decisions}: {text}" for text in card.decisions),
        *(f"{words.todos}: {text}" for text in card.todos),
        *(f"{words.questions}: {text}" for text in card.notable_quotes),
        *_listed(words.names, card.entities),
        *_listed(words.details, card.keywords),
    ]
    text = cut_at_word(lines[0], longest)
    for line in lines[1:]:
        if len(text) + len(line) < longest:
            text += f"\n{line}"
    return text


def _listed(name: str, words: tuple[str, ...]) -> list[str]:
    return [f"{name}: {', '.join(words)}"] if words else []
