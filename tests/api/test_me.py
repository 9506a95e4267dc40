"""What a caller may do, asked by the caller itself."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import Chat
from tests.api.calling import Api, error_of

pytestmark = pytest.mark.django_db


def test_a_token_learns_its_name_scopes_chats_end_and_limits(
    token: Callable[..., str], settings: Any
) -> None:
    settings.API_RATE_READ, settings.API_RATE_CHAT = 70, 0
    chats = [
        Chat.objects.create(whatsapp_chat=f"1555010012{number}@c.us", provider="console")
        for number in range(3)
    ]
    ends = timezone.now() + timedelta(days=1)
    narrow = token("audit", "read", name="narrow", chat_ids=[chats[1].pk], expires_at=ends)
    told = Api(narrow).get("me/").json()
    assert (told["kind"], told["name"]) == ("api", "narrow")
    assert told["scopes"] == ["read", "audit"]
    assert told["whatsapp_chats"] == ["15550100121@c.us"]
    assert told["expires_at"] == ends.isoformat().replace("+00:00", "Z")
    assert told["calls_per_minute"]["read"] == 70
    assert told["calls_per_minute"]["chat"] == 0
    told = Api(token()).get("me/").json()
    assert told["scopes"] == ["read", "write", "forget", "audit"]
    assert told["whatsapp_chats"] is None
    assert told["expires_at"] is None
    assert not AuditEvent.objects.filter(action="conversation.read").exists()


def test_staff_learn_what_the_admin_lets_them_do() -> None:
    somebody = User.objects.create_user("dana", is_staff=True)
    User.objects.create_superuser("boss")
    scopes = {}
    for name in ("dana", "boss"):
        client = Client(raise_request_exception=False)
        client.force_login(User.objects.get(username=name))
        told = Api(None, client).get("me/").json()
        assert (told["kind"], told["name"], told["whatsapp_chats"]) == ("staff", name, None)
        scopes[name] = told["scopes"]
    assert scopes == {"dana": [], "boss": ["read", "write", "forget", "audit"]}
    somebody.is_staff = False
    somebody.save()
    client = Client(raise_request_exception=False)
    client.force_login(somebody)
    error_of(Api(None, client).get("me/"), 401)
