"""A question whose answer failed for a cause outside is answered once when the cause is gone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import SYSTEM, Actor
from memoryproject.foundation.integrations.llm.base import ChatModelError, ChatRequest
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.foundation.integrations.whatsapp.base import SendError
from memoryproject.foundation.outside_services.models import OutsideService
from memoryproject.staff_site.alerts import current_conditions
from sessions_app.inbound.synchronous_chat import talk
from sessions_app.inbox.needs import conversations_count, reasons_of
from sessions_app.limits.intake import UsageLimits, access_of
from sessions_app.models import Turn, UsageDay
from sessions_app.turns.open_questions import MAX_AT_ONCE, MAX_DEFERRALS, questions_resume
from sessions_app.turns.queue import chat_answer
from sessions_app.turns.rerun import turn_rerun
from sessions_app.turns.turn_claims import chat_pause, chat_resume
from tests.events import revocation
from tests.sessions.desk import Desk
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db

AWAY = ChatModelError("The model server could not be reached.", permanent=True, is_outside=True)
REFUSED = ChatModelError("The model server answered 400.", permanent=True)
SORRY = "Sorry, I can't answer right now. Please try again in a few minutes."
DAY = timedelta(hours=24)


@dataclass
class Model:
    """The model of the world: away while ``error`` is set. ``tries`` counts the calls."""

    error: Exception | None = AWAY
    tries: int = 0

    def __call__(self, request: ChatRequest) -> str:
        self.tries += 1
        if self.error is not None:
            raise self.error
        return f"answer to: {request.messages[-1].content}"


@pytest.fixture
def model(world: World) -> Model:
    model = Model()
    world.use(chat_model=ScriptedChatModel(model))
    return model


def resume(world: World, *, minutes: float = 1, work: bool = True) -> list[str]:
    """What the sweep does so many minutes from now; returns what is sent then."""
    sent = len(world.provider.sent)
    now = timezone.now() + timedelta(minutes=minutes)
    questions_resume(enqueue=world.enqueued.append, max_age=DAY, now=now)
    # Their time has come.
    Turn.objects.filter(state="pending").update(not_before=None)
    if work:
        world.work()
    return [part.text for part in world.provider.sent[sent:]]


def turn_of(text: str) -> Turn:
    return Turn.objects.get(message__content=text)


def reasons(turn: Turn) -> list[str]:
    """Why the turn's conversation waits for somebody."""
    return [str(reason) for reason, _ in reasons_of([turn.chat_id]).get(turn.chat_id, [])]


def test_an_outage_gives_one_apology_and_then_one_answer(world: World, model: Model) -> None:
    assert world.say(CLIENT, "When do you open?") == [SORRY]
    assert (turn_of("When do you open?").state, conversations_count()) == ("deferred", 0)
    assert resume(world) == [], "no second apology at a retry"
    assert resume(world) == []
    model.error = None
    assert resume(world) == ["answer to: When do you open?"]
    assert resume(world) == []
    turn = turn_of("When do you open?")
    # It waits as a question for which nothing is known, and not as a failed one.
    assert (turn.state, turn.error, reasons(turn)) == ("sent", "", ["unknown question"])
    assert turn.reply is not None
    assert turn.reply.answers_id == turn.message_id
    assert [message.content for message in world.messages(CLIENT)] == [
        "When do you open?",
        SORRY,
        "answer to: When do you open?",
    ]


def test_two_outages_give_two_apologies_and_each_has_its_alert(world: World, model: Model) -> None:
    def alerts() -> list[str]:
        found = current_conditions(timezone.now())
        return [each.key for each in found if each.key.startswith("service:")]

    for question in ("When do you open?", "And on Friday?"):
        model.error = AWAY
        assert world.say(CLIENT, question) == [SORRY]
        assert alerts() == ["service:chat_model:"]
        model.error = None
        assert resume(world) == [f"answer to: {question}"]
        assert alerts() == []


def test_the_newest_question_stands_for_the_chat(world: World, model: Model) -> None:
    assert world.say(CLIENT, "When do you open?") == [SORRY]
    assert world.say(CLIENT, "Hello?") == [], "one apology for an outage"
    model.error = None
    assert resume(world) == ["answer to: Hello?"]
    older = turn_of("When do you open?")
    assert (older.state, older.error.code) == ("failed", "question_overtaken")
    assert conversations_count() == 1


def test_a_command_is_answered_meanwhile_and_overtakes_nothing(world: World, model: Model) -> None:
    world.say(CLIENT, "When do you open?")
    (text,) = world.say(CLIENT, "/help")
    assert "/remember" in text
    model.error = None
    assert resume(world) == ["answer to: When do you open?"]


@pytest.mark.parametrize(
    ("text", "from_business", "ends"),
    [("/reset", False, ("failed", 1)), ("At nine!", True, ("cancelled", 0))],
    ids=["reset", "by phone"],
)
def test_newer_words_overtake(
    world: World, model: Model, text: str, from_business: bool, ends: tuple[str, int]
) -> None:
    world.say(CLIENT, "When do you open?")
    world.say(CLIENT, text, from_business=from_business)
    model.error = None
    assert resume(world) == []
    assert (turn_of("When do you open?").state, conversations_count()) == ends


def test_what_staff_write_takes_the_question(world: World, model: Model, desk: Desk) -> None:
    world.say(CLIENT, "When do you open?")
    desk.write("At nine!")
    model.error = None
    assert "answer to: When do you open?" not in resume(world)
    assert turn_of("When do you open?").state == "cancelled"


def test_a_pause_holds_the_question_until_it_ends(world: World, model: Model) -> None:
    world.say(CLIENT, "When do you open?")
    chat, now = world.chat(CLIENT), timezone.now()
    chat_pause(chat_id=chat.pk, until=None, by=None, actor=SYSTEM, now=now)
    model.error = None
    assert resume(world) == []
    chat_resume(
        chat_id=chat.pk,
        actor=SYSTEM,
        now=now,
        enqueue=world.enqueued.append,
        max_age=DAY,
        answer_last=True,
    )
    world.work()
    assert world.provider.sent[-1].text == "answer to: When do you open?"


def test_a_question_that_is_too_old_needs_attention(world: World, model: Model) -> None:
    world.say(CLIENT, "When do you open?")
    model.error = None
    assert resume(world, minutes=24 * 60 + 1) == []
    turn = turn_of("When do you open?")
    assert (turn.state, turn.error.code, conversations_count()) == ("failed", "question_too_old", 1)


def test_a_deleted_message_is_not_answered(world: World, model: Model) -> None:
    asked = message_from(CLIENT, "When do you open?")
    world.receive(asked)
    world.work()
    world.receive(revocation(asked.provider_message_id))
    model.error = None
    assert resume(world) == []
    assert Turn.objects.get(provider_message_id=asked.provider_message_id).state == "cancelled"


def test_a_blocked_chat_is_not_answered(world: World, model: Model) -> None:
    world.say(CLIENT, "When do you open?")
    access = access_of(world.chat(CLIENT))
    access.standing = "blocked"
    access.save()
    model.error = None
    assert resume(world) == []
    assert turn_of("When do you open?").state == "refused"


def test_an_outage_uses_up_no_calls_of_the_day(world: World, model: Model) -> None:
    limits = UsageLimits(model_calls_per_day=2)
    world.use(limits=limits)
    world.say(CLIENT, "When do you open?")
    for _ in range(5):
        resume(world, minutes=5)
    model.error = None
    assert resume(world, minutes=5) == ["answer to: When do you open?"]
    assert UsageDay.objects.get().model_calls == 1


def test_a_message_that_the_model_refuses_is_not_tried_again(world: World, model: Model) -> None:
    model.error = REFUSED
    assert world.say(CLIENT, "When do you open?") == [SORRY]
    turn = turn_of("When do you open?")
    assert (turn.state, turn.error, conversations_count()) == ("failed", str(REFUSED), 1)
    assert turn.replay.prompt, "staff see what was refused"
    assert resume(world) == []
    model.error = None
    turn_rerun(
        turn_id=turn.pk,
        actor=Actor("staff", "dana"),
        max_age=DAY,
        enqueue=world.enqueued.append,
        now=timezone.now(),
    )
    world.work()
    assert world.provider.sent[-1].text == "answer to: When do you open?"
    turn.refresh_from_db()
    assert reasons(turn) == ["unknown question"]


def test_a_question_that_fails_while_others_are_answered_ends(world: World, model: Model) -> None:
    world.say(CLIENT, "When do you open?")
    for _ in range(MAX_DEFERRALS - 1):
        resume(world, minutes=5)
    assert turn_of("When do you open?").state == "deferred"
    assert resume(world, minutes=5) == []
    assert (turn_of("When do you open?").state, conversations_count()) == ("failed", 1)


def sick() -> None:
    now = timezone.now()
    OutsideService.objects.create(
        name="chat_model", target="m at h", state="open", opened_at=now, changed_at=now
    )


def test_one_question_tries_a_sick_model_however_long_it_lasts(world: World, model: Model) -> None:
    sick()
    for chat in (CLIENT, OTHER_CLIENT):
        assert world.say(chat, f"question of {chat}") == [SORRY]
    tries = model.tries
    for number in range(1, MAX_DEFERRALS + 3):
        assert resume(world, minutes=5) == []
        assert model.tries == tries + number
    assert Turn.objects.filter(context__deferrals=0, attempts=2).count() == 2, "both were tried"
    assert set(Turn.objects.filter(message__isnull=False).values_list("state", flat=True)) == {
        "deferred"
    }
    OutsideService.objects.update(state="closed")
    model.error = None
    answers = {f"answer to: question of {chat}" for chat in (CLIENT, OTHER_CLIENT)}
    assert set(resume(world, minutes=5)) == answers


def test_a_question_that_fails_again_waits_twice_as_long(world: World, model: Model) -> None:
    world.say(CLIENT, "When do you open?")
    for seconds in (15, 30, 60, 120, 240, 240):
        tries = model.tries
        resume(world, minutes=(seconds - 5) / 60)
        assert model.tries == tries, "too early"
        resume(world, minutes=(seconds + 5) / 60)
        assert model.tries == tries + 1


def test_an_overtaken_question_counts_for_the_apology(world: World, model: Model) -> None:
    sick()
    assert world.say(CLIENT, "When do you open?") == [SORRY]
    world.say(CLIENT, "/reset")
    assert resume(world) == []
    assert world.say(CLIENT, "And on Friday?") == [], "one apology for an outage"
    OutsideService.objects.update(state="closed")
    model.error = None
    assert resume(world) == ["answer to: And on Friday?"]
    assert turn_of("When do you open?").state == "failed"


def test_many_chats_follow_each_other(world: World, model: Model) -> None:
    chats = [f"155501{number:05}@c.us" for number in range(MAX_AT_ONCE + 3)]
    for chat in chats:
        assert world.say(chat, f"question of {chat}") == [SORRY]
    model.error = None
    resume(world, work=False)
    assert Turn.objects.filter(state="pending").count() == MAX_AT_ONCE
    Turn.objects.filter(state="deferred").update(not_before=None)
    world.use(enqueue=world.enqueued.append)
    while waiting := Turn.objects.filter(state="pending").order_by("id").first():
        Turn.objects.update(not_before=None)
        chat_answer(chat_id=waiting.chat_id, dependencies=world.dependencies)
    assert [part.text for part in world.provider.sent[len(chats) :]] == [
        f"answer to: question of {chat}" for chat in chats
    ]


def test_without_memory_the_text_is_kept_until_it_is_answered(world: World, model: Model) -> None:
    world.with_rules(memory_enabled=False)
    assert world.say(CLIENT, "When do you open?") == [SORRY]
    turn = Turn.objects.order_by("id").first()
    assert turn is not None
    assert (turn.state, turn.unstored_text) == ("deferred", "When do you open?")
    model.error = None
    assert resume(world) == ["answer to: When do you open?"]
    assert set(Turn.objects.values_list("unstored_text", "unstored_reply")) == {("", "")}


@pytest.mark.parametrize("from_business", [False, True])
def test_without_memory_nothing_stays(world: World, model: Model, *, from_business: bool) -> None:
    world.with_rules(memory_enabled=False)
    world.say(CLIENT, "When do you open?")
    world.say(CLIENT, "Never mind.", from_business=from_business)
    model.error = None
    answers = resume(world)
    assert answers == ([] if from_business else ["answer to: Never mind."])
    assert set(Turn.objects.values_list("unstored_text", "unstored_reply")) == {("", "")}
    # What the business has answered needs nobody.
    assert conversations_count() == (0 if from_business else 1)


def test_a_caller_of_the_api_hears_it_at_once(world: World, model: Model) -> None:
    answered = talk(
        whatsapp_chat=CLIENT,
        content="When do you open?",
        rules=world.rules,
        dependencies=world.dependencies,
        now=timezone.now(),
    )
    assert answered.reply == SORRY
    model.error = None
    assert resume(world) == []
    assert Turn.objects.get().state == "failed"


def test_a_database_that_was_away_keeps_the_question_open(world: World, model: Model) -> None:
    model.error = OperationalError("the connection was closed")
    world.receive(message_from(CLIENT, "When do you open?"))
    for _ in range(4):
        Turn.objects.update(not_before=None)
        world.work()
    assert [part.text for part in world.provider.sent] == [SORRY]
    model.error = None
    assert resume(world) == ["answer to: When do you open?"]


def test_an_unsent_apology_does_not_follow_the_answer(world: World, model: Model) -> None:
    world.provider.fail_next(*[SendError("no route")] * 4)
    assert world.say(CLIENT, "When do you open?") == []
    model.error = None
    assert resume(world) == ["answer to: When do you open?"]
    Turn.objects.update(not_before=None)
    world.work()
    assert len(world.provider.sent) == 1
