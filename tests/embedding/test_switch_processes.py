"""The service answers while another process switches its embedding model, and is killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryproject.integrations.loopback.openai_server import OpenAIServer
from tests.embedding.reader import OLD
from tests.embedding.reader import OPENAI as NEW
from tests.embedding.switching import Switching, switch_under_load

pytestmark = pytest.mark.processes

COUNT = 1_500


@pytest.fixture
def switching(tmp_path: Path, server: OpenAIServer) -> Iterator[Switching]:
    made = Switching(tmp_path, server, COUNT, new=NEW, new_id=NEW)
    try:
        made.prepare()
        yield made
    finally:
        made.stop()


def test_recall_is_right_all_the_time_and_of_one_model_at_a_time(switching: Switching) -> None:
    """Killed in the middle and run again, with memories coming in."""
    seen = switch_under_load(switching)

    assert seen[OLD] > 0
    assert seen[NEW] > 0
    assert set(seen) == {OLD, NEW, "added"}
    assert switching.active() == NEW
    assert switching.memories() == COUNT + seen["added"]
    # An adder that took the old model right before the switch is made up for later.
    assert switching.without(NEW) <= 1
    switching.installation.manage("memories_reembed", "--model", NEW, "--keep-old", "0")
    assert switching.without(NEW) == 0
    assert switching.vectors(OLD) == 0
    assert 'problems": []' in switching.installation.manage("memories_reembed", "--check", "--json")


def test_two_runs_at_once_one_works_and_the_other_says_so(switching: Switching) -> None:
    first = switching.start("manage.py", "memories_reembed", "--model", NEW)
    second = switching.start("manage.py", "memories_reembed", "--model", NEW)
    ended = [(*run.communicate(timeout=120), run.returncode) for run in (first, second)]

    codes = sorted(code for *_, code in ended)
    assert codes in ([0, 0], [0, 1]), ended
    told = "".join(error for _, error, code in ended if code == 1)
    assert codes == [0, 0] or "Another memories_reembed is at work" in told
    assert switching.active() == NEW
    assert switching.without(NEW) == 0
