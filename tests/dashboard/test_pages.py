"""The first page, and what load balancers ask."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from sessions_app.models import Chat, Turn


def test_healthz_needs_nothing(client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


@pytest.mark.django_db
def test_readyz_names_what_is_missing(client: Client) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "qcluster" in answer.json()["parts"]["workers"]
    assert answer.json()["parts"]["migrations"] == "ready"


@pytest.mark.django_db
def test_metrics_are_prometheus_text_and_hold_neither_content_nor_names(client: Client) -> None:
    chat = Chat.objects.create(whatsapp_chat="15550100123@c.us", client_name="Dana")
    now = timezone.now()
    waiting = Turn.objects.create(chat=chat, provider="console", asked_at=now)
    Turn.objects.filter(pk=waiting.pk).update(created_at=now - timedelta(minutes=5))
    answer = client.get("/metrics")
    assert (answer.status_code, answer["Content-Type"]) == (
        200, "text/plain; version=0.0.4; charset=utf-8",
    )  # fmt: skip
    text = answer.content.decode()
    line = re.compile(r'(# (HELP|TYPE) \w+ .+|\w+(\{\w+="\w+"\})? [0-9.e+]+)')
    assert all(line.fullmatch(each) for each in text.splitlines())
    numbers = dict(each.rsplit(" ", 1) for each in text.splitlines() if each[0] != "#")
    assert numbers['memory_part_ready{part="database"}'] == "1"
    assert numbers['memory_part_ready{part="workers"}'] == "0"
    assert numbers["memory_turns_waiting"] == "1"
    assert 300 <= float(numbers["memory_oldest_turn_seconds"]) < 400
    assert 'memory_rows{table="sessions_app_message"}' in numbers
    assert "Dana" not in text
    assert "15550100123" not in text


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
