"""A DATA_DIR for each test, and no server left behind."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from memoryproject.foundation.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresError
from memoryproject.foundation.embedded_postgres.places import Places, postmaster_of, stop_postmaster
from tests.processes.installation import copy_cluster


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A DATA_DIR that isn't there yet, in a short path; whatever runs on it ends with the test."""
    parent = Path(tempfile.mkdtemp(prefix="pg-"))
    yield parent / "data"
    end_server(parent / "data")
    shutil.rmtree(parent)


@pytest.fixture
def deep_data_dir(data_dir: Path) -> Iterator[Path]:
    """A DATA_DIR whose path is too long for a socket, and with signs that shells read."""
    deep = data_dir / ("long" * 30) / "odd $(name), \"quoted\" 'd'"
    yield deep
    end_server(deep)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DATA_DIR whose server ran once and has stopped."""
    data_dir = tmp_path_factory.mktemp("pg") / "data"
    embedded = EmbeddedPostgres(data_dir)
    embedded.ensure_running()
    embedded.release()
    return data_dir


@pytest.fixture
def server(built: Path, data_dir: Path) -> Iterator[EmbeddedPostgres]:
    """The embedded server of ``data_dir``, not started. Its database is there: to make one takes
    longer than anything else. Tests of the first start take ``new_server``."""
    copy_cluster(built, data_dir)
    yield from ending(EmbeddedPostgres(data_dir))


@pytest.fixture
def new_server(data_dir: Path) -> Iterator[EmbeddedPostgres]:
    """The embedded server of ``data_dir``, which isn't there yet."""
    yield from ending(EmbeddedPostgres(data_dir))


def ending(embedded: EmbeddedPostgres) -> Iterator[EmbeddedPostgres]:
    yield embedded
    with suppress(EmbeddedPostgresError):
        embedded.release()


def end_server(data_dir: Path) -> None:
    places = Places(data_dir)
    left = postmaster_of(places)
    if left is not None:
        stop_postmaster(left, places.log)
    if places.socket_root != places.data_dir:
        shutil.rmtree(places.socket_root, ignore_errors=True)


@pytest.fixture
def as_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can act as two users")
