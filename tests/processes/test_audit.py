"""The audit log of a running server: written within seconds, without the clock's help."""

from __future__ import annotations

import json
import stat
from typing import Any

import pytest

from tests.processes.posting import new_phone
from tests.processes.stage import Stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes


def logged(live: Stage) -> list[dict[str, Any]]:
    path = live.installation.folder / "logs" / "memory_audit.log"
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def test_nfr_sec_005_a_new_session_is_soon_in_the_json_log(live: Stage) -> None:
    """NFR-SEC-005: session creation is logged with session_id and the chat, by pseudonym. No
    schedules are installed here: the commit itself asks for it."""
    phone = new_phone()
    live.post.say(phone, "hello")
    live.wait_for_answers(phone, 1)
    (message, *_) = live.database.messages(f"{phone}@c.us")
    session_id = str(message["session_id"])

    def lines() -> list[dict[str, Any]]:
        return [line for line in logged(live) if line["object_id"] == session_id]

    (line,) = wait_until(lines, "its line is written")
    assert (line["action"], line["object_type"]) == ("session.create", "session")
    assert line["chat"].startswith("p-")
    path = live.installation.folder / "logs" / "memory_audit.log"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert phone not in path.read_text()
    report = json.loads(live.installation.manage("audit_verify", "--json"))
    assert report["verified"]
    starts = [each for each in logged(live) if each["action"] == "setting.change"]
    assert [each["details"] for each in starts] == [{"first_start": True}], "not once a worker"
