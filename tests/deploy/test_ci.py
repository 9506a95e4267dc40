"""CI fails when a check or a test fails, whatever runs after it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize(("failing", "targets"), [("lint", 1), ("test", 2), ("nothing", 2)])
def test_a_failure_is_the_end(tmp_path: Path, failing: str, targets: int) -> None:
    """With a make of our own, for a user who can't install anything."""
    called = tmp_path / "called"
    make = f'#!/bin/sh\necho "$1" >> {called}\n[ "$1" != {failing} ]\n'
    for name, script in (("make", make), ("id", "#!/bin/sh\necho 1000\n")):
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o700)
    path = f"{tmp_path}:{os.environ['PATH']}"
    ended = subprocess.run([REPOSITORY / ".ci" / "run"], env={"PATH": path}, check=False)
    assert (ended.returncode == 0) == (failing == "nothing")
    # What the clients need is looked at by their own tests.
    checks = [each for each in called.read_text().split() if not each.startswith("client-env")]
    assert checks == ["lint", "test"][:targets]
