"""Talking to the assistant in the terminal."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from sessions_app.models import Chat, ChatSession, Message, Turn

pytestmark = pytest.mark.django_db(transaction=True)

CLIENT = "15550100123@c.us"


def say(text: str, *more: str) -> str:
    out = io.StringIO()
    call_command("chat", "--message", text, *more, stdout=out, stderr=io.StringIO())
    return out.getvalue().rstrip("\n")


@pytest.fixture
def godfather(settings: Any) -> str:
    settings.GODFATHER_PHONE = frozenset({"15550199999@c.us"})
    return "15550199999@c.us"


def test_what_is_remembered_is_answered(godfather: str) -> None:
    assert (
        say("/remember The plumber is called Noam") == "✅ Remembered: The plumber is called Noam"
    )
    answer = say("What is the plumber called?")
    assert "The plumber is called Noam" in answer
    assert "No language model is configured" in answer
    assert Chat.objects.get().whatsapp_chat == godfather


def test_somebody_else_is_a_client_and_is_told_nothing(godfather: str) -> None:
    say("/remember TestCorp owes me ₪5,000")
    assert "5,000" not in say("What does TestCorp owe?", "--as", CLIENT)
    assert Turn.objects.latest("id").user_role == "client"


def test_the_turn_can_be_had_as_json() -> None:
    said = json.loads(say("/help", "--as", CLIENT, "--json"))
    assert "/remember" in said["reply"]
    assert Turn.objects.get(turn_id=said["turn_id"]).reply_id is not None
    assert ChatSession.objects.filter(pk=said["session_id"]).exists()
    assert Message.objects.get(pk=said["reply_message_id"]).content == said["reply"]
    assert said["memories"] == []


def test_reset_begins_a_new_session() -> None:
    say("Hello", "--as", CLIENT)
    assert "Starting fresh" in say("/reset", "--as", CLIENT)
    assert sorted(ChatSession.objects.values_list("status", flat=True)) == ["active", "expired"]


def test_with_memory_off_the_answer_still_comes(settings: Any) -> None:
    """AC-FLAG-001, in the terminal."""
    settings.ENABLE_MEMORY_SYSTEM = False
    assert say("/remember x is y", "--as", CLIENT) == "Memory system is disabled"
    assert say("Hello", "--as", CLIENT)
    assert not Message.objects.exists()
    assert not ChatSession.objects.exists()


def test_json_without_a_message_is_wrong_usage() -> None:
    with pytest.raises(CommandError) as refused:
        call_command("chat", "--json")
    assert refused.value.returncode == 2


def test_a_group_that_is_never_answered_says_so(settings: Any) -> None:
    settings.GROUP_POLICY = "never"
    with pytest.raises(CommandError, match="policy"):
        say("hello", "--as", "1203630000@g.us")
