"""The API does what its schema says: as schemathesis makes up the calls, for tokens of each kind.
`make fuzz-api` does the same with many more calls."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.processes.contract.fuzzing import ALL_PHASES, fuzz
from tests.processes.contract.world import ALL, BOUND, CALLERS, World, running

pytestmark = pytest.mark.processes

SEED = 7
# Values that are wrong in the same way: `make fuzz-api` tries all of them.
ALIKE = 2
# The other callers are refused most of it.
PHASES = {ALL: ALL_PHASES, BOUND: ("examples", "fuzzing", "stateful")}
OPERATIONS = re.compile(r"Selected: (\d+)/(\d+)\s+Tested: (\d+)")


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with running() as started:
        yield started


@pytest.mark.parametrize("caller", CALLERS)
def test_no_answer_is_outside_the_schema(caller: str, world: World) -> None:
    folder, phases = world.installation.folder, PHASES.get(caller, ("examples", "fuzzing"))
    outcome = fuzz(world, caller, folder, examples=3, phases=phases, seed=SEED, alike=ALIKE)
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
