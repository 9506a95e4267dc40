"""Measures contradiction, abstention, deletion and supersession: run from the project's root.

    python benchmarks/suites.py [--held-out] [--suite NAME] [--show]

The cases (``benchmarks/data/suites.json``) are invented, in eight languages, and were composed
without a look at the search's rules and word lists. A person of each case tells facts with
``/remember``, a month between them, beside public memories of the business in all languages, and
asks a month later: through ``recall`` as a turn does, and through a whole turn without a model,
which lists what it would tell. Without ``--held-out`` only the tuning half is asked. ``--show``
prints the cases that went wrong.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from own_database import own_database

# isort: split

from django.core.management import call_command
from django.db import transaction
from past_chats import chat_open, clock_at

from memories_app.embedding_models.vectors import due_vectors_make
from memories_app.facts.validation import NewMemory
from memories_app.models import Memory
from memories_app.store.remember import memories_remember
from memoryproject.foundation.integrations.llm.base import OfflineChatModel
from sessions_app.forgetting.dependencies import build_forget_dependencies
from sessions_app.forgetting.forget_objects import object_forget
from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.inbound.synchronous_chat import talk
from sessions_app.models import Chat, Message
from sessions_app.recall.facade import Viewer, recall
from sessions_app.turns.dependencies import build_turn_dependencies
from sessions_app.turns.turn_dependencies import Dependencies

DATA = Path(__file__).parent / "data" / "suites.json"
RECALL, TURN = "recall", "turn"
BEGUN = datetime(2026, 1, 5, 9, 0, tzinfo=timezone.utc)
BETWEEN = timedelta(days=30)
# More than a case has texts.
EVERYTHING = 50
Find = Callable[[str], list[str]]


@dataclass
class Tally:
    """``flaw``: what a suite counts besides, see SUITES."""

    right: int = 0
    wrong: int = 0
    missed: int = 0
    asked: int = 0
    flaw: int = 0

    def __add__(self, other: Tally) -> Tally:
        mine, others = vars(self), vars(other)
        return Tally(**{name: mine[name] + others[name] for name in mine})

    @property
    def precision(self) -> float:
        return self.right / max(1, self.right + self.wrong)

    @property
    def recall(self) -> float:
        return self.right / max(1, self.right + self.missed)


class Case:
    """One case of the data in a chat of its own."""

    def __init__(self, item: dict[str, Any], number: int, dependencies: Dependencies) -> None:
        self.item = item
        self.facts: list[str] = item["facts"]
        self.dependencies = dependencies
        self.whatsapp_chat = f"{15_550_300_000 + number}@c.us"
        self.ends = BEGUN + BETWEEN * (len(self.facts) + 1)

    def tell(self) -> None:
        """Let the person tell the facts."""
        self.chat: Chat = chat_open(self.whatsapp_chat, BEGUN)
        for number, fact in enumerate(self.facts):
            self.say(f"/remember {fact}", BEGUN + BETWEEN * number)
            Memory.objects.get(chat_id=self.chat.pk, content=fact)

    def say(self, text: str, at: datetime) -> str:
        """Write a message; return the answer."""
        with clock_at(at):
            return talk(
                whatsapp_chat=self.whatsapp_chat,
                content=text,
                dependencies=self.dependencies,
                rules=build_intake_rules(),
                now=at,
            ).reply

    def recalled(self, question: str, *, everything: bool = False) -> list[str]:
        """What a recall finds, best first. ``everything``: whatever its score."""
        rules = self.dependencies.rules
        with clock_at(self.ends):
            found = recall(
                query=question,
                viewer=Viewer("client", self.chat.pk),
                embedder=self.dependencies.embedder,
                top_k=EVERYTHING if everything else rules.top_k,
                min_similarity=0.0 if everything else rules.min_similarity,
            )
        return [hit.content for hit in found.hits]

    def told(self, question: str) -> list[str]:
        """The lines of an answer without a model. The question leaves no trace."""
        with transaction.atomic():
            reply = self.say(question, self.ends)
            transaction.set_rollback(True)
        return [line.removeprefix("• ") for line in reply.splitlines() if line.startswith("• ")]

    def ranks(self, texts: Sequence[str]) -> list[int | None]:
        """The place of each fact among texts, None where it isn't there."""
        return [
            next((place for place, text in enumerate(texts) if fact in text), None)
            for fact in self.facts
        ]


def changed(case: Case, find: Find, *, is_stale: Callable[[int | None, int | None], bool]) -> Tally:
    """A fact and a later one. Wrong: a text that isn't expected, and an older one that is stale."""
    tally = Tally()
    for question in case.item["questions"]:
        texts = find(question)
        older, newer = case.ranks(texts)
        expected = case.item["expected"]
        places = (older, newer)
        right = sum(places[number] is not None for number in expected)
        stale = is_stale(older, newer) if expected == [1] else False
        others = len(texts) - sum(place is not None for place in places)
        tally += Tally(right, others + stale, len(expected) - right, 1, stale)
    return tally


def contradiction(case: Case, find: Find) -> Tally:
    """The older of two statements may be shown, but only after the newer one."""

    def is_stale(older: int | None, newer: int | None) -> bool:
        return older is not None and (newer is None or older < newer)

    return changed(case, find, is_stale=is_stale)


def supersession(case: Case, find: Find) -> Tally:
    """What was replaced isn't shown at all."""
    return changed(case, find, is_stale=lambda older, newer: older is not None)


def abstention(case: Case, find: Find) -> Tally:
    """Right: nothing is found for what was never said. Wrong: nothing for what was said."""
    tally = Tally()
    for question in case.item["questions"]:
        silent = not find(question)
        tally += Tally(right=silent, missed=not silent, asked=1, flaw=not silent)
    return tally + Tally(wrong=not find(case.item["answerable"]))


SUITES = {
    "contradiction": (contradiction, "older first"),
    "abstention": (abstention, "found something"),
    "supersession": (supersession, "older shown"),
    "deletion": (None, "found before"),
}


def deletion(case: Case) -> dict[str, Tally]:
    """Right: nothing of what was erased is left. Wrong: another fact was erased with it.

    ``flaw`` is none here: how many of the questions found the fact before.
    """
    marks, questions = case.item["marks"], case.item["questions"]

    def leaks(texts: Iterable[str]) -> bool:
        return any(mark.casefold() in text.casefold() for mark in marks for text in texts)

    before = {
        RECALL: sum(leaks(case.recalled(question)) for question in questions),
        TURN: sum(leaks(case.told(question)) for question in questions),
    }
    # The person says it again, and the answer repeats what is remembered. Both are in the chat.
    case.say(case.facts[0], case.ends - timedelta(days=9))
    case.say(questions[0], case.ends - timedelta(days=2))
    said = Message.objects.get(chat=case.chat, content=case.facts[0])
    target = Memory.objects.get(chat_id=case.chat.pk, content=case.facts[0])
    for kind, erased in (("memory", target), ("message", said)):
        object_forget(kind=kind, object_id=erased.pk, dependencies=build_forget_dependencies())
    kept = case.facts[1] in case.recalled(case.facts[1], everything=True)
    found = {
        RECALL: [case.recalled(question, everything=True) for question in questions],
        TURN: [case.told(question) for question in questions],
    }
    tallies = {}
    for path, texts in found.items():
        left = sum(leaks(each) for each in texts)
        asked = len(questions)
        tallies[path] = Tally(asked - left, not kept, left, asked, before[path])
    return tallies


def measure(case: Case) -> dict[str, Tally]:
    """Tell and ask; the tallies by the way in which it was asked."""
    case.tell()
    function, _ = SUITES[case.item["suite"]]
    if function is None:
        return deletion(case)
    return {RECALL: function(case, case.recalled), TURN: function(case, case.told)}


def table(measured: Sequence[tuple[dict[str, Any], dict[str, Tally]]]) -> list[dict[str, Any]]:
    """Rows for each suite and way of asking: all, each half, each language."""
    groups: dict[tuple[str, str, str], Tally] = defaultdict(Tally)
    cases: dict[tuple[str, str, str], int] = defaultdict(int)
    for item, tallies in measured:
        for path, tally in tallies.items():
            for part in ("all", item["split"], item["language"]):
                key = item["suite"], path, part
                groups[key] += tally
                cases[key] += 1
    return [
        {
            "suite": suite,
            "through": path,
            "part": part,
            "cases": cases[suite, path, part],
            "precision": tally.precision,
            "recall": tally.recall,
            SUITES[suite][1]: tally.flaw / max(1, tally.asked),
        }
        for (suite, path, part), tally in sorted(groups.items(), key=_order)
    ]


def _order(group: tuple[tuple[str, str, str], Tally]) -> tuple[int, str, int, str]:
    suite, path, part = group[0]
    first = ("all", "tune", "held_out")
    return list(SUITES).index(suite), path, first.index(part) if part in first else 3, part


def public_store(texts: Sequence[str], dependencies: Dependencies) -> None:
    """Store what everybody may know of the business."""
    new = [NewMemory(content=text, visibility="public") for text in texts]
    with clock_at(BEGUN - BETWEEN):
        memories_remember(memories=new, embedder=dependencies.embedder)
        due_vectors_make(embedder=dependencies.embedder, seconds=math.inf)


def main() -> None:
    """Tells, asks and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--held-out", action="store_true", help="ask the held-out half too")
    parser.add_argument("--suite", choices=SUITES, help="only this one")
    parser.add_argument("--show", action="store_true", help="print what went wrong")
    parser.add_argument("--limit", type=int, help="so many cases of each suite")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    options = parser.parse_args()
    data = json.loads(DATA.read_text(encoding="utf-8"))
    by_suite: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for item in data["cases"]:
        if options.held_out or item["split"] == "tune":
            by_suite[item["suite"]].append(item)
    chosen = [item for suite in SUITES for item in by_suite[suite][: options.limit]]
    measured = []
    with own_database():
        call_command("createcachetable")
        built = build_turn_dependencies()
        dependencies = replace(built, chat_model=OfflineChatModel(), learn=None, enqueue=None)
        public_store(data["public"], dependencies)
        for number, item in enumerate(chosen):
            if options.suite in (None, item["suite"]):
                tallies = measure(Case(item, number, dependencies))
                measured.append((item, tallies))
                if options.show:
                    print("".join(_faults(item, tallies)), end="")
    rows = table(measured)
    print(f"embedder {dependencies.embedder.model_id}\n")
    print("| suite | through | part | cases | precision | recall | besides |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        *names, precision, recalled, flaw = row.values()
        besides = f"{SUITES[row['suite']][1]} {flaw:.3f}"
        figures = f"{precision:.3f}", f"{recalled:.3f}", besides
        print("| " + " | ".join([*map(str, names), *figures]) + " |")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def _faults(item: dict[str, Any], tallies: dict[str, Tally]) -> list[str]:
    return [
        f"{item['id']} through {path}: right {tally.right}, wrong {tally.wrong}, "
        f"missed {tally.missed}: {item['facts']} {item['questions']}\n"
        for path, tally in tallies.items()
        if tally.wrong or tally.missed
    ]


if __name__ == "__main__":
    main()
