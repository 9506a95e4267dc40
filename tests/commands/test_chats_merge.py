"""Chats that were made before ids had one form are merged."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from memories_app.models import Memory
from sessions_app.conversations.chat_addresses import chat_at_or_new
from sessions_app.conversations.chat_queries import chat_at
from sessions_app.models import Chat, ChatAddress
from tests.remembering import remember

pytestmark = pytest.mark.django_db

PERSON = "15550399999@c.us"


def older(name: str, provider: str = "console") -> Chat:
    """A chat as it was made before, under any name."""
    chat = Chat.objects.create(whatsapp_chat=name, provider=provider)
    ChatAddress.objects.create(chat=chat, provider=provider, address=name)
    remember(f"{name} likes tea", visibility="chat", chat_id=chat.pk)
    return chat


def stored() -> list[Any]:
    return [list(model.objects.order_by("pk").values()) for model in (Chat, ChatAddress, Memory)]


def merged(*options: str) -> Any:
    out = StringIO()
    call_command("chats_merge", "--json", *options, stdout=out)
    return json.loads(out.getvalue())


def test_doubles_become_the_oldest_chat_with_everything_in_them() -> None:
    first = older("+15550399999@c.us")
    older("15550399999")
    older(PERSON, "cloud")
    older("15550399999@s.whatsapp.net")
    other = chat_at_or_new("15550100456")
    report = merged()
    assert len(report["merged"]) + len(report["renamed"]) == 3
    chat = Chat.objects.exclude(pk=other.pk).get()
    assert (chat.pk, chat.whatsapp_chat, chat.client_phone) == (first.pk, PERSON, "15550399999")
    assert Memory.objects.filter(chat_id=chat.pk).count() == 4
    assert set(chat.addresses.values_list("address", flat=True)) == {PERSON}
    assert merged() == {"dry_run": False, "merged": [], "renamed": [], "left_alone": []}


def test_a_chat_alone_gets_the_stored_form() -> None:
    chat = older("120363000000000001@G.US")
    assert merged()["renamed"] == [
        {"whatsapp_chat": "120363000000000001@G.US", "stored": "120363000000000001@g.us"}
    ]
    chat.refresh_from_db()
    assert (chat.whatsapp_chat, chat.is_group) == ("120363000000000001@g.us", True)
    assert chat_at("120363000000000001@g.us") == chat


def test_a_dry_run_tells_the_same_and_changes_nothing() -> None:
    older("+15550399999@c.us")
    older("15550399999")
    before = stored()
    dry = merged("--dry-run")
    assert stored() == before
    assert {**dry, "dry_run": False} == merged()


def test_what_nobody_can_decide_is_left_alone_with_exit_code_1() -> None:
    older("someone")
    left = older("15550100456@c.us")
    older("+15550100456@c.us")
    left.addresses.update(left_at=timezone.now())
    out = StringIO()
    with pytest.raises(CommandError, match="2 left alone") as refused:
        call_command("chats_merge", stdout=out)
    assert refused.value.returncode == 1
    assert "left alone: someone: it is no id" in out.getvalue()
    assert "+15550100456@c.us: its number has changed hands" in out.getvalue()
    assert Chat.objects.count() == 3


def test_a_detached_chat_is_no_double() -> None:
    Chat.objects.create(whatsapp_chat="0123456789abcdef@detached", provider="cloud")
    assert merged()["left_alone"] == []
