"""The API does what its schema says: as schemathesis makes up the calls, for tokens of each kind.
`make fuzz-api` does the same with many more calls."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from memoryproject.foundation.rest_kit import models
from memoryproject.foundation.rest_kit.models import READ
from tests.processes.contract.fuzzing import ALL_PHASES, fuzz
from tests.processes.contract.world import ALL, BOUND, NONE, SCOPES, World, running

pytestmark = pytest.mark.processes

SEED = 11
# A token of one scope is refused like that of another; tests/api/test_scopes.py tries them all.
TRIED = [ALL, READ, BOUND, NONE]
# Values that are wrong in the same way: `make fuzz-api` tries all of them.
ALIKE = 1
# The other callers are refused most of it.
PHASES = {ALL: ALL_PHASES, BOUND: ("fuzzing", "stateful")}
EXAMPLES = {ALL: 4, BOUND: 2}
OPERATIONS = re.compile(r"Selected: (\d+)/(\d+)\s+Tested: (\d+)")


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with running() as started:
        yield started


@pytest.mark.parametrize("caller", TRIED)
def test_no_answer_is_outside_the_schema(caller: str, world: World) -> None:
    folder, phases = world.installation.folder, PHASES.get(caller, ("fuzzing",))
    examples = EXAMPLES.get(caller, 1)
    outcome = fuzz(world, caller, folder, examples=examples, phases=phases, seed=SEED, alike=ALIKE)
    assert outcome.passed, outcome.output
    found = OPERATIONS.search(outcome.output)
    assert found, outcome.output
    assert len(set(found.groups())) == 1, found[0]
    answered = {what.split()[0] for what in outcome.seen if re.search(" 2..$", what)}
    called = {what.split()[0] for what in outcome.seen}
    if caller == ALL:
        # Nowhere did the calls end at what isn't there.
        assert answered == called
        assert len(called) == int(found[1])


def test_the_program_with_many_calls_starts() -> None:
    command = [sys.executable, "-m", "tests.processes.contract.fuzzing", "--help"]
    # As `make fuzz-api`: without the settings that pytest names.
    without = {name: os.environ[name] for name in os.environ if name != "DJANGO_SETTINGS_MODULE"}
    done = subprocess.run(command, env=without, capture_output=True, text=True, check=True)
    assert "--examples" in done.stdout
    assert sorted(SCOPES) == sorted(models.SCOPES)
