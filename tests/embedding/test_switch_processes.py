"""The service answers while another process switches its embedding model, and is killed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.embedding.reader import OLD, OPENAI as NEW
from tests.embedding.switching import Switching, switch_under_load
from tests.loopback.openai_server import OpenAIServer

pytestmark = pytest.mark.processes

COUNT = 400


@pytest.fixture(scope="module")
def switching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Switching]:
    with OpenAIServer() as server:
        folder = tmp_path_factory.mktemp("switching")
        made = Switching(folder, server, COUNT, new=NEW, new_id=NEW)
        try:
            made.prepare()
            yield made
        finally:
            made.stop()


PREPARE = "from memoryproject.launch import prepare; prepare()"


def test_make_run_is_stopped_by_a_model_of_other_dimensions(switching: Switching) -> None:
    """And goes through without one."""
    switching.database.rows("UPDATE memories_app_embeddingmodel SET dimensions = 512")
    started = switching.installation.attempt("shell", "-v", "0", "-c", PREPARE)

    assert started.returncode == 1
    assert "have 512 dimensions, but it gives 256 now" in started.stderr
    assert "EMBEDDING_MODEL" in started.stderr

    switching.database.rows("UPDATE memories_app_embeddingmodel SET dimensions = 256")
    started = switching.installation.attempt("shell", "-v", "0", "-c", PREPARE)
    assert started.returncode == 0, started.stderr


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
