"""The demo's month: told through the services, whole, and never among real chats."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from memories_app.models import Memory, MemoryRevision, MemoryStatus, MergeProposal
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from memoryproject.staff_site.demo.business import create_setup, create_staff_actions
from memoryproject.staff_site.demo.story import Story
from memoryproject.staff_site.demo.story_texts import PEOPLE, recorded_chats
from sessions_app.models import (
    Chat,
    ChatAddress,
    ForgetReceipt,
    Message,
    SummarizationMetadata,
    Turn,
)

DANA, EMMA, ERASED = (PEOPLE[name] for name in ("dana", "emma", "iris"))
pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def story(module_rows: None) -> Story:
    """A short month: with the passers-by of one day. Its reader is the admin_user of the tests."""
    User.objects.create_superuser("admin", password="password")
    told = Story(now=timezone.now(), embedder=WordLlamaEmbedder(), days=2)
    create_setup(told)
    told.tell(lambda done, total: None)
    create_staff_actions(told)
    return told


def test_the_month_has_all_that_staff_meet(story: Story, admin_client: Client) -> None:
    states = set(Turn.objects.values_list("state", flat=True))
    assert states >= {"sent", "failed", "unconfirmed", "missed", "pending"}
    assert SummarizationMetadata.objects.filter(session__chat__client_name=EMMA.name).exists()
    assert Memory.objects.filter(status=MemoryStatus.PROPOSED).count() == 3
    assert MemoryRevision.objects.exists()
    assert MergeProposal.objects.filter(state="open").exists()
    assert set(ForgetReceipt.objects.values_list("kind", flat=True)) >= {"memory", "chat"}
    assert not Chat.objects.filter(whatsapp_chat=ERASED.whatsapp_chat).exists()
    edited = Message.objects.filter(chat__whatsapp_chat=DANA.whatsapp_chat, edited_at__isnull=False)
    assert edited.count() == 1
    owners = Memory.objects.filter(content__contains="alarm code")
    assert not owners.exists(), "the owner forgot it"
    for path in ("/admin/", "/admin/operations/turns/", "/admin/sessions_app/chat/"):
        assert admin_client.get(path).status_code == 200


def test_everything_lies_before_the_day_on_which_it_is_told(story: Story) -> None:
    assert not Message.objects.filter(timestamp__gt=story.now).exists()
    assert not AuditEvent.objects.filter(at__gt=timezone.now()).exists()
    oldest = Message.objects.earliest("timestamp").timestamp
    assert story.now - oldest > timedelta(days=15)
    assert abs(timezone.now() - story.now) < timedelta(minutes=30), "the clock is put back"
    asked = Turn.objects.filter(state="sent", chat__whatsapp_chat=EMMA.whatsapp_chat).first()
    assert asked is not None
    assert asked.finished_at - asked.created_at > timedelta(seconds=1)


def test_it_never_stands_among_real_chats() -> None:
    assert "15550100999@c.us" not in recorded_chats()
    Chat.objects.create(whatsapp_chat="15550100999@c.us", provider="cloud")
    with pytest.raises(CommandError, match="holds chats"):
        call_command("demo_data")
    assert Chat.objects.count() == 1


def test_it_stands_beside_the_replayed_conversations() -> None:
    recorded = recorded_chats()
    assert len(recorded) >= 5
    for address in recorded:
        chat = Chat.objects.create(whatsapp_chat=address, provider="cloud")
        ChatAddress.objects.create(chat=chat, provider="cloud", address=address)
    call_command("demo_data", "--days=1")
    assert Chat.objects.filter(whatsapp_chat=EMMA.whatsapp_chat).exists()
    with pytest.raises(CommandError, match="holds chats"):
        call_command("demo_data")
