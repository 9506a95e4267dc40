"""Servers that several tests share: starting one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.processes.installation import Installation
from tests.processes.stage import Stage, stage


def everything(installation: Installation) -> None:
    installation.prepare()
    installation.start()


@pytest.fixture(scope="session")
def shared_stage() -> Iterator[Stage]:
    with stage(run=everything) as started:
        yield started


@pytest.fixture
def live(shared_stage: Stage) -> Stage:
    """The shared stage with everything up, whatever the test before did to it."""
    installation = shared_stage.installation
    if installation.web is None or not installation.web.is_running():
        installation.start_web()
    if installation.workers is None or not installation.workers.is_running():
        installation.start_workers()
    installation.wait_until_ready()
    return shared_stage
