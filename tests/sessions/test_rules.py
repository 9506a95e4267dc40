"""Rules of staff: each happening and each action, once, and what holds them back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.test import Client
from django.utils import timezone
from django_q.models import OrmQ

from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.outgoing_webhooks.models import WebhookEvent
from memoryproject.staff_site.models import Notification
from sessions_app.conversations.session_lifecycle import rules_look
from sessions_app.inbox.labels import chats_label
from sessions_app.merging.merge_chats import chat_merge
from sessions_app.models import (
    Assignment,
    AssistantProfile,
    Chat,
    ChatAccess,
    ChatMark,
    ChatPause,
    Label,
    Message,
    Note,
    Rule,
    RuleRun,
    Turn,
)
from sessions_app.rule_pages import rule_sentence
from sessions_app.rules import Outlet, chats_due, rules_run
from sessions_app.takeover.facade import OwnNumber, Writer
from sessions_app.tasks import run_rules, sweep_work
from sessions_app.turns.facade import chat_locked
from tests.events import revocation
from tests.promises.test_promises import read
from tests.sessions.test_hours import closed_today
from tests.threads import begin_all_blocked
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db


def rule(**changes: Any) -> Rule:
    since = timezone.now() - timedelta(days=1)
    return Rule.objects.create(**{"name": "A rule", "when": "message", "since": since, **changes})


def sweep(world: World) -> list[str]:
    """Do what the sweep finds; return the texts that went out."""
    now = timezone.now()
    writer = Writer(None, SYSTEM, world.rules, lambda _chat: None, now)
    outlet = Outlet(writer, world.dependencies.providers, OwnNumber("cloud"))
    sent = len(world.provider.sent)
    for chat_id in chats_due(now):
        rules_run(chat_id=chat_id, outlet=outlet)
    assert not chats_due(now)
    world.work()
    return [part.text for part in world.provider.sent[sent:]]


def did() -> list[str]:
    return list(RuleRun.objects.order_by("id").values_list("did", flat=True))


def earlier(minutes: int) -> None:
    """Let it all have happened so many minutes ago."""
    ago = timedelta(minutes=minutes)
    Message.objects.update(received_at=F("received_at") - ago, timestamp=F("timestamp") - ago)
    Turn.objects.update(created_at=F("created_at") - ago)


@pytest.mark.parametrize(
    ("words", "text", "is_met"),
    [
        ("refund\nmoney back", "I want my MONEY  back!", True),
        ("fund", "A refund, please", False),
        ("החזר", "אני רוצה החזר", True),
        ("возврат", "Хочу ВОЗВРАТ!", True),
        ("退款", "我要退款谢谢", True),
        ("환불", "환불해 주세요", True),
        ("🔥", "it burns 🔥🔥", True),
        ("", "anything", True),
    ],
)
def test_words_of_any_script(world: World, words: str, text: str, is_met: bool) -> None:
    rule(words=words, text="We look into it")
    world.say(CLIENT, text)
    assert sweep(world) == (["We look into it"] if is_met else [])
    # The rule's own message isn't one of a client, and each message counts once.
    assert sweep(world) == []


def test_words_are_found_where_memory_is_off_and_nothing_is_kept(world: World) -> None:
    world.with_rules(memory_enabled=False)
    rule(words="refund", tells=True)
    rule(name="Other", words="table", tells=True)
    # The answer is there before a worker looks.
    assert world.say(CLIENT, "A refund for 4711, please")
    assert sweep(world) == []
    assert ChatMark.objects.get().rule_name == "A rule"
    assert did() == ["tell"]
    assert "4711" not in str(list(Turn.objects.values())) + str(list(RuleRun.objects.values()))


def test_a_new_chat_and_its_label(world: World) -> None:
    vip = Label.objects.create(name="new")
    rule(when="new_chat", add_label=vip)
    rule(name="Second", when="label", label=vip, tells=True, position=20)
    world.say(CLIENT, "Hello")
    assert sweep(world) == []
    world.say(CLIENT, "Hello again")
    sweep(world)
    assert did() == ["label", "tell"]
    assert ChatMark.objects.get().rule_name == "Second"
    assert "Second" in Note.objects.get().text
    assert WebhookEvent.objects.filter(event_type="rule.matched").count() == 1
    assert AuditEvent.objects.filter(action="rule.act").count() == 2


def test_assignment_by_turn(world: World) -> None:
    people = [User.objects.create_user(name, is_staff=True) for name in ("ana", "ben", "gone")]
    User.objects.filter(username="gone").update(is_active=False)
    rule(when="new_chat").assignees.set(people)
    for chat in (CLIENT, OTHER_CLIENT, "15550100789@c.us"):
        world.say(chat, "Hello")
        sweep(world)
    order = Assignment.objects.order_by("assigned_at").values_list("assignee__username", flat=True)
    assert list(order) == ["ana", "ben", "ana"]


@pytest.fixture
def waiting(world: World) -> World:
    rule(when="silence", minutes=30, text="We are sorry for the delay", due_minutes=5)
    world.say(CLIENT, "human please")
    ChatPause.objects.all().delete()
    return world


def test_no_answer_for_so_long(waiting: World) -> None:
    earlier(29)
    assert sweep(waiting) == []
    earlier(2)
    assert sweep(waiting) == ["We are sorry for the delay"]
    assert sweep(waiting) == []


def test_whoever_was_answered_or_is_old_waits_no_more(waiting: World) -> None:
    waiting.say(CLIENT, "How much is the rye?")
    earlier(31)
    assert sweep(waiting) == []
    Message.objects.filter(role="assistant").delete()
    earlier(24 * 60)
    assert sweep(waiting) == []


def test_handed_over_and_due(world: World, admin_client: Client) -> None:
    rule(when="handover", due_minutes=30, text="Not where the assistant is paused")
    world.say(CLIENT, "human please")
    assert sweep(world) == []
    assert did() == ["due"]

    def listed(query: str) -> bool:
        page = admin_client.get(f"/admin/sessions_app/chat/?{query}").content.decode()
        return str(Chat.objects.get().pk) in page

    assert listed("due=any")
    assert not listed("due=overdue")
    ChatMark.objects.update(due_at=timezone.now() - timedelta(minutes=1))
    assert listed("due=overdue")
    assert listed("attention=1")
    world.say(CLIENT, "I am on it", from_business=True)
    assert not ChatMark.objects.exists()


def test_the_away_text_once_a_closed_period(world: World) -> None:
    hours = {**closed_today(), "away_text": "We are away"}
    AssistantProfile.objects.update_or_create(pk=1, defaults={"hours": hours})
    AssistantProfile.objects.update(updated_at=timezone.now() - timedelta(days=1))
    world.say(CLIENT, "Hello?")
    assert sweep(world) == ["We are away"]
    world.say(CLIENT, "Anybody?")
    world.say(OTHER_CLIENT, "Hello")
    assert sweep(world) == ["We are away"]
    AssistantProfile.objects.update(hours={**hours, "dates": ""})
    world.say("15550100789@c.us", "Hello")
    assert sweep(world) == []


@pytest.mark.parametrize("memory_enabled", [True, False])
def test_the_away_text_answers_no_deleted_message(world: World, memory_enabled: bool) -> None:
    hours = {**closed_today(), "away_text": "We are away"}
    AssistantProfile.objects.update_or_create(pk=1, defaults={"hours": hours})
    AssistantProfile.objects.update(updated_at=timezone.now() - timedelta(days=1))
    world.with_rules(memory_enabled=memory_enabled)
    message = message_from(CLIENT, "Hello?")
    world.receive(message, revocation(message.provider_message_id))
    assert sweep(world) == []
    world.say(CLIENT, "Anybody?")
    assert sweep(world) == ["We are away"]


def test_the_texts_of_rules_name_whom_they_go_to(world: World, admin_client: Client) -> None:
    AssistantProfile.objects.update_or_create(pk=1, defaults={"business_name": "TestCorp"})
    rule(words="refund", text="Hello {name|there}, {business} pays back.")
    world.say(CLIENT, "A refund, please")
    assert sweep(world) == ["Hello Test User, TestCorp pays back."]


def test_the_text_of_a_rule_promises_nothing(world: World) -> None:
    rule(words="refund", text="I'll send you the form tomorrow.")
    world.say(CLIENT, "A refund, please")
    assert sweep(world) == ["I'll send you the form tomorrow."]
    assert read(world) == []


@pytest.mark.parametrize(
    ("minutes", "words"),
    [(1, "for 1 minute, then mark as due in 1 minute."), (2, "for 2 minutes, then mark as due in")],
)
def test_a_rule_in_words(minutes: int, words: str) -> None:
    made = rule(when="silence", minutes=minutes, due_minutes=minutes)
    assert words in rule_sentence(made, [])


@pytest.mark.parametrize("page", ["rule/add", "openinghours/1/change"])
@pytest.mark.parametrize("text", ["Hi {foo}", "Hi {name}, {first_name|you}", "Hi { nmae }"])
def test_a_placeholder_that_nothing_fills_is_refused(
    world: World, admin_client: Client, page: str, text: str
) -> None:
    form = {"name": "R", "when": "message", "position": "0", "text": text, "sunday": "9-17"}
    answer = admin_client.post(f"/admin/sessions_app/{page}/", {**form, "away_text": text})
    assert "Nothing fills {" in answer.content.decode()
    assert not Rule.objects.exists()
    assert not AssistantProfile.objects.filter(hours__has_key="away_text").exists()


def test_a_hand_over_text_is_told_instead_of_the_away_text(world: World) -> None:
    hours = {**closed_today(), "away_text": "We are away"}
    AssistantProfile.objects.update_or_create(pk=1, defaults={"hours": hours})
    AssistantProfile.objects.update(updated_at=timezone.now() - timedelta(days=1))
    (told,) = world.say(CLIENT, "human please")
    assert "Somebody answers" in told
    # A colleague gave it back to the assistant.
    ChatPause.objects.all().delete()
    assert sweep(world) == []
    world.say(CLIENT, "Anybody?")
    assert sweep(world) == []
    # Nor just before, while the answer is made.
    world.receive(message_from(OTHER_CLIENT, "human please"))
    (told,) = sweep(world)
    assert "Somebody answers" in told


def test_one_person_of_two_chats_gets_a_text_once(world: World) -> None:
    hours = {**closed_today(), "away_text": "We are away"}
    AssistantProfile.objects.update_or_create(pk=1, defaults={"hours": hours})
    AssistantProfile.objects.update(updated_at=timezone.now() - timedelta(days=1))
    rule(text="A text")
    rule(name="Welcome", when="new_chat", text="Welcome")
    world.say(CLIENT, "Hello")
    old = Chat.objects.get()
    RuleRun.objects.create(chat=old, event="before")
    world.say(OTHER_CLIENT, "Me again")
    young = Chat.objects.exclude(pk=old.pk).get()
    told = Notification(user=User.objects.create_user("ana"), chat=young, kind="due", subject="x")
    told.save()
    RuleRun.objects.create(chat=young, event="before")
    assert len(sweep(world)) == 6
    with transaction.atomic():
        chat_merge(old, young)
    assert sweep(world) == []
    assert Notification.objects.get().chat == old


def test_a_failed_answer(world: World) -> None:
    rule(when="unanswered", tells=True)
    world.say(CLIENT, "How much is the rye?")
    assert sweep(world) == []
    Turn.objects.update(outcome="failed")
    sweep(world)
    assert did() == ["tell"]


@pytest.mark.parametrize("why", ["stopped", "blocked", "owner", "paused", "window", "off", "older"])
def test_what_holds_a_text_back(world: World, settings: Any, why: str) -> None:
    settings.GODFATHER_PHONE = frozenset({GODFATHER})
    made = rule(text="A text")
    who = GODFATHER if why == "owner" else CLIENT
    world.say(who, "Hello")
    chat = Chat.objects.get()
    if why == "stopped":
        ChatAccess.objects.update_or_create(chat=chat, defaults={"opted_out_at": timezone.now()})
    if why == "blocked":
        ChatAccess.objects.update_or_create(chat=chat, defaults={"standing": "blocked"})
    if why == "paused":
        ChatPause.objects.create(chat=chat)
    if why == "window":
        Message.objects.update(timestamp=timezone.now() - timedelta(hours=25))
        Turn.objects.update(asked_at=timezone.now() - timedelta(hours=25))
    if why == "off":
        Rule.objects.update(is_on=False)
    if why == "older":
        Rule.objects.filter(pk=made.pk).update(since=timezone.now())
    assert sweep(world) == []


def test_an_assistant_stays_on_after_a_rules_text(world: World) -> None:
    rule(text="A text")
    world.say(CLIENT, "Hello")
    sweep(world)
    assert world.say(CLIENT, "How much is the rye?") == ["answer to: How much is the rye?"]
    assert AuditEvent.objects.filter(action="rule.reply").count() == 1


def test_a_label_given_by_hand(world: World) -> None:
    label = Label.objects.create(name="VIP")
    ana = User.objects.create_user("ana", is_staff=True)
    rule(when="label", label=label).assignees.set([ana])
    world.say(CLIENT, "Hello")
    chats_label(chat_ids=[Chat.objects.get().pk], label=label, actor=SYSTEM)
    sweep(world)
    assert Assignment.objects.get().assignee == ana


def test_a_worker_is_called_and_the_sweep_finds_what_it_lost(world: World) -> None:
    world.with_rules(look_at=rules_look)
    world.say(CLIENT, "Hello")
    assert not OrmQ.objects.exists()
    rule(tells=True)
    world.say(CLIENT, "Hello again")
    assert OrmQ.objects.count() == 1
    assert sweep_work()["rules"] == 1
    assert run_rules(str(Chat.objects.get().pk)) == 2
    assert run_rules(str(Chat.objects.get().pk)) == 0
    assert sweep_work()["rules"] == 0


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_act_once(world: World) -> None:
    rule(tells=True)
    world.say(CLIENT, "Hello")
    chat = Chat.objects.get()
    with transaction.atomic():
        chat_locked(chat.pk)
        # Both have found the event, and wait for the chat.
        workers = begin_all_blocked(*[lambda: run_rules(str(chat.pk))] * 2)
    assert sorted(each.result() for each in workers) == [0, 1]
    assert Note.objects.count() == 1


ADD = "/admin/sessions_app/rule/add/"


def test_the_pages(world: World, admin_client: Client) -> None:
    given = {"name": "Refunds", "when": "message", "words": "refund", "position": 10, "is_on": "on"}
    refused = admin_client.post(ADD, given)
    assert b"Say what the rule does." in refused.content
    refused = admin_client.post(ADD, {**given, "when": "silence", "tells": "on"})
    assert b"Say after how many minutes." in refused.content
    refused = admin_client.post(ADD, {**given, "template": "We Are Back en"})
    assert "template_" not in refused.context["adminform"].form.errors.as_text()
    assert admin_client.post(ADD, {**given, "tells": "on"}).status_code == 302
    made = Rule.objects.get()
    listed = admin_client.get("/admin/sessions_app/rule/").content.decode()
    assert "When a client writes, if the message holds “refund”, then tell us." in listed
    world.say(CLIENT, "A refund!")
    RuleRun.objects.create(chat=Chat.objects.get(), rule=made, event="x", did="tell")
    tried = admin_client.get(f"/admin/sessions_app/rule/{made.pk}/last-week/").content.decode()
    assert "1 event" in tried
    assert "told" in tried
    assert not ChatMark.objects.exists()
    assert admin_client.get("/admin/sessions_app/rule/99/last-week/").status_code == 404
    actions = AuditEvent.objects.filter(action__startswith="rule.")
    assert list(actions.values_list("action", flat=True)) == ["rule.create"]
