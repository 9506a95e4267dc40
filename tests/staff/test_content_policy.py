"""What pages may load: files of this server."""

from __future__ import annotations

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db


def directives(header: str) -> dict[str, set[str]]:
    parts = [part.split() for part in header.split(";")]
    return {part[0]: set(part[1:]) for part in parts if part}


@pytest.mark.parametrize("address", ["/", "/admin/login/", "/api/docs/", "/api/v1/", "/healthz"])
def test_scripts_come_from_this_server_alone(client: Client, address: str) -> None:
    policy = directives(client.get(address)["Content-Security-Policy"])
    assert policy["script-src"] == {"'self'"}
    assert policy["default-src"] == {"'self'"}
    assert policy["object-src"] == policy["base-uri"] == policy["frame-ancestors"] == {"'none'"}
    assert policy["form-action"] == {"'self'"}
