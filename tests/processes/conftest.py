"""Servers that several tests share: starting one takes seconds."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from tests.processes.installation import WORKING, Installation
from tests.processes.stage import Stage, outcome, stage


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: Any) -> Generator[None, Any, None]:
    """Show with a failure what the servers printed meanwhile: their folder goes."""
    report = (yield).get_result()
    for started in getattr(item, "funcargs", {}).values():
        if report.failed and isinstance(started, Stage):
            printed = outcome(started.installation, started.database)
            report.sections.append(("Output of the servers", printed))


def everything(installation: Installation) -> None:
    installation.prepare()
    installation.start()


@pytest.fixture(scope="package")
def shared_stage() -> Iterator[Stage]:
    """Ends with the last test of this package: its programs look for work all the time."""
    with stage(
        run=everything, WEBHOOKS_ALLOW_HTTP="true", WEBHOOKS_PRIVATE_NETWORKS="127.0.0.0/8"
    ) as started:
        yield started


@pytest.fixture
def live(shared_stage: Stage) -> Stage:
    """The shared stage with everything up, whatever the test before did to it."""
    installation = shared_stage.installation
    installation.restart_dead()
    for name in {"web", *WORKING} - installation.programs.keys():
        installation.start_program(name)
    installation.wait_until_ready()
    return shared_stage
