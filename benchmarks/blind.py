"""Measures what recall finds of the blind set: run from the project's root.

    python benchmarks/blind.py [--held-out]

The set (``benchmarks/data/blind_pairs.json``) was written by somebody who knew neither the rules
of the search nor its word lists. All its memories are in one scope. Counted is what is recalled
by default: a score of 0.7 or more, the first five. Without ``--held-out`` only the tuning half
is asked, so that nobody tunes on the other half by accident.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from calibrate_recall import (
    RELEVANT,
    TOP_K,
    Measured,
    Question,
    read_pairs,
)

from memoryproject.foundation.integrations.embedders.base import Calibration
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from memoryproject.foundation.retrieval.query import IN_USE, Constants

PAIRS = Path(__file__).parent / "data" / "blind_pairs.json"
SINGLE, COMPOUND, NOTHING = "single", "compound", "nothing"
LANGUAGES = ("en", "he", "mixed")


@dataclass(frozen=True)
class Recalled:
    """What one question recalls: how many right and wrong ones, and how many it misses."""

    question: Question
    right: int
    wrong: int
    missed: int


def recall_all(
    measured: Measured,
    split: str,
    curve: Calibration,
    constants: Constants = IN_USE,
    relevant: float = RELEVANT,
) -> list[Recalled]:
    """Asks every question of ``split``."""
    asked = []
    for number, question in enumerate(measured.questions):
        if question.split != split:
            continue
        scores = measured.scores(number, curve, constants)
        best = sorted(range(len(scores)), key=lambda text: -scores[text])[:TOP_K]
        found = {text for text in best if scores[text] >= relevant}
        right = len(found & question.relevant)
        asked.append(Recalled(question, right, len(found) - right, len(question.relevant) - right))
    return asked


def table(split: str, asked: Sequence[Recalled]) -> list[str]:
    """Lines of a table: precision and recall of questions that something answers, and of the
    others the share that recalls nothing."""

    def of_kind(kind: str) -> Callable[[Recalled], bool]:
        return lambda item: item.question.form == kind

    def in_language(language: str) -> Callable[[Recalled], bool]:
        return lambda item: item.question.language == language

    answered = [item for item in asked if item.question.form != NOTHING]
    parts: list[tuple[str, list[Recalled]]] = [
        ("all", list(asked)),
        ("answered", answered),
        *((kind, list(filter(of_kind(kind), asked))) for kind in (SINGLE, COMPOUND)),
        *((name, list(filter(in_language(name), answered))) for name in LANGUAGES),
    ]
    lines = [f"| {split} | {name} | {_figures(part)} |" for name, part in parts if part]
    nothing = list(filter(of_kind(NOTHING), asked))
    for name in ("", *LANGUAGES):
        part = [item for item in nothing if name in ("", item.question.language)]
        if part:
            silent = sum(not item.wrong for item in part)
            title = f"nothing {name}".strip()
            lines.append(f"| {split} | {title} | {silent / len(part):.3f} of {len(part)} silent |")
    return lines


def _figures(part: Sequence[Recalled]) -> str:
    right, wrong, missed = (
        sum(getattr(item, name) for item in part) for name in ("right", "wrong", "missed")
    )
    precision, recall = right / max(1, right + wrong), right / max(1, right + missed)
    return f"{len(part)} | precision {precision:.3f} | recall {recall:.3f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Asks and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--held-out", action="store_true", help="ask the held-out half too")
    options = parser.parse_args(arguments)
    embedder = WordLlamaEmbedder()
    measured = read_pairs(embedder, PAIRS)
    for split in ("tune", "held_out") if options.held_out else ("tune",):
        print("\n".join(table(split, recall_all(measured, split, embedder.calibration))))


if __name__ == "__main__":
    main()
