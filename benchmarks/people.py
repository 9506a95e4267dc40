"""Measures what recall finds of what people ask small businesses: run from the project's root.

    python benchmarks/people.py [--half tuning] [--owner] [--json FILE]

The set (``benchmarks/data/people.json``) was written by somebody who had seen neither the rules of
the search nor its word lists: facts of twenty businesses, each with a chat of its own, and
questions in ten languages. Each question is asked in its chat, by its client; with ``--owner`` by
the owner, who sees the facts of all chats. There a fact of another business may answer too, but
counts as wrong, so there are no false answers to count.

Of the questions with an answer: the share where the first text, or one of the first three, is an
answer, and the share of all recalled texts that are answers; at the default threshold and, "at 0",
without one. Of the others: how many recall anything. Questions in languages beyond the ten count
as ``extra`` only.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from own_database import own_database

# isort: split

from memories_app.embedding_models.vectors import due_vectors_make
from memories_app.facts.validation import NewMemory
from memories_app.store.deduplicate import CREATED
from memories_app.store.remember import memories_remember
from memoryproject.foundation.integrations.embedders.base import Embedder
from sessions_app.embedding.facade import embedder
from sessions_app.models import Chat
from sessions_app.recall.facade import Hit, Viewer, recall

DATA = Path(__file__).parent / "data" / "people.json"
HALVES = ("tuning", "held_out")
# As many questions without an answer as false answers are given of.
SCALE = 25

Question = dict[str, Any]
Figures = dict[str, float | None]


@dataclass(frozen=True)
class Asked:
    """A question, and for each text that it recalls whether it is an answer: at the default
    threshold, and without one."""

    question: Question
    default: list[bool]
    without: list[bool]


def ask_all(data: dict[str, Any], asked_by_owner: bool) -> list[Asked]:
    """Store the facts, and ask every question."""
    chosen = embedder()
    scopes = dict.fromkeys(fact["scope"] for fact in data["facts"])
    chats = {
        scope: Chat.objects.create(whatsapp_chat=f"1555010{number:04}@c.us", provider="console")
        for number, scope in enumerate(scopes)
    }
    facts = store(data["facts"], chats, chosen)

    def answers(question: Question, **threshold: Any) -> list[bool]:
        if asked_by_owner:
            viewer = Viewer(user_role="godfather")
        else:
            viewer = Viewer(user_role="client", chat_id=chats[question["scope"]].pk)
        found = recall(query=question["text"], viewer=viewer, embedder=chosen, **threshold)
        if found.degraded:
            raise SystemExit(f"The search did not work as it should for {question['id']}.")
        return [is_answer(hit, question, facts) for hit in found.hits]

    return [
        Asked(question, answers(question), answers(question, min_similarity=0.0))
        for question in data["questions"]
    ]


def store(
    facts: Sequence[dict[str, str]], chats: dict[str, Chat], chosen: Embedder
) -> dict[UUID, str]:
    """Store the facts as memories of their chats; return which fact each memory is."""
    chance = random.Random(34)
    stored = memories_remember(
        memories=[
            NewMemory(content=fact["text"], visibility="chat", chat_id=chats[fact["scope"]].pk)
            for fact in facts
        ],
        embedder=chosen,
        new_id=lambda: UUID(int=chance.getrandbits(128), version=4),
    )
    # As the workers do.
    due_vectors_make(embedder=chosen, seconds=math.inf)
    for fact, one in zip(facts, stored, strict=True):
        if one.status != CREATED:
            print(f"{fact['id']} was taken for another fact, or its newer form: {one.status}.")
    return {one.memory.pk: fact["id"] for fact, one in zip(facts, stored, strict=True)}


def is_answer(hit: Hit, question: Question, facts: dict[UUID, str]) -> bool:
    return facts[hit.id] in question["answers"]


def tables(asked: Sequence[Asked], asked_by_owner: bool) -> dict[str, Figures]:
    """The figures of all questions, then by language and by kind."""
    ten = [one for one in asked if not one.question.get("extra")]
    parts: list[tuple[str, Sequence[Asked]]] = [("all", ten)]
    for name in ("language", "kind"):
        for value in sorted({one.question[name] for one in ten}):
            parts.append((value, [one for one in ten if one.question[name] == value]))
    parts.append(("extra", [one for one in asked if one.question.get("extra")]))
    return {name: figures(part, asked_by_owner) for name, part in parts}


def figures(asked: Sequence[Asked], asked_by_owner: bool) -> Figures:
    answered = [one for one in asked if one.question["answers"]]
    row: Figures = {"questions": len(answered)}
    ways: dict[str, Callable[[Asked], list[bool]]] = {
        "": lambda one: one.default,
        " at 0": lambda one: one.without,
    }
    for way, recalled in ways.items():
        texts = [is_right for one in answered for is_right in recalled(one)]
        row |= {
            f"first{way}": share([any(recalled(one)[:1]) for one in answered]),
            f"first 3{way}": share([any(recalled(one)[:3]) for one in answered]),
            f"precision{way}": share(texts),
        }
    if asked_by_owner:
        return row
    others = [one for one in asked if not one.question["answers"]]
    false = sum(bool(one.default) for one in others)
    return row | {
        "no answer": len(others),
        "false answers": false,
        f"false of {SCALE}": round(SCALE * false / len(others), 1) if others else None,
    }


def share(outcomes: Sequence[bool]) -> float | None:
    return round(sum(outcomes) / len(outcomes), 3) if outcomes else None


def print_table(half: str, rows: dict[str, Figures]) -> None:
    titles = list(rows["all"])
    print(f"\n| {half} | {' | '.join(titles)} |\n|{' --- |' * (len(titles) + 1)}")
    for name, row in rows.items():
        cells = ["–" if row[title] is None else str(row[title]) for title in titles]
        print(f"| {name} | {' | '.join(cells)} |")


def main() -> None:
    """Ask and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=HALVES, help="ask only this half")
    parser.add_argument("--owner", action="store_true", help="ask as the owner, over all chats")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    data = json.loads(DATA.read_text(encoding="utf-8"))
    halves = [options.half] if options.half else HALVES
    data["questions"] = [one for one in data["questions"] if one["half"] in halves]
    with own_database():
        asked = ask_all(data, options.owner)
    figured = {
        half: tables([one for one in asked if one.question["half"] == half], options.owner)
        for half in halves
    }
    for half, rows in figured.items():
        print_table(half, rows)
    if options.json:
        options.json.write_text(json.dumps(figured, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
