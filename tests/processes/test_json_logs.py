"""LOG_FORMAT=json: each program of `make run` writes one JSON object a line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.processes.installation import Installation, family, kill
from tests.processes.posting import new_phone
from tests.processes.stage import stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

FAILING_JOB = """
from memoryproject.foundation.process.jobs import enqueue
enqueue("builtins.int", "no number", task_name="a job that fails")
"""


def objects(text: str) -> list[dict[str, Any]]:
    """The lines, each of which has to be an object with what each has."""
    found = [json.loads(line) for line in text.splitlines()]
    for entry in found:
        assert {"time", "level", "program", "message"} <= entry.keys(), entry
    return found


def test_every_line_of_every_program_is_an_object() -> None:
    with stage(run=Installation.launch, LOG_FORMAT="json") as live:
        phone = new_phone()
        live.openai.is_away = True
        live.post.say(phone, "nobody answers")
        live.wait_until_over(phone)
        (turn,) = live.database.turns(f"{phone}@c.us")[:1]
        live.installation.manage("shell", "-v", "0", "-c", FAILING_JOB)
        logs = live.installation.folder / "logs"
        wait_until(lambda: "builtins.int" in (logs / "qcluster.log").read_text(), "the job fails")
        (supervisor,) = live.installation.programs["launcher"].children()
        kill(family(supervisor))
        live.installation.wait_until_ready()

        printed = objects(live.installation.console.read_text(encoding="utf-8"))
        said = [(each["program"], each["message"]) for each in printed]
        assert any(program == "launcher" and "Ready: http" in text for program, text in said)
        assert any("ended unexpectedly (-9)" in text for _program, text in said)
        logged = {
            name: objects((logs / f"{name}.log").read_text(encoding="utf-8"))
            for name in ("memory", "web", "answer", "qcluster")
        }
        for name in ("answer", "qcluster"):
            assert {each["program"] for each in logged[name]} == {name}
        assert {"web", "answer", "qcluster"} <= {each["program"] for each in logged["memory"]}
        # gunicorn's own lines are there, too.
        assert any("Listening at" in each["message"] for each in logged["memory"])
        assert any(each.get("turn") == str(turn["turn_id"]) for each in logged["answer"])
