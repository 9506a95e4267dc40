"""The first page, and what load balancers ask."""

from __future__ import annotations

import re

import pytest
from django.test import Client


@pytest.mark.parametrize("address", ["/healthz", "/readyz", "/metrics"])
def test_health_is_only_asked_for(address: str) -> None:
    """A wrong method is told as one, not as a form without its token."""
    browser = Client(enforce_csrf_checks=True)
    for method in ("POST", "PUT", "OPTIONS"):
        answer = browser.generic(method, address)
        assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD")


def test_healthz_needs_nothing(client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


@pytest.mark.django_db
def test_readyz_names_what_is_missing(client: Client) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "qcluster" in answer.json()["parts"]["workers"]
    assert answer.json()["parts"]["migrations"] == "ready"


@pytest.mark.django_db
def test_the_first_page_tells_a_newcomer_what_to_do(client: Client) -> None:
    page = client.get("/").content.decode()
    for text in ("make demo", "manage.py chat", "GODFATHER_PHONE", "/webhooks/whatsapp/cloud/"):
        assert text in page
    assert "Not everything is up" in page


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/nothing-here", "/admin/nothing/"])
def test_a_wrong_address_is_told_plainly(client: Client, path: str) -> None:
    answer = client.get(path, follow=True)
    assert b"Traceback" not in answer.content
    # Screen readers go there.
    shown = re.sub(rb"<template\b.*?</template>", b"", answer.content, flags=re.DOTALL)
    assert shown.count(b"<main") == 1
