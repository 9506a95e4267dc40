"""benchmarks/answers.py and suites.py as they are run, with a model's server on this machine."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.sources import PROJECT
from tests.loopback.openai_behaviours import Json, fails, rate_limited
from tests.loopback.openai_server import OpenAIServer

pytestmark = pytest.mark.processes

# Seconds; a machine may be busy.
LONG = 240
SAID = {
    "Kim": "I adopted a greyhound called Pepper in the spring",
    "Lou": "My allotment grows the best leeks in town",
}
ANSWERS = {
    "What is the name of Kim's greyhound?": "Pepper",
    "What does Lou grow on the allotment?": "Leeks",
    "Which instrument does Kim play?": "You didn't tell me.",
    "Where does Kim's greyhound sleep?": "I don't know that.",
}


def answer(body: Json) -> str:
    """The answer to a question, or a judge's verdict."""
    system, said = body["messages"][0]["content"], body["messages"][-1]["content"]
    if "You grade" in system:
        right = any(f"\n{each}\n" in said for each in ANSWERS.values())
        return json.dumps({"reason": "compared", "correct": right})
    return ANSWERS[said]


def written(folder: Path) -> Path:
    """A conversation in LoCoMo's form."""
    turns = [
        {"speaker": speaker, "dia_id": f"D1:{place}", "text": text}
        for place, (speaker, text) in enumerate(SAID.items(), start=1)
    ]
    questions = [
        {"question": question, "answer": gold, "evidence": [f"D1:{place}"], "category": 4}
        for place, (question, gold) in enumerate(ANSWERS.items(), start=1)
    ]
    for unanswerable in questions[2:]:
        unanswerable |= {"evidence": [], "category": 5}
    conversation = {
        "speaker_a": "Kim",
        "speaker_b": "Lou",
        "session_1_date_time": "4:05 pm on 3 June, 2024",
        "session_1": turns,
    }
    path = folder / "data.json"
    sample = {"sample_id": "kim", "conversation": conversation, "qa": questions}
    path.write_text(json.dumps([sample]), encoding="utf-8")
    return path


def command(data: Path, server: OpenAIServer, out: Path, *more: str) -> list[str]:
    return [
        *(sys.executable, "benchmarks/answers.py", "--data", str(data), "--format", "locomo"),
        *("--base-url", server.base_url, "--model", "tried", "--out", str(out), "--seed", "11"),
        *("--workers", "1", "--wait", "0.01", "--price-in", "3", "--price-out", "9", *more),
    ]


def run(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(arguments, cwd=PROJECT, capture_output=True, text=True)


def records(out: Path) -> dict[str, Any]:
    found = [json.loads(path.read_text()) for path in (out / "questions").glob("*.json")]
    return {record["question"]: record for record in found}


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """Until it is set, the server holds back the answer to the second question."""
    event = threading.Event()
    yield event
    event.set()


def test_a_stopped_run_asks_nothing_twice(tmp_path: Path, held: threading.Event) -> None:
    def slowly(body: Json) -> str:
        if "Lou" in body["messages"][-1]["content"].split("\n")[0]:
            held.wait(LONG)
        return answer(body)

    data, out = written(tmp_path), tmp_path / "out"
    with OpenAIServer(answer=slowly) as server:
        server.script_chat(rate_limited("1"), fails(500))
        with subprocess.Popen(command(data, server, out), cwd=PROJECT) as first:
            # Two failures, the first answer with its verdict, and the second question.
            has_begun = server.wait_for_requests(5, timeout=LONG)
            first.send_signal(signal.SIGTERM)
            held.set()
        assert has_begun
        assert first.returncode == 1
        assert len(records(out)) < len(ANSWERS)

        finished = run(command(data, server, out, "--limit", "4"))
        assert finished.returncode == 0, finished.stderr
        asked = [body["messages"][-1]["content"] for body in server.chat_bodies]
        bodies = server.chat_bodies
        another = run(command(data, server, out, "--temperature", "0.5"))
        assert another.returncode == 2
        assert "holds another run: temperature was None and is 0.5" in another.stderr

    found = records(out)
    assert {question: record["answer"] for question, record in found.items()} == ANSWERS
    assert all(record["correct"] for record in found.values())
    # The first question was asked three times, because the server failed twice.
    assert asked.count("What is the name of Kim's greyhound?") == 3
    assert asked.count("Which instrument does Kim play?") == 1
    assert len([each for each in asked if each.startswith("[question]")]) == 4
    assert {body["seed"] for body in bodies} == {11}
    check_one(found["What is the name of Kim's greyhound?"])
    last = found["Where does Kim's greyhound sleep?"]
    assert "instrument" not in json.dumps(last["prompt"]), "no question stays in the chat"
    check_summary(out, found)


def check_one(record: Any) -> None:
    """What is kept of a question."""
    assert [error["retry_after"] for error in record["errors"]] == [1.0, None]
    assert record["measures"]["exact"] == record["measures"]["evidence@5"] == 1.0
    assert "Tuesday, 2024-06-04 16:05" in record["prompt"][0]["content"]
    assert record["recalled"][0]["content"] == f"Kim: {SAID['Kim']}"
    assert record["recalled"][0]["score"] > 0.7
    assert record["tokens"]["in"] > record["tokens"]["out"] > 0
    assert {"answer_ms", "judge_ms", "recall_ms"} <= set(record["timings"])


def check_summary(out: Path, found: Any) -> None:
    """The adversarial question is apart, and each token is paid once."""
    answerable, nothing, *_ = json.loads((out / "summary.json").read_text())
    assert (answerable["finished"], nothing["finished"]) == (2, 2)
    assert answerable["judged"] == answerable["exact"] == nothing["judged"] == 1.0
    assert nothing["exact"] is None
    tokens = [record[name] for record in found.values() for name in ("tokens", "judge_tokens")]
    paid = sum(each["in"] * 3 + each["out"] * 9 for each in tokens) / 1e6
    assert answerable["cost"] + nothing["cost"] == pytest.approx(paid)


def test_the_suites_run(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    printed = run([sys.executable, "benchmarks/suites.py", "--limit", "1", "--json", str(figures)])
    assert printed.returncode == 0, printed.stderr
    rows = json.loads(figures.read_text())
    everything = {(row["suite"], row["through"]): row for row in rows if row["part"] == "all"}
    assert len(everything) == 8
    for path in ("recall", "turn"):
        assert everything["deletion", path]["recall"] == 1.0
        assert everything["deletion", path]["precision"] == 1.0
