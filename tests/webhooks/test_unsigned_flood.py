"""A flood of posts that nobody signed costs no query, and their bodies are not even read."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.webhooks.posting import CLOUD, GREEN, JSON

SIGNATURE = "X-Hub-Signature-256"


class UnreadBody:
    """A body that nobody may read."""

    def read(self, *_: Any) -> bytes:
        raise AssertionError("the body was read")

    readline = read


def post_unread(client: Client, path: str, length: int, headers: dict[str, str]) -> int:
    unread: dict[str, Any] = {"wsgi.input": UnreadBody(), "CONTENT_LENGTH": str(length)}
    answer = client.generic("POST", path, content_type=JSON, headers=headers, **unread)
    return int(answer.status_code)


@pytest.mark.django_db
@pytest.mark.parametrize("length", [2, 3 * 1024 * 1024 + 1, 10**12])
@pytest.mark.parametrize(
    ("path", "headers"),
    [
        (CLOUD, {}),
        (CLOUD, {SIGNATURE: "nonsense"}),
        (CLOUD, {SIGNATURE: "sha256="}),
        (CLOUD, {SIGNATURE: "sha256=" + "0" * 63}),
        (CLOUD, {SIGNATURE: "sha1=" + "0" * 64}),
        (CLOUD, {"Cookie": "sessionid=invented"}),
        (GREEN, {}),
        (GREEN, {"Authorization": "Bearer another"}),
        (GREEN, {"Cookie": "sessionid=invented"}),
    ],
)
def test_an_unsigned_post_costs_neither_a_query_nor_its_body(
    client: Client, django_assert_num_queries: Any, path: str, headers: dict[str, str], length: int
) -> None:
    with django_assert_num_queries(0):
        assert post_unread(client, path, length, headers) == 401


@pytest.mark.django_db
def test_a_wrong_signature_costs_no_query(client: Client, django_assert_num_queries: Any) -> None:
    headers = {SIGNATURE: "sha256=" + "0" * 64, "Cookie": "sessionid=invented"}
    with django_assert_num_queries(0):
        answer = client.post(CLOUD, b"{}", content_type=JSON, headers=headers)
    assert answer.status_code == 401


@pytest.mark.django_db
def test_no_body_is_read_while_no_secret_is_set(client: Client, settings: Any) -> None:
    settings.WHATSAPP_CLOUD_APP_SECRET = ""
    assert post_unread(client, CLOUD, 2, {SIGNATURE: "sha256=" + "0" * 64}) == 401
