"""`free_space`: what can go without losing what was said (RECOVERY-003)."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from django_q.models import Task

from sessions_app.models import AnswerTrial, InboundDelivery, Message, Turn
from tests.sessions.invariants import check_all
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def conversation(world: World) -> World:
    """An old exchange, and one of today."""
    world.say(CLIENT, "My daughter Noa is allergic to peanuts")
    world.say(CLIENT, "/reset")
    world.say(CLIENT, "What is Noa allergic to?")
    old = timezone.now() - timedelta(days=40)
    Turn.objects.update(finished_at=old)
    InboundDelivery.objects.update(received_at=old)
    AnswerTrial.objects.create(turn=Turn.objects.latest("id"), created_at=old)
    AnswerTrial.objects.create(turn=Turn.objects.earliest("id"), created_at=timezone.now())
    world.say(CLIENT, "Thank you")
    Task.objects.create(
        id="a", name="a", func="f", started=old, stopped=old, success=True, result="{}"
    )
    return world


def test_recovery_003_replays_and_raw_bodies_go_and_what_was_said_stays(
    conversation: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """RECOVERY-003: disk space recovery, without losing a message or a memory."""
    said = list(Message.objects.order_by("pk").values_list("pk", "content"))
    call_command("free_space", "--dry-run", "--json")
    planned = json.loads(capsys.readouterr().out)
    assert (planned["deliveries"], planned["replays"], planned["task_results"]) == (3, 2, 1)
    assert InboundDelivery.objects.filter(raw__isnull=True).count() == 0

    call_command("free_space", "--json")

    freed = json.loads(capsys.readouterr().out)
    assert [freed[name] for name in ("deliveries", "replays", "task_results")] == [3, 2, 1]
    assert freed["trials"] == 1
    assert AnswerTrial.objects.count() == 1
    assert list(Message.objects.order_by("pk").values_list("pk", "content")) == said
    old, young = Turn.objects.order_by("id")[2:4]
    assert (old.replay.prompt, old.replay.recalled) == ([], [])
    assert old.replay.model == "scripted"
    assert old.replay.prompt_tokens
    assert young.replay.prompt
    assert InboundDelivery.objects.filter(raw__isnull=False).count() == 1
    check_all()
    assert "peanuts" in conversation.seen_by_model(CLIENT, "What is Noa allergic to?")
    call_command("free_space")
    assert "0 raw bodies and 0 replays were emptied" in capsys.readouterr().out


def test_a_number_of_days_below_zero_is_wrong_usage() -> None:
    with pytest.raises(CommandError) as caught:
        call_command("free_space", "--days=-1")
    assert caught.value.returncode == 2
