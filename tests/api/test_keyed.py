"""Keyed memories: one of a namespace and key in a scope, whatever others say."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.api.calling import Api

pytestmark = pytest.mark.django_db


def place(namespace: str, key: str, query: str = "") -> str:
    return f"memories/keyed/{quote(namespace, safe='')}/{quote(key, safe='')}/{query}"


def put(api: Api, namespace: str, key: str, value: Any, query: str = "", **more: Any) -> Any:
    return api.call("PUT", place(namespace, key, query), {"value": value, **more})
