"""Reads conversations in LoCoMo's form, with their questions and where each is answered.

LoCoMo: "Evaluating Very Long-Term Conversational Memory of LLM Agents", ACL 2024. Its licence
is CC BY-NC 4.0: the data is read by path and is no part of this project.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

# Its questions are about what was never said: there is nothing to find.
ADVERSARIAL = 5
CATEGORIES = {1: "several turns", 2: "time", 3: "open domain", 4: "one turn"}


@dataclass(frozen=True)
class Turn:
    """One thing said: as the text "SPEAKER: TEXT [CAPTION]", in which session, and when."""

    text: str
    session: int
    said_at: datetime


@dataclass(frozen=True)
class Question:
    """A question, the numbers of the turns that answer it, and its category."""

    text: str
    evidence: frozenset[int]
    category: int


@dataclass(frozen=True)
class Conversation:
    name: str
    speakers: tuple[str, str]
    turns: list[Turn]
    questions: list[Question]


def read_conversations(path: Path) -> list[Conversation]:
    """The conversations of a file. Questions that nothing answers are left out."""
    samples = json.loads(path.read_text(encoding="utf-8"))
    return [_conversation(sample) for sample in samples]


def _conversation(sample: dict[str, Any]) -> Conversation:
    said = sample["conversation"]
    turns: list[Turn] = []
    places: dict[str, int] = {}
    number = 1
    while f"session_{number}_date_time" in said:
        said_at = _time(said[f"session_{number}_date_time"])
        for turn in said.get(f"session_{number}", []):
            places[turn["dia_id"]] = len(turns)
            turns.append(Turn(_text(turn), number, said_at))
        number += 1
    questions = []
    for item in sample["qa"]:
        evidence = frozenset(places[key] for key in item.get("evidence", []) if key in places)
        if item["category"] != ADVERSARIAL and evidence:
            questions.append(Question(item["question"], evidence, item["category"]))
    speakers = (said["speaker_a"], said["speaker_b"])
    return Conversation(sample["sample_id"], speakers, turns, questions)


def _text(turn: dict[str, Any]) -> str:
    caption = f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return f"{turn['speaker']}: {turn['text']}{caption}"


def _time(written: str) -> datetime:
    """Such as "1:56 pm on 8 May, 2023"."""
    said_at = datetime.strptime(written, "%I:%M %p on %d %B, %Y")
    return said_at.replace(tzinfo=timezone.utc)
