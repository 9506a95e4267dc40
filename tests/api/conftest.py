"""Callers of the API: tokens of each kind, and staff."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.rest_kit.models import SCOPES
from memoryproject.foundation.rest_kit.tokens import token_create
from tests.api.calling import Api


def make_token(*scopes: str, **options: Any) -> str:
    """Return the secret of a new token, by default one that may do everything."""
    options.setdefault("name", "tests")
    made = token_create(scopes=scopes or SCOPES, actor=COMMAND_LINE, **options)
    return made.secret


@pytest.fixture
def token(db: None) -> Callable[..., str]:
    """Makes a token and tells its secret; by default one that may do everything."""
    return make_token


@pytest.fixture
def api(token: Callable[..., str]) -> Api:
    """Calls with a token that may do everything."""
    return Api(token())
