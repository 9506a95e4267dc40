"""Reads conversations in LoCoMo's and LongMemEval's form, with their questions.

LoCoMo: "Evaluating Very Long-Term Conversational Memory of LLM Agents", ACL 2024. Its licence
is CC BY-NC 4.0: the data is read by path and is no part of this project. LongMemEval:
"Benchmarking Chat Assistants on Long-Term Interactive Memory", ICLR 2025.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

# Its questions are about what was never said: there is nothing to find.
ADVERSARIAL = 5
CATEGORIES = {1: "several turns", 2: "time", 3: "open domain", 4: "one turn"}
ABSTENTION = "_abs"


class DataError(ValueError):
    """The file isn't in the form that was named."""


@dataclass(frozen=True)
class Turn:
    """One thing said: as the text "SPEAKER: TEXT [CAPTION]", in which session, and when."""

    text: str
    session: int
    said_at: datetime
    role: str = "user"


@dataclass(frozen=True)
class Question:
    """A question, the numbers of the turns that answer it, and its category.

    ``abstains``: its answer was never said. ``answer``: the right one, or what is said of it in
    the data. ``kind``: the category by its name.
    """

    text: str
    evidence: frozenset[int]
    category: int = 0
    key: str = ""
    kind: str = ""
    answer: str = ""
    abstains: bool = False
    asked_at: datetime | None = None


@dataclass(frozen=True)
class Conversation:
    """``speakers``: of a conversation of two people; otherwise a person talks to an assistant."""

    name: str
    speakers: tuple[str, ...]
    turns: list[Turn]
    questions: list[Question]


def read_conversations(path: Path) -> list[Conversation]:
    """The conversations of a LoCoMo file. Questions that nothing answers are left out."""
    return [
        replace(each, questions=[one for one in each.questions if _is_answered(one)])
        for each in read_locomo(path)
    ]


def _is_answered(question: Question) -> bool:
    return not question.abstains and bool(question.evidence)


def read_locomo(path: Path) -> list[Conversation]:
    """The conversations of a LoCoMo file with all their questions. Raises DataError."""
    return _read(path, _locomo)


def read_longmemeval(path: Path) -> list[Conversation]:
    """The questions of a LongMemEval file, each with its own history. Raises DataError."""
    return _read(path, _longmemeval)


def _read(path: Path, one: Callable[[dict[str, Any]], Conversation]) -> list[Conversation]:
    try:
        samples = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: {error}") from error
    if not isinstance(samples, list):
        raise DataError(f"{path}: a list is expected")
    found = []
    for place, sample in enumerate(samples):
        try:
            found.append(one(sample))
        except KeyError as error:
            raise DataError(f"{path}: entry {place} has no {error}") from error
        except (TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{path}: entry {place}: {error}") from error
    return found


def _locomo(sample: dict[str, Any]) -> Conversation:
    said = sample["conversation"]
    speakers = (said["speaker_a"], said["speaker_b"])
    turns: list[Turn] = []
    places: dict[str, int] = {}
    number = 1
    while f"session_{number}_date_time" in said:
        said_at = _time(said[f"session_{number}_date_time"])
        for turn in said.get(f"session_{number}", []):
            places[turn["dia_id"]] = len(turns)
            role = "user" if turn["speaker"] == speakers[0] else "assistant"
            turns.append(Turn(_text(turn), number, said_at, role))
        number += 1
    # The questions are about what was said by then.
    asked_at = turns[-1].said_at + timedelta(days=1) if turns else None
    questions = [
        Question(
            item["question"],
            frozenset(places[key] for key in item.get("evidence", []) if key in places),
            item["category"],
            f"{sample['sample_id']}-{place:03}",
            CATEGORIES.get(item["category"], "adversarial"),
            str(item.get("answer", "")),
            item["category"] == ADVERSARIAL,
            asked_at,
        )
        for place, item in enumerate(sample["qa"])
    ]
    return Conversation(sample["sample_id"], speakers, turns, questions)


def _longmemeval(sample: dict[str, Any]) -> Conversation:
    dates = [_stamp(written) for written in sample["haystack_dates"]]
    sessions, ids = sample["haystack_sessions"], sample["haystack_session_ids"]
    if not len(dates) == len(sessions) == len(ids):
        raise ValueError("haystack_dates, _sessions and _session_ids differ in length")
    turns: list[Turn] = []
    marked, in_session = set(), set()
    for number, place in enumerate(sorted(range(len(ids)), key=dates.__getitem__), start=1):
        for turn in sessions[place]:
            if turn.get("has_answer"):
                marked.add(len(turns))
            if ids[place] in sample["answer_session_ids"]:
                in_session.add(len(turns))
            turns.append(Turn(turn["content"], number, dates[place], turn["role"]))
    key = str(sample["question_id"])
    abstains = key.endswith(ABSTENTION)
    question = Question(
        sample["question"],
        frozenset(marked or in_session),
        key=key,
        kind=sample["question_type"] + (" (abstention)" if abstains else ""),
        answer=str(sample["answer"]),
        abstains=abstains,
        asked_at=_stamp(sample["question_date"]),
    )
    return Conversation(key, (), turns, [question])


def _text(turn: dict[str, Any]) -> str:
    caption = f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return f"{turn['speaker']}: {turn['text']}{caption}"


def _time(written: str) -> datetime:
    """Such as "1:56 pm on 8 May, 2023"."""
    said_at = datetime.strptime(written, "%I:%M %p on %d %B, %Y")
    return said_at.replace(tzinfo=timezone.utc)


def _stamp(written: str) -> datetime:
    """Such as "2023/05/20 (Sat) 02:21"."""
    day, *_, clock = written.split()
    return datetime.strptime(f"{day} {clock}", "%Y/%m/%d %H:%M").replace(tzinfo=timezone.utc)
