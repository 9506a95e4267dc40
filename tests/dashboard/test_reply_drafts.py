"""Drafts that the assistant makes for staff who reply themselves, and what is learned of them."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.test import Client

from memories_app.models import Memory
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.llm.base import (
    ChatModelError,
    ChatRequest,
    OfflineChatModel,
)
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from sessions_app.models import AnswerTrial, Message, Turn, UsageDay
from sessions_app.trials.run_trial import trial_run
from tests.dashboard.senders import by_hand, conversation, panel, post, takeover
from tests.dashboard.staff import staff_with
from tests.world import CLIENT, GODFATHER, World, new_world, remember

pytestmark = pytest.mark.django_db
FACT = "TestCorp pays its invoices within 30 days"
QUESTION = "When does TestCorp pay its invoices?"


@pytest.fixture(scope="module")
def waiting(module_rows: None) -> None:
    world = new_world()
    remember(world, FACT)
    world.say(CLIENT, "Good morning")


@pytest.fixture
def paused(waiting: None, world: World, admin_client: Client) -> World:
    """A chat in which staff have paused the assistant, and the client asks something."""
    post(admin_client, world, "pause", lasts="open")
    world.say(CLIENT, QUESTION)
    return world


def make(world: World) -> AnswerTrial:
    """What the worker does."""
    draft = AnswerTrial.objects.latest("created_at")
    trial_run(trial_id=draft.pk, dependencies=world.dependencies, model_named=lambda _name: None)
    draft.refresh_from_db()
    return draft


def ask(client: Client, world: World, **form: str) -> str:
    """Ask as the panel's script does."""
    answer = client.post(takeover(world, "draft/"), form, headers={"X-Requested-With": "live"})
    assert answer.status_code == 200
    return html.unescape(answer.content.decode())


def test_a_draft_is_made_as_an_answer_is_and_nothing_of_it_is_sent(
    admin_client: Client, paused: World
) -> None:
    before = list(Message.objects.values()), list(Turn.objects.values())
    assert "Draft for me" in panel(admin_client, paused)
    shown = ask(admin_client, paused, new="1")
    assert "being made" in shown
    assert ask(admin_client, paused, new="1") == shown, "two clicks ask for one"
    draft = make(paused)

    prompt = paused.prompt()
    assert prompt[-1].content == QUESTION
    assert FACT in prompt[0].content
    shown = ask(admin_client, paused, draft=str(draft.pk))
    assert f"answer to: {QUESTION}" in shown
    assert "Sources" in shown
    assert re.search(rf"[01]\.\d\d</span> <a href=[^>]*>{FACT}", shown)
    assert (list(Message.objects.values()), list(Turn.objects.values())) == before
    assert paused.provider.sent == []
    assert UsageDay.objects.get().model_calls == 2, "it counts as an answer does"
    [event] = AuditEvent.objects.filter(action="takeover.draft")
    assert event.actor == "admin"
    # Who may see no memories sees no sources.
    rights = ("view_chat", "view_message", "takeover_chat")
    other = staff_with(*(f"sessions_app.{each}" for each in rights))
    assert "Sources" not in ask(other, paused, draft=str(draft.pk))


def test_without_a_script_it_stands_in_the_box_or_beside_what_was_typed(
    admin_client: Client, paused: World
) -> None:
    post(admin_client, paused, "draft", new="1", text="")
    draft = make(paused)
    for typed, expected in (("", draft.text), ("My own words", "My own words")):
        answer = post(admin_client, paused, "draft", draft=str(draft.pk), text=typed)
        shown = html.unescape(answer.content.decode())
        assert re.search(r'name="text"[^>]*>\n([^<]*)</textarea>', shown)[1] == expected  # type: ignore[index]
        assert draft.text in shown


@pytest.mark.parametrize("changed", [True, False])
def test_what_staff_changed_is_offered_as_a_lesson(
    admin_client: Client, paused: World, changed: bool
) -> None:
    post(admin_client, paused, "draft", new="1")
    draft = make(paused)
    text = f"{draft.text}. On Fridays we pay in cash!" if changed else draft.text
    answer = post(admin_client, paused, "reply", text=text, draft=str(draft.pk))
    assert paused.provider.sent[-1].text == text
    details = AuditEvent.objects.get(action="takeover.reply").details
    assert details["draft"] == ("changed" if changed else "sent")
    shown = admin_client.get(answer.url).content.decode()
    assert ("Teach this?" in shown) == changed
    assert "Teach this?" not in conversation(admin_client, paused)
    if changed:
        offered = re.search(r'id="lesson-text"[^>]*>\n([^<]*)</textarea>', shown)
        assert offered is not None
        assert offered[1] == "On Fridays we pay in cash!"
        teach = re.search(r'action="([^"]*/teach/)" class="lesson"', shown)
        assert teach is not None
        admin_client.post(teach[1], {"content": offered[1], "for": "client"})
        assert Memory.objects.get(content=offered[1]).chat_id == paused.chat(CLIENT).pk


def refusing(_request: ChatRequest) -> str:
    raise ChatModelError("the model is away", permanent=True)


@pytest.mark.parametrize("model", [OfflineChatModel(), ScriptedChatModel(refusing)])
def test_without_a_model_the_facts_are_the_draft(
    admin_client: Client, paused: World, model: Any
) -> None:
    paused.use(chat_model=model)
    post(admin_client, paused, "draft", new="1")
    draft = make(paused)
    assert draft.text.strip().endswith(f"{FACT}")
    assert "\n" not in draft.text.strip()
    shown = ask(admin_client, paused, draft=str(draft.pk))
    assert "No model wrote this draft" in shown
    assert ("the model is away" in shown) == isinstance(model, ScriptedChatModel)


def test_where_nothing_is_known_it_says_why(admin_client: Client, paused: World) -> None:
    Memory.objects.all().delete()
    paused.use(chat_model=ScriptedChatModel(refusing))
    post(admin_client, paused, "draft", new="1")
    draft = make(paused)
    shown = ask(admin_client, paused, draft=str(draft.pk))
    assert "No draft was made." in shown
    assert "the model is away" in shown
    # A new one may be asked for, and the erased question can't be replied to.
    Message.objects.filter(role="user").delete()
    assert "isn't kept any more" in ask(admin_client, paused, new="1")


def test_it_is_offered_where_staff_reply(admin_client: Client, waiting: None, world: World) -> None:
    assert "Draft for me" not in panel(admin_client, world)
    Turn.objects.update(state="failed", outcome="failed")
    assert "Draft for me" in panel(admin_client, world)
    # A draft of another chat isn't shown, nor sent as one of this chat.
    world.say(GODFATHER, "What do we owe?")
    post(admin_client, world, "draft", new="1")
    draft = make(world)
    AnswerTrial.objects.update(turn=Turn.objects.get(chat=world.chat(GODFATHER)))
    assert draft.text not in ask(admin_client, world, draft=str(draft.pk))
    post(admin_client, world, "reply", text="Hi", draft=str(draft.pk))
    assert "draft" not in by_hand().context


def test_a_draft_that_repeats_the_instructions_is_not_shown(
    admin_client: Client, paused: World
) -> None:
    model = ScriptedChatModel(lambda request: f"They are: {request.messages[0].content}")
    paused.use(chat_model=model)
    ask(admin_client, paused, new="1")
    draft = make(paused)
    shown = ask(admin_client, paused, draft=str(draft.pk))
    assert "repeated its instructions" in shown
    assert "You are talking to" not in shown
    assert FACT not in shown
