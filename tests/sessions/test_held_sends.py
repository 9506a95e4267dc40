"""What a provider refuses for our account is held, and sent once it is accepted again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.whatsapp.base import SendError
from memoryproject.foundation.outside_services.models import OutsideService
from memoryproject.staff_site.alerts import current_conditions
from sessions_app.inbox.needs import conversations_count
from sessions_app.models import Message, OutboundPart, Turn
from sessions_app.turns.queue import chat_answer
from sessions_app.turns.statuses import sends_resume
from tests.sessions.desk import Desk
from tests.world import CLIENT, OTHER_CLIENT, World

pytestmark = pytest.mark.django_db

BAD_TOKEN = SendError("HTTP 401: token expired", permanent=True, alert=True, code=190)
PAUSED = SendError(ErrorText("service_paused"), retry_after=30, is_paused=True)


def refuse(world: World, *errors: SendError) -> None:
    world.provider.fail_next(*errors)


def later(world: World) -> list[str]:
    """As if the time until the next try had passed."""
    sent = len(world.provider.sent)
    Turn.objects.filter(not_before__isnull=False).update(not_before=timezone.now())
    world.work()
    return [part.text for part in world.provider.sent[sent:]]


def account_alerts() -> list[tuple[str, str]]:
    found = current_conditions(timezone.now())
    return [(each.key, each.text.code) for each in found if each.key.startswith("service:")]


@pytest.fixture
def page() -> Client:
    """A superuser's browser."""
    client = Client()
    client.force_login(User.objects.create_superuser("admin", password="a-password"))
    return client


def test_a_refused_token_holds_the_answer_until_it_is_accepted_again(world: World) -> None:
    refuse(world, BAD_TOKEN, PAUSED, BAD_TOKEN)
    assert world.say(CLIENT, "Hi") == []
    turn, part = Turn.objects.get(), OutboundPart.objects.get()
    assert (turn.state, turn.error.code, part.state) == ("replied", "send_held", "waiting")
    assert turn.not_before is not None
    assert conversations_count() == 0
    assert later(world) == []
    turn.refresh_from_db()
    assert turn.error.code == "send_held", "a provider that isn't called has said nothing new"
    assert later(world) == []
    assert world.provider.attempts == 3, "no quick retries"
    assert later(world) == ["answer to: Hi"]
    turn.refresh_from_db()
    assert (turn.state, turn.error) == ("sent", "")
    assert later(world) == []


def test_what_is_held_for_too_long_fails_and_needs_attention(world: World) -> None:
    refuse(world, BAD_TOKEN)
    world.say(CLIENT, "Hi")
    Turn.objects.update(asked_at=timezone.now() - timedelta(hours=25))
    assert later(world) == []
    turn = Turn.objects.get()
    assert (turn.state, turn.error.code, conversations_count()) == ("failed", "send_too_late", 1)
    assert world.provider.attempts == 1, "the provider isn't called"
    assert Message.objects.get(role="assistant").delivery_status == "failed"


def test_questions_behind_a_held_answer_keep_their_order(world: World) -> None:
    refuse(world, BAD_TOKEN)
    assert world.say(CLIENT, "one") == []
    assert world.say(CLIENT, "two") == []
    assert later(world) == ["answer to: one", "answer to: two"]


def test_a_reply_of_staff_is_held_too(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    refuse(world, BAD_TOKEN)
    desk.write("Hello, it is Dana.")
    world.work()
    assert Turn.objects.get(by_hand=True).state == "replied"
    assert later(world) == ["Hello, it is Dana."]


def test_the_others_follow_the_first_that_is_sent(world: World) -> None:
    chats = [CLIENT, OTHER_CLIENT]
    refuse(world, BAD_TOKEN, PAUSED)
    for chat in chats:
        world.say(chat, f"from {chat}")
    Turn.objects.filter(chat=world.chat(CLIENT)).update(not_before=timezone.now())
    enqueuing(world)
    chat_answer(chat_id=world.chat(CLIENT).pk, dependencies=world.dependencies)
    (other,) = Turn.objects.filter(state="replied")
    assert other.not_before is not None
    assert other.not_before <= timezone.now()
    chat_answer(chat_id=other.chat_id, dependencies=world.dependencies)
    assert [part.text for part in world.provider.sent] == [f"answer to: from {c}" for c in chats]


@pytest.mark.parametrize(
    ("state", "well", "resumed"),
    [
        # Put off at the moment when another answer was the first that was sent.
        ({}, timedelta(seconds=-1), 2),
        # Refused, or left alone, long after the provider was well.
        ({}, timedelta(seconds=-30), 0),
        ({"state": "open"}, timedelta(seconds=-1), 0),
        ({"failures": 10, "error": "HTTP 401"}, timedelta(seconds=-1), 0),
        # One failure, then a success: the breaker never opened.
        ({"error": "HTTP 401"}, timedelta(seconds=-1), 0),
    ],
)
def test_what_was_put_off_before_the_provider_was_well_follows_at_the_next_look(
    world: World, state: dict[str, Any], well: timedelta, resumed: int
) -> None:
    refuse(world, BAD_TOKEN, PAUSED)
    for chat in (CLIENT, OTHER_CLIENT):
        world.say(chat, "Hi")
    now = timezone.now()
    OutsideService.objects.create(
        name="whatsapp_cloud", target="graph.example", changed_at=now + well, **state
    )
    assert sends_resume(enqueue=world.enqueued.append, now=now) == resumed
    ready = Turn.objects.filter(state="replied", not_before__lte=timezone.now())
    assert ready.count() == resumed
    assert sends_resume(enqueue=world.enqueued.append, now=timezone.now()) == 0


def enqueuing(world: World) -> None:
    world.use(enqueue=world.enqueued.append)


def test_a_delay_that_the_provider_asked_for_is_kept(world: World) -> None:
    refuse(world, BAD_TOKEN, *[SendError("slow down", retry_after=300)] * 4)
    world.say(CLIENT, "one")
    world.say(OTHER_CLIENT, "other")
    Turn.objects.filter(chat=world.chat(CLIENT)).update(not_before=timezone.now())
    enqueuing(world)
    chat_answer(chat_id=world.chat(CLIENT).pk, dependencies=world.dependencies)
    other = Turn.objects.get(chat=world.chat(OTHER_CLIENT))
    assert other.not_before is not None
    assert other.not_before > timezone.now()


def test_staff_get_one_alert_for_an_outage_and_one_for_the_next(world: World) -> None:
    for question in ("one", "two"):
        refuse(world, BAD_TOKEN)
        world.say(CLIENT, question)
        assert account_alerts() == [("service:whatsapp_cloud:", "alert_account")]
        later(world)
        assert account_alerts() == []


def test_each_page_says_what_to_do_until_a_send_succeeds(world: World, page: Client) -> None:
    refuse(world, BAD_TOKEN)
    world.say(CLIENT, "one")
    for address in (
        "/admin/",
        reverse("admin:operations"),
        reverse("admin:sessions_app_turn_changelist"),
    ):
        text = page.get(address).content.decode()
        assert "WHATSAPP_CLOUD_ACCESS_TOKEN" in text
        assert "HTTP 401: token expired" in text
        assert "Send now" in text
    later(world)
    assert "Send now" not in page.get("/admin/").content.decode()


def test_staff_send_what_is_held_with_one_click(world: World, page: Client) -> None:
    opened = timezone.now()
    OutsideService.objects.create(
        name="whatsapp_cloud", target="graph.example", state="open", opened_at=opened
    )
    refuse(world, BAD_TOKEN, PAUSED)
    world.say(CLIENT, "one")
    world.say(OTHER_CLIENT, "other")
    answer = page.post(reverse("admin:sessions_app_turn_send_held"), follow=True)
    assert "2 answers are sent now." in answer.content.decode()
    assert OutsideService.objects.get().opened_at < opened
    world.work()
    assert len(world.provider.sent) == 2
    event = AuditEvent.objects.get(action="turn.send_held")
    assert event.details == {"answers": 2}
    answer = page.post(reverse("admin:sessions_app_turn_send_held"), follow=True)
    assert "No answer is held any more." in answer.content.decode()
