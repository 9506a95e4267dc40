"""Which tests are slow, how many run at once, which files one worker has, and which files start
first: the longest, or a worker ends with them."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import is_hypothesis_test

DATABASE = {"db", "transactional_db", "_django_db_helper"}
BY_LENGTH = ("processes", "browser", "slow")
MAX_WORKERS = 4
# Tests of the servers of a package, which is started once where one worker has all of its files.
WITH_SERVER = re.compile(
    r"^def test_\w+\([^)]*\b(?:live: Stage|doorway: Doorway|staffed: Installation)", re.MULTILINE
)


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One more than there are cores: tests of processes and browsers wait a fifth of their time."""
    return min((os.cpu_count() or 1) + 1, MAX_WORKERS)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let one worker have all files of a package that share a server."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]  # noqa: PLC0415

    class Scheduling(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(config.rootpath / super()._split_scope(nodeid))

    return Scheduling(config, log)


@cache
def scope_of(file: Path) -> str:
    """Return the file itself, or the package whose server it shares with others."""
    return str(file.parent if WITH_SERVER.search(file.read_text(encoding="utf-8")) else file)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Look for no garbage among all the tests, which stay until the end, and among everything
    seldom afterwards: both took a tenth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        young, middle, _ = gc.get_threshold()
        gc.set_threshold(young, middle, 100)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what opens several connections or fills the database again and again."""
    for item in items:
        if _is_slow(item):
            item.add_marker(pytest.mark.slow)
    ranks: dict[Any, int] = {}
    places: dict[Any, int] = {}
    for item in items:
        ranks[item.path] = min(ranks.get(item.path, len(BY_LENGTH)), _rank(item))
        places.setdefault(item.path, len(places))
    # Rows that a module's tests share are made after its tests without them have run.
    items.sort(key=lambda item: (ranks[item.path], places[item.path], _shares_rows(item)))
    _refuse_real_transactions_beside_shared_rows(items)


def _is_slow(item: pytest.Item) -> bool:
    fixtures = set(getattr(item, "fixturenames", ()))
    mark = item.get_closest_marker("django_db")
    of_django = hasattr(getattr(item, "cls", None), "setUpTestData")
    if mark is None and not of_django and not fixtures & DATABASE:
        return False
    return _has_real_transactions(item) or is_hypothesis_test(getattr(item, "obj", None))


def _shares_rows(item: pytest.Item) -> bool:
    return "module_rows" in getattr(item, "fixturenames", ())


def _refuse_real_transactions_beside_shared_rows(items: list[pytest.Item]) -> None:
    shared = {item.path for item in items if _shares_rows(item)}
    for item in items:
        if item.path in shared and _has_real_transactions(item):
            raise pytest.UsageError(f"{item.nodeid}: its module shares rows in a transaction")


def _has_real_transactions(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("django_db")
    is_marked = mark is not None and mark.kwargs.get("transaction", False)
    return is_marked or "transactional_db" in getattr(item, "fixturenames", ())


def _rank(item: pytest.Item) -> int:
    names = {mark.name for mark in item.iter_markers()}
    return next((rank for rank, name in enumerate(BY_LENGTH) if name in names), len(BY_LENGTH))
