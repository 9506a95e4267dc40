"""Staff run a turn again: what failed is answered anew, what may not have gone out is sent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.whatsapp.base import SendError
from sessions_app.models import Message, OutboundPart, Turn
from sessions_app.models.turns import TurnState
from sessions_app.turns.rerun import RerunRefusedError
from tests.limits.test_access import decide
from tests.sessions.desk import Desk
from tests.threads import in_threads
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

REFUSED = SendError("window closed", permanent=True)


def failed_in_answering(world: World, text: str = "Broken") -> Turn:
    """A turn that failed before there was an answer."""
    world.receive(message_from(CLIENT, text))
    turn = Turn.objects.latest("id")
    turn.state, turn.error, turn.attempts = TurnState.FAILED, "a fault", 4
    turn.finished_at = timezone.now()
    turn.save()
    return turn


def failed_in_sending(world: World) -> Turn:
    world.provider.fail_next(REFUSED)
    world.say(CLIENT, "Lost")
    return Turn.objects.latest("id")


def test_a_turn_that_failed_in_answering_is_answered_anew(world: World, desk: Desk) -> None:
    turn = failed_in_answering(world)
    assert desk.rerun(turn) == "answer"
    world.work()
    turn.refresh_from_db()
    assert (turn.state, turn.error) == ("sent", "")
    assert [part.text for part in world.provider.sent] == ["answer to: Broken"]
    event = AuditEvent.objects.get(action="turn.rerun")
    assert (event.actor, event.object_id) == ("dana", str(turn.turn_id))


def test_only_the_parts_that_are_not_out_are_sent_again(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    turn = desk.write("first " * 600 + "\n\n" + "second " * 500).turn
    world.work()
    last = OutboundPart.objects.filter(turn=turn).latest("number")
    OutboundPart.objects.filter(pk=last.pk).update(
        state="failed", content="the last part", provider_message_id=None
    )
    Turn.objects.filter(pk=turn.pk).update(state="failed")
    before = len(world.provider.sent)
    assert desk.rerun(turn) == "send"
    world.work()
    assert [part.text for part in world.provider.sent[before:]] == ["the last part"]
    assert AuditEvent.objects.filter(action="turn.resend").count() == 1


def test_a_held_turn_is_answered_once_the_assistant_goes_on(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    desk.pause()
    world.say(CLIENT, "Held")
    turn = Turn.objects.latest("id")
    with pytest.raises(RerunRefusedError, match="paused"):
        desk.rerun(turn)
    desk.resume()
    assert desk.rerun(turn) == "answer"
    world.work()
    assert world.provider.sent[-1].text == "answer to: Held"


def test_in_a_blocked_chat_only_a_reply_by_staff_is_sent_again(world: World, desk: Desk) -> None:
    turn = failed_in_sending(world)
    decide(world, "blocked")
    with pytest.raises(RerunRefusedError, match="blocked"):
        desk.rerun(turn)
    world.provider.fail_next(REFUSED)
    reply = desk.write("By hand").turn
    world.work()
    assert desk.rerun(reply) == "send"
    decide(world, "", reason="")
    assert desk.rerun(turn) == "send", "the block cost it nothing"
    world.work()
    assert [part.text for part in world.provider.sent] == ["answer to: Lost", "By hand"]


@pytest.mark.parametrize("state", ["pending", "running", "sending", "sent", "missed", "cancelled"])
def test_what_is_in_no_trouble_is_left_alone(world: World, desk: Desk, state: str) -> None:
    turn = failed_in_answering(world)
    Turn.objects.update(state=state)
    with pytest.raises(RerunRefusedError, match="not_in_trouble"):
        desk.rerun(turn)
    assert Turn.objects.get().state == state


def test_outside_the_window_nothing_is_run(world: World, desk: Desk) -> None:
    late = timezone.now() + timedelta(hours=25)
    for turn in (failed_in_answering(world), failed_in_sending(world)):
        with pytest.raises(RerunRefusedError, match="too_late"):
            desk.rerun(turn, now=late)
        turn.refresh_from_db()
        assert turn.state == "failed"


def test_who_writes_again_opens_the_window(world: World, desk: Desk) -> None:
    turn = failed_in_sending(world)
    yesterday = timezone.now() - timedelta(hours=30)
    Turn.objects.filter(pk=turn.pk).update(asked_at=yesterday)
    Message.objects.filter(role="user").update(timestamp=yesterday)
    with pytest.raises(RerunRefusedError, match="too_late"):
        desk.rerun(turn)
    world.say(CLIENT, "Are you there?")
    assert desk.rerun(turn) == "send"


def test_what_is_not_kept_any_more_is_not_run(world: World, desk: Desk) -> None:
    sending = failed_in_sending(world)
    OutboundPart.objects.update(content="")
    answering = failed_in_answering(world)
    Message.objects.filter(turn=answering).delete()
    for turn in (sending, answering):
        with pytest.raises(RerunRefusedError, match="words_gone"):
            desk.rerun(turn)


def test_a_turn_that_ended_again_meanwhile_is_left_alone(world: World, desk: Desk) -> None:
    turn = failed_in_sending(world)
    seen = turn.finished_at
    assert desk.rerun(turn, seen=seen) == "send"
    world.provider.fail_next(REFUSED)
    world.work()
    turn.refresh_from_db()
    assert turn.state == "failed"
    with pytest.raises(RerunRefusedError, match="not_in_trouble"):
        desk.rerun(turn, seen=seen)


@pytest.mark.django_db(transaction=True)
def test_several_clicks_run_it_once(world: World, desk: Desk) -> None:
    turn = failed_in_answering(world)

    def click() -> object:
        try:
            return desk.rerun(turn)
        except RerunRefusedError as refused:
            return refused.why

    results: list[Any] = in_threads(click, 6)
    assert results.count("answer") == 1
    assert results.count("not_in_trouble") == 5
    world.work()
    assert [part.text for part in world.provider.sent] == ["answer to: Broken"]
    assert AuditEvent.objects.filter(action="turn.rerun").count() == 1


# Staff send failed answers again from the admin's list of turns.


@pytest.mark.parametrize("address_ends", ["", "?state__exact=failed"])
def test_only_failed_ones_are_sent(world: World, admin_client: Client, address_ends: str) -> None:
    world.provider.fail_next(SendError("window closed", permanent=True))
    world.say(CLIENT, "Lost")
    world.say(OTHER_CLIENT, "Fine")
    chosen = Turn.objects.filter(state="failed") if address_ends else Turn.objects.all()
    answer = admin_client.post(
        reverse("admin:sessions_app_turn_changelist") + address_ends,
        {"action": "send_again", "_selected_action": list(chosen.values_list("pk", flat=True))},
        follow=True,
    )
    told = [str(message) for message in answer.context["messages"]]
    left = "1 answer was skipped: it needs no retry, or can't be run any more."
    assert told == ["1 answer is retried.", *([] if address_ends else [left])]
    world.work()
    assert [part.text for part in world.provider.sent] == ["answer to: Fine", "answer to: Lost"]
    assert set(Turn.objects.values_list("state", flat=True)) == {"sent"}
