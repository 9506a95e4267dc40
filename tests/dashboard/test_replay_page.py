"""The replay of a turn: what it shows, who may see and do what, and the list that leads to it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memories_app.models import Memory
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.llm.base import ChatModelError
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.foundation.integrations.whatsapp.base import SendError
from sessions_app.models import Turn, TurnReplay
from tests.dashboard.staff import page, staff_with
from tests.shown import found_in, messages_of, words_of
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, message_from, new_world, remember

pytestmark = pytest.mark.django_db

LIST = "/admin/sessions_app/turn/"
REFUSED = SendError("window closed", permanent=True)
FACT = "TestCorp pays its invoices within 30 days"
QUESTION = "When does TestCorp pay its invoices?"


@pytest.fixture(scope="module")
def answered(module_rows: None) -> None:
    """The owner was told something and asked about it in a later session, beside other facts."""
    world = new_world()
    world.remember(GODFATHER, FACT)
    for what in ("roses", "tomatoes", "a swing", "a pond", "a fence", "lemons"):
        remember(world, f"In the garden beside the house there are old trees and {what}")
    world.say(GODFATHER, "/reset")
    world.say(GODFATHER, QUESTION)


@pytest.fixture
def asked(answered: None, settings: Any) -> Turn:
    settings.GODFATHER_PHONE = frozenset({GODFATHER})
    return newest()


def address(turn: Turn, rest: str = "change/") -> str:
    return f"{LIST}{turn.pk}/{rest}"


def newest() -> Turn:
    return Turn.objects.latest("id")


def read(client: Client, turn: Turn, rest: str = "change/") -> str:
    return words_of(page(client, address(turn, rest)))


def last_read(turn: Turn) -> dict[str, Any]:
    event = AuditEvent.objects.filter(action="conversation.read").latest("id")
    assert event.object_id == str(turn.pk)
    return event.details


def test_it_shows_question_answer_prompt_and_recall(admin_client: Client, asked: Turn) -> None:
    shown = page(admin_client, address(asked))
    memory = Memory.objects.get(content=FACT)
    assert words_of(shown).count(QUESTION) >= 2
    assert f"answer to: {QUESTION[:-1]}" in words_of(shown)
    assert f'href="/admin/memories_app/memory/{memory.pk}/change/"' in shown
    assert f"?at={memory.source_message_id}#m-{memory.source_message_id}" in shown
    hit = asked.replay.recalled[0]
    assert f"{hit['score']:.2f}" in words_of(shown)
    assert f'<rect class="value" width="{round(hit["score"] * 100)}"' in shown
    assert f'name="_selected_action" value="{memory.pk}"' in shown, "to the preview of its erasure"
    # The data in the prompt is fenced off, without the fence's own secret.
    fenced = found_in(r'<div class="fenced">(.*?)</div>', shown)
    assert FACT in fenced
    assert "You are DeniDin" not in fenced
    assert asked.turn_id.hex[:12] not in shown


def test_what_was_changed_since_says_so(admin_client: Client, asked: Turn, world: World) -> None:
    memory = Memory.objects.get(content=FACT)
    Memory.objects.filter(pk=memory.pk).update(content="TestCorp pays within 60 days")
    assert "says something else today" in read(admin_client, asked)
    world.forget("memory", memory.pk)
    shown = read(admin_client, asked)
    assert "erased since" in shown
    assert "within 30 days" not in shown


def test_it_shows_where_time_went_and_what_was_left_out(admin_client: Client, asked: Turn) -> None:
    timings = {"waited_ms": 2_000, "recall_ms": 500, "model_ms": 1_400, "total_ms": 2_000}
    left_out = {
        "messages_until": 12,
        "messages_over_context": 3,
        "recalled": 1,
        "messages_cut": 2,
        "recalled_cut": 1,
        "profile_cut": 1,
        "refused_prompts": 4,
        "recall_degraded": True,
        "passage": "a short passage",
        "summarized_until": 8,
    }
    TurnReplay.objects.filter(turn=asked).update(timings=timings, left_out=left_out)
    asked.finished_at = asked.created_at + timedelta(seconds=5)
    asked.save()
    shown = page(admin_client, address(asked))
    for told in (
        *("Waiting 2.0 s", "Recall 500 ms", "Chat model 1.4 s", "Sending 1.0 s", "5.0 s"),
        "up to message no. 12 did not fit",
        "3 messages were too much",
        "1 recalled text found no room",
        "2 messages were too long and were shortened",
        "Of 1 recalled text only the passage that fits was sent",
        "1 text of the assistant's profile was too long",
        "The model refused 4 longer prompts before",
        *("could not be searched", "a short passage", "up to message no. 8"),
    ):
        assert told in words_of(shown)
    widths = re.findall(r'<rect class="(\w+)" x="([\d.]+)" width="([\d.]+)" height="10"/>', shown)
    assert widths[0] == ("waiting", "0.0", "40.0")
    assert widths[-1] == ("sending", "80.0", "20.0")


def test_a_model_that_failed_is_told_in_words(admin_client: Client, world: World) -> None:
    def fail(_: object) -> str:
        raise ChatModelError("the model is down", permanent=True)

    world.use(chat_model=ScriptedChatModel(fail))
    world.say(CLIENT, "Hi")
    shown = read(admin_client, newest())
    assert "The chat model gave no answer" in shown
    assert "the model is down" in shown


# What would be recalled now, and what came near


def test_recall_now_is_compared_with_then(admin_client: Client, asked: Turn, world: World) -> None:
    gone = {"source": "memory", "id": "00000000-0000-4000-8000-000000000001", "content": "old"}
    TurnReplay.objects.filter(turn=asked).update(recalled=[gone, *asked.replay.recalled])
    world.remember(GODFATHER, "TestCorp pays its invoices by bank transfer")
    shown = page(admin_client, address(asked, "recall/"))
    then, now = shown.split('id="now-title"')
    assert "not recalled today" in words_of(then)
    assert "was no." in words_of(now)
    assert ("by bank transfer" in then, "by bank transfer" in now) == (False, True)
    assert re.search(r'class="state good">new<', now)
    assert last_read(asked) == {"recalled_now": True}
    # It goes by the rights of its chat.
    world.say(CLIENT, QUESTION)
    assert "by bank transfer" not in page(admin_client, address(newest(), "recall/"))


def near(client: Client, turn: Turn) -> list[str]:
    part = client.get(address(turn, "near/"), headers={"X-Requested-With": "live"})
    assert "<html" not in part.content.decode()
    found = re.findall(r'<li class="near">.*?</li>', part.content.decode(), re.S)
    return [words_of(row) for row in found]


def test_the_nearest_five_are_told(admin_client: Client, answered: None, world: World) -> None:
    world.say(CLIENT, QUESTION)
    asked = newest()
    assert f'data-live-part="{address(asked, "near/")}"' in page(admin_client, address(asked))
    shown = near(admin_client, asked)
    assert len(shown) == 5
    assert all("old trees" in row and "too weak to be used" in row for row in shown)
    scores = [float(re.findall(r"Score (\d\.\d\d)", row)[0]) for row in shown]
    assert scores == sorted(scores, reverse=True)
    whole = read(admin_client, asked, "near/")
    assert last_read(asked) == {"near_misses": True}
    assert re.search(r"Found now, .* A memory is used from a score of 0\.\d\d on\.", whole)
    # One that was added since would be used; another chat's is nothing for this one.
    remember(world, "TestCorp pays its invoices late in December")
    world.say(OTHER_CLIENT, "Hello")
    remember(world, "TestCorp pays its invoices to others weekly", "chat", OTHER_CLIENT)
    shown = near(admin_client, asked)
    assert "late in December" in shown[0]
    assert "would be used now" in shown[0]
    assert "too weak to be used" in shown[1]
    assert "weekly" not in " ".join(shown)
    Turn.objects.filter(pk=asked.pk).update(message=None)
    assert "The question isn't kept any more" in read(admin_client, asked, "near/")
    assert "data-live-part" not in page(admin_client, address(asked))


# Running it again


def test_a_failed_turn_is_run_again_once_confirmed(admin_client: Client, world: World) -> None:
    world.provider.fail_next(REFUSED)
    world.say(CLIENT, "Lost")
    turn = newest()
    assert address(turn, "rerun/") in page(admin_client, address(turn))
    shown = page(admin_client, address(turn, "rerun/"))
    told = words_of(shown).replace("\u2068", "").replace("\u2069", "")
    for text in (f"To: {turn.chat}", "They wrote Lost", "This is sent answer to: Lost"):
        assert text in told
    assert last_read(turn) == {"rerun": True}
    seen = found_in(r'name="seen" value="([^"]+)"', shown)
    turn.refresh_from_db()
    assert turn.state == "failed", "looking sends nothing"
    first, again = (
        messages_of(admin_client.post(address(turn, "rerun/"), {"seen": seen}, follow=True))[0]
        for _ in range(2)
    )
    assert first == "It is being sent again."
    assert again.startswith("Nothing was done")
    world.work()
    assert [part.text for part in world.provider.sent] == ["answer to: Lost"]
    assert AuditEvent.objects.filter(action="turn.resend").count() == 1


def test_a_missed_message_leads_to_a_reply_by_hand(admin_client: Client, world: World) -> None:
    long_ago = timezone.now() - timedelta(days=3)
    world.receive(message_from(CLIENT, "too late", timestamp=long_ago))
    turn, told = newest(), "Reply in the conversation"
    assert turn.state == "missed"
    assert told in read(admin_client, turn)
    assert told not in read(staff_with("sessions_app.view_turn"), turn)
    world.say(CLIENT, "Hello")
    assert told not in read(admin_client, newest())


def test_the_list_leads_to_failed_and_shows_how_it_went(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "Fine")
    world.provider.fail_next(REFUSED)
    world.say(OTHER_CLIENT, "Lost")
    answered = TurnReplay.objects.filter(turn__state="sent")
    answered.update(model="model-one", prompt_tokens=1204)
    shown = page(admin_client, LIST)
    assert re.search(r'href="[^"]*\?state__exact=failed" class="bad">Failed <span[^>]*>1<', shown)
    for text in ("window closed", "model-one", "1,204"):
        assert text in shown
    only = page(admin_client, LIST, state__exact="failed")
    assert ("window closed" in only, "1,204" in only) == (True, False)
    assert "1,204" in page(admin_client, LIST, model="model-one")
