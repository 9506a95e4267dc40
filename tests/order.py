"""Which tests are slow, and which files start first: the longest, or a worker ends with them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import is_hypothesis_test

DATABASE = {"db", "transactional_db", "_django_db_helper"}
BY_LENGTH = ("processes", "browser", "slow")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what opens several connections or fills the database again and again."""
    for item in items:
        if _is_slow(item):
            item.add_marker(pytest.mark.slow)
    ranks: dict[Any, int] = {}
    for item in items:
        ranks[item.path] = min(ranks.get(item.path, len(BY_LENGTH)), _rank(item))
    items.sort(key=lambda item: ranks[item.path])


def _is_slow(item: pytest.Item) -> bool:
    fixtures = set(getattr(item, "fixturenames", ()))
    mark = item.get_closest_marker("django_db")
    of_django = hasattr(getattr(item, "cls", None), "setUpTestData")
    if mark is None and not of_django and not fixtures & DATABASE:
        return False
    is_transactional = mark is not None and mark.kwargs.get("transaction", False)
    return (
        is_transactional
        or "transactional_db" in fixtures
        or is_hypothesis_test(getattr(item, "obj", None))
    )


def _rank(item: pytest.Item) -> int:
    names = {mark.name for mark in item.iter_markers()}
    return next((rank for rank, name in enumerate(BY_LENGTH) if name in names), len(BY_LENGTH))
