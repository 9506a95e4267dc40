"""How answers are measured, and how the files of others are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.answer_measures import (
    Prices,
    exact_match,
    judge_prompt,
    read_verdict,
    recalled_at,
    summarise,
    token_f1,
)
from benchmarks.conversations import DataError, read_conversations, read_locomo, read_longmemeval
from tests.tables import table


@table(
    ("gold", "answer", "exact", "f1"),
    [
        ("The Red Lion", "red lion!", 1.0, 1.0),
        ("2022", "In 2022.", 0.0, 2 / 3),
        ("Zoë", "zoe", 1.0, 1.0),
        ("שלום עולם", "עולם", 0.0, 2 / 3),
        ("東京", "東京です", 0.0, 2 / 3),
        ("blue", "red", 0.0, 0.0),
        ("blue blue", "blue", 0.0, 2 / 3),
        ("blue", "", 0.0, 0.0),
    ],
)
def test_answers_are_compared_by_words(gold: str, answer: str, exact: float, f1: float) -> None:
    assert exact_match(gold, answer) == exact
    assert token_f1(gold, answer) == pytest.approx(f1)


def test_evidence_counts_where_it_is_among_the_first() -> None:
    assert recalled_at(["a", "b"], ["x", "a", "b"], 2) == 0.5
    assert recalled_at(["a", "b"], ["x", "a", "b"], 3) == 1.0
    assert recalled_at(["a"], [], 5) == 0.0


def test_the_judge_is_told_whether_there_is_anything_to_know() -> None:
    answerable, user = judge_prompt("Who?", "Noa", "It was Noa.", abstains=False)
    unanswerable, _ = judge_prompt("Who?", "Not said", "I don't know.", abstains=True)
    assert answerable != unanswerable
    assert "Noa" in user
    assert "It was Noa." in user


def test_verdicts_are_read_from_what_models_write() -> None:
    assert read_verdict('```json\n{"reason": "same", "correct": true}\n```') == (True, "same")
    assert read_verdict('{"correct": false}') == (False, "")
    for unreadable in ("yes", "", "{}", '{"correct": "yes"}', "[true]"):
        with pytest.raises(ValueError, match=r"."):
            read_verdict(unreadable)


def record(kind: str, *, correct: bool | None, **more: Any) -> dict[str, Any]:
    return {
        "kind": kind,
        "abstains": kind == "adversarial",
        "state": "open" if correct is None else "done",
        "correct": correct,
        "measures": {},
        "tokens": {"in": 1_000_000, "out": 500_000},
        "judge_tokens": {"in": 2_000_000, "out": None},
        "timings": {"answer_ms": 7},
        **more,
    }


def test_a_summary_keeps_apart_what_nothing_answers() -> None:
    rows = summarise(
        [
            record("time", correct=True),
            record("time", correct=False, errors=[{}, {}]),
            record("adversarial", correct=True),
            {"kind": "time", "abstains": False, "state": "open"},
        ],
        Prices(2.0, 4.0),
        Prices(1.0, 1.0),
    )
    by_name = {row["category"]: row for row in rows}
    assert [row["category"] for row in rows[:2]] == ["answerable", "nothing to find"]
    assert by_name["answerable"]["judged"] == 0.5
    assert (by_name["time"]["questions"], by_name["time"]["finished"]) == (3, 2)
    assert by_name["nothing to find"]["judged"] == 1.0
    # Two answers of 2 + 2, and two verdicts of 2.
    assert by_name["time"]["cost"] == pytest.approx(12.0)
    assert by_name["time"]["errors"] == 2


LOCOMO = {
    "sample_id": "c1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Bo",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "I bought a kayak"},
            {"speaker": "Bo", "dia_id": "D1:2", "text": "Look", "blip_caption": "a lake"},
        ],
    },
    "qa": [
        {"question": "What?", "answer": 5, "evidence": ["D1:1", "D9:9"], "category": 4},
        {"question": "Why?", "adversarial_answer": "x", "evidence": ["D1:2"], "category": 5},
        {"question": "How?", "answer": "so", "evidence": [], "category": 3},
    ],
}
LONGMEMEVAL = {
    "question_id": "q7_abs",
    "question_type": "multi-session",
    "question": "Which colour?",
    "answer": "You didn't say.",
    "question_date": "2023/05/30 (Tue) 23:40",
    "haystack_session_ids": ["late", "early"],
    "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/01 (Mon) 10:00"],
    "haystack_sessions": [
        [{"role": "user", "content": "late", "has_answer": True}],
        [{"role": "user", "content": "early"}, {"role": "assistant", "content": "yes"}],
    ],
    "answer_session_ids": ["early"],
}


def written(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_locomo_is_read_with_the_questions_that_nothing_answers(tmp_path: Path) -> None:
    path = written(tmp_path / "data.json", [LOCOMO])
    (found,) = read_locomo(path)
    assert [turn.text for turn in found.turns] == ["Ann: I bought a kayak", "Bo: Look [a lake]"]
    first, adversarial, _ = found.questions
    assert (first.answer, first.evidence, first.kind) == ("5", frozenset({0}), "one turn")
    assert adversarial.abstains
    assert first.asked_at is not None
    assert first.asked_at.isoformat() == "2023-05-09T13:56:00+00:00"
    (left,) = read_conversations(path)
    assert [question.text for question in left.questions] == ["What?"]


def test_longmemeval_is_read_in_the_order_of_time(tmp_path: Path) -> None:
    (found,) = read_longmemeval(written(tmp_path / "data.json", [LONGMEMEVAL]))
    (question,) = found.questions
    assert [(turn.text, turn.role) for turn in found.turns] == [
        ("early", "user"),
        ("yes", "assistant"),
        ("late", "user"),
    ]
    assert question.evidence == {2}
    assert question.abstains
    assert question.kind == "multi-session (abstention)"


@pytest.mark.parametrize(
    "content",
    [
        {},
        [1],
        [{**LONGMEMEVAL, "haystack_dates": []}],
        [{**LONGMEMEVAL, "question_date": "yesterday"}],
        [{key: value for key, value in LONGMEMEVAL.items() if key != "answer"}],
    ],
)
def test_another_form_is_refused_by_name(tmp_path: Path, content: Any) -> None:
    path = written(tmp_path / "data.json", content)
    with pytest.raises(DataError, match="data.json"):
        read_longmemeval(path)
