"""The YAML form of a card: seed 001's template, one line a text, deterministic bytes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from cards_app.rules.card import CardFields
from cards_app.rules.outcome import Outcome
from cards_app.rules.speakers import SectionWords, section_words
from memoryproject.foundation.text.characters import cut_at_word

HEADER = (
    "# Memory Card for Session: {session_id}\n"
    "# Generated: {generated}\n"
    "# Algorithm: v{algorithm_version}\n\n"
)
NOT_GIVEN = "not given"

# Characters that change the direction of text or are invisible: unescaped, they would make a
# line look like another one.
_UNSEEN = re.compile("[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069]")


class _Text(str):
    """A text that is always written in quotation marks."""


class _Dumper(yaml.SafeDumper):
    """Indent lists by two spaces below their names, as in the template."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _write_text(dumper: yaml.SafeDumper, text: _Text) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style='"')


_Dumper.add_representer(_Text, _write_text)


def card_yaml(
    fields: Mapping[str, str | Sequence[str]],
    *,
    session_id: str,
    generated: str | None,
    algorithm_version: str,
    note: str = "",
) -> str:
    """Return the fields under a header of three comments, and of ``note`` if there is one.

    Every text is preserved: characters that YAML can't hold (control characters, surrogates) or
    that are invisible are escaped.
    """
    header = HEADER.format(
        session_id=session_id, generated=generated or NOT_GIVEN, algorithm_version=algorithm_version
    )
    if note:
        header = header.removesuffix("\n") + f"# {note}\n\n"
    blocks = (_block(name, value) for name, value in fields.items())
    return _UNSEEN.sub(_escaped, header + "\n".join(blocks))


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04X}"


def _block(name: str, value: str | Sequence[str]) -> str:
    marked: Any = _Text(value) if isinstance(value, str) else [_Text(item) for item in value]
    return yaml.dump(
        {name: marked}, Dumper=_Dumper, allow_unicode=True, width=float("inf"), line_break="\n"
    )


# Render a card in a few lines, for a prompt.

MIN_LENGTH = 80


def render_card(card: CardFields, *, longest: int) -> str:
    """Return the title, how it ended, then decisions, tasks, questions, names and keywords.

    Return as many lines as fit into ``longest`` characters (80 or more), in the language of the
    title.
    """
    words = section_words([card.title])
    settled, is_open = (card.outcome["settled"], card.outcome["open"]) if card.outcome else ("", [])
    lines = [
        f"{words.about}: {card.title}",
        *_ended(card.outcome, words),
        *(f"{words.decisions}: {text}" for text in card.decisions if text != settled),
        *(f"{words.todos}: {text}" for text in card.todos),
        *(f"{words.questions}: {text}" for text in card.notable_quotes if text not in is_open),
        *_listed(words.names, card.entities),
        *_listed(words.details, card.keywords),
    ]
    text = cut_at_word(lines[0], longest)
    for line in lines[1:]:
        if len(text) + len(line) < longest:
            text += f"\n{line}"
    return text


def _ended(outcome: Outcome | None, words: SectionWords) -> Iterator[str]:
    if outcome is None:
        return
    if outcome["settled"]:
        yield f"{words.settled}: {outcome['settled']}"
    yield from (f"{words.open}: {text}" for text in outcome["open"])
    if outcome["acts"]:
        yield f"{words.acts}: {words.speaker(outcome['acts']).removesuffix(': ')}"


def _listed(name: str, words: tuple[str, ...]) -> list[str]:
    return [f"{name}: {', '.join(words)}"] if words else []
