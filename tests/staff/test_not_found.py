"""The page of an address where nothing is: in the language of the browser, on any page."""

from __future__ import annotations

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("address", ["/nothing/", "/webhooks/nothing"])
def test_nothing_is_said_in_the_language_of_the_browser(client: Client, address: str) -> None:
    answer = client.get(address, headers={"Accept-Language": "he"})
    assert answer.status_code == 404
    assert 'lang="he" dir="rtl"' in answer.content.decode()
    assert "There is nothing at this address." in client.get(address).content.decode()


def test_programs_are_answered_in_english(client: Client) -> None:
    answer = client.get("/api/v1/nothing/", headers={"Accept-Language": "he"})
    assert answer.status_code == 404
    assert answer.json()["errors"][0]["detail"].isascii()
