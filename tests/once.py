"""Rows that are made once for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import TestCase


@pytest.fixture(scope="module")
def module_rows(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Keep what fixtures of the module make until its last test; each test is a savepoint.

    Fixtures of the module that make rows ask for this one. Tests without them run before (see
    tests/order.py). A module with real transactions can't have it: they would be nested.
    """
    with django_db_blocker.unblock():
        case: Any = TestCase
        atomics = case._enter_atomics()
        yield
        case._rollback_atomics(atomics)
