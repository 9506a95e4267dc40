"""The server that the clients of other programs are tried against."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.processes.conftest import everything, pytest_runtest_makereport
from tests.processes.stage import Stage, stage

# A hook that stands elsewhere.
__all__ = ["pytest_runtest_makereport"]


@pytest.fixture(scope="package")
def server() -> Iterator[Stage]:
    """Web server, workers, and a model that repeats what it is told."""
    # Its own events are posted to this machine.
    with stage(
        run=everything,
        EMBEDDER="wordllama",
        WEBHOOKS_ALLOW_HTTP="true",
        WEBHOOKS_PRIVATE_NETWORKS="127.0.0.0/8",
    ) as started:
        yield started
