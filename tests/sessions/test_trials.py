"""Trials of an answer: what the model is given, what they cost, and that nothing else happens."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from memories_app.models import Memory
from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.llm.base import ChatModelError, Completion
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from sessions_app.conversations.history_queries import profile_current
from sessions_app.conversations.redact_derived import text_redact
from sessions_app.models import AnswerTrial, ForgetReceipt, Message, Turn, TurnReplay, UsageDay
from sessions_app.sweeps import leased_kinds
from sessions_app.trials.given_texts import TrialBusyError, TrialRefusedError
from sessions_app.trials.run_trial import (
    MAX_TRIALS,
    TrialWanted,
    trial_run,
    trial_start,
    trials_abandoned,
)
from tests.world import CLIENT, OTHER_CLIENT, World, new_world, remember

pytestmark = pytest.mark.django_db
FACT = "TestCorp pays its invoices within 30 days"
QUESTION = "When does TestCorp pay its invoices?"
MODELS = ("scripted", "other")


@pytest.fixture(scope="module")
def answered(module_rows: None) -> None:
    world = new_world()
    remember(world, FACT)
    world.say(OTHER_CLIENT, "Good morning")
    world.say(CLIENT, QUESTION)


@pytest.fixture
def asked(answered: None) -> Turn:
    return Turn.objects.latest("id")


def other_model(script: Any = "Within a month.") -> ScriptedChatModel:
    def told(_request: Any) -> Any:
        return script

    return ScriptedChatModel(script if callable(script) else told, name="other")


def start(turn: Turn, **wanted: Any) -> AnswerTrial:
    user, _made = User.objects.get_or_create(username="dana")
    trial_id = wanted.pop("trial_id", None) or uuid.uuid4()
    return trial_start(
        turn_id=turn.pk,
        trial_id=trial_id,
        wanted=TrialWanted(**{"model": "other", **wanted}),
        user=user,
        actor=SYSTEM,
        models=MODELS,
        enqueue=lambda _key: None,
        now=timezone.now(),
    )


def run(world: World, trial: AnswerTrial, model: ScriptedChatModel | None) -> AnswerTrial:
    trial_run(trial_id=trial.pk, dependencies=world.dependencies, model_named=lambda _name: model)
    trial.refresh_from_db()
    return trial


def tried(world: World, turn: Turn, **wanted: Any) -> tuple[AnswerTrial, str]:
    """A trial that was made, and the system text that the model was sent."""
    model = other_model()
    trial = run(world, start(turn, **wanted), model)
    assert trial.state == "done", trial.error
    return trial, model.requests[0].messages[0].content


def everything() -> list[Any]:
    kept = [list(model.objects.order_by("pk").values()) for model in (Message, Turn, TurnReplay)]
    return [*kept, list(Memory.objects.values())]


def test_another_model_answers_and_nothing_is_changed(world: World, asked: Turn) -> None:
    before, sent = everything(), len(world.provider.sent)
    model = other_model(lambda _request: Completion("Within a month.", "other-2026", 700, 30))
    trial = run(world, start(asked), model)
    assert (trial.state, trial.text, trial.error) == ("done", "Within a month.", "")
    assert (trial.answered_by, trial.prompt_tokens, trial.completion_tokens) == (
        "other-2026",
        700,
        30,
    )
    assert trial.took_ms is not None
    assert everything() == before
    assert len(world.provider.sent) == sent


def test_as_then_the_model_is_sent_what_was_sent_then(world: World, asked: Turn) -> None:
    remember(world, "TestCorp pays its invoices late in December")
    model = other_model()
    trial = run(world, start(asked), model)
    assert [message.as_dict() for message in model.requests[0].messages] == asked.replay.prompt
    assert [entry["content"] for entry in trial.recalled] == [FACT]


def test_without_memories_none_is_sent(world: World, asked: Turn) -> None:
    trial, system = tried(world, asked, memories="none")
    assert FACT in str(asked.replay.prompt)
    assert FACT not in system
    assert "<memories-" not in system
    assert trial.recalled == []


def test_the_ticked_texts_are_sent_and_no_other(world: World, asked: Turn) -> None:
    near = remember(world, "In the garden there are old trees")
    _trial, system = tried(world, asked, memories="chosen", chosen=[str(near.pk)])
    assert near.content in system
    assert FACT not in system
    then = str(Memory.objects.get(content=FACT).pk)
    trial, system = tried(world, asked, memories="chosen", chosen=[str(near.pk), then])
    assert near.content in system
    assert FACT in system
    assert {entry["id"] for entry in trial.recalled} == {str(near.pk), then}


def test_a_memory_of_another_chat_is_never_sent(world: World, asked: Turn) -> None:
    secret = remember(world, "The door code is 4711", "chat", OTHER_CLIENT)
    owners = remember(world, "The margin is 40 percent", "owner")
    chosen = [str(secret.pk), str(owners.pk), "nonsense"]
    trial, system = tried(world, asked, memories="chosen", chosen=chosen)
    assert trial.recalled == []
    assert "4711" not in system
    assert "margin" not in system


def test_the_instructions_may_be_those_of_today_or_edited(world: World, asked: Turn) -> None:
    then = asked.replay.prompt[0]["content"]
    profile = profile_current()
    profile.persona = "You speak like a pirate."
    profile.save()
    trial, system = tried(world, asked, instructions="now")
    assert "like a pirate" in system
    assert "like a pirate" not in then
    (day,) = [line for line in then.splitlines() if line.startswith("It is ")]
    assert day in system.splitlines(), "only the profile differs"
    assert FACT in system
    assert "like a pirate" in trial.system_text
    trial, system = tried(world, asked, instructions="edited", system_text="Answer in French.")
    assert system.startswith("Answer in French.\n\n**Relevant Context from Memory")
    assert FACT in system
    assert profile_current().persona == "You speak like a pirate."


def test_it_counts_against_the_limits_of_the_day(world: World, asked: Turn) -> None:
    used = UsageDay.objects.get(chat=asked.chat)
    model = other_model(lambda _request: Completion("Yes", "other", 500, 20))
    run(world, start(asked), model)
    after = UsageDay.objects.get(chat=asked.chat)
    assert after.model_calls == used.model_calls + 1
    assert after.tokens == used.tokens + 520


def test_a_used_up_limit_ends_it_before_the_model(world: World, asked: Turn) -> None:
    limits = world.dependencies.limits
    object.__setattr__(limits, "model_calls_per_day", 1)
    model = other_model()
    trial = run(world, start(asked), model)
    assert trial.state == "failed"
    assert trial.error.code == "limit_model_calls"
    assert model.requests == []


def test_an_error_of_the_model_is_stored_by_its_code(world: World, asked: Turn) -> None:
    def down(_request: Any) -> Any:
        raise ChatModelError(ErrorText("model_timeout", seconds=30))

    trial = run(world, start(asked), other_model(down))
    assert trial.state == "failed"
    assert trial.error.code == "model_timeout"
    assert run(world, trial, other_model()).state == "failed", "it isn't made again by itself"


def test_two_clicks_make_one_trial(world: World, asked: Turn) -> None:
    key = uuid.uuid4()
    assert start(asked, trial_id=key) == start(asked, trial_id=key)
    with pytest.raises(TrialBusyError):
        start(asked)
    run(world, AnswerTrial.objects.get(), other_model())
    assert start(asked, trial_id=key).state == "done", "also where the first was quick"
    assert AnswerTrial.objects.count() == 1
    assert AuditEvent.objects.filter(action="answer.try").count() == 1


def test_who_ran_which_model_on_which_answer_is_audited(world: World, asked: Turn) -> None:
    start(asked, memories="none")
    event = AuditEvent.objects.get(action="answer.try")
    assert event.object_id == str(asked.turn_id)
    assert event.details == {"model": "other", "memories": "none", "instructions": "then"}


def test_a_further_trial_takes_the_place_of_the_oldest(world: World, asked: Turn) -> None:
    made = [tried(world, asked)[0].pk for _ in range(MAX_TRIALS + 1)]
    assert [trial.pk for trial in asked.trials.all()] == made[1:]


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({"model": "unknown"}, "trial_unknown_model"),
        ({"memories": "all"}, "trial_incomplete"),
        ({"instructions": "edited", "system_text": " "}, "trial_no_instructions"),
        ({"instructions": "edited", "system_text": "x" * 20_001}, "trial_long_instructions"),
    ],
)
def test_a_wrong_trial_is_refused(
    world: World, asked: Turn, wanted: dict[str, Any], code: str
) -> None:
    with pytest.raises(TrialRefusedError) as refused:
        start(asked, **wanted)
    assert refused.value.args[0].code == code
    assert not AnswerTrial.objects.exists()


def test_an_answer_whose_record_was_dropped_is_refused(world: World, asked: Turn) -> None:
    TurnReplay.objects.update(prompt=[], recalled=[])
    with pytest.raises(TrialRefusedError, match="isn't stored"):
        start(asked)


def test_a_trial_whose_workers_died_ends_with_a_reason(world: World, asked: Turn) -> None:
    trial = start(asked)
    later = timezone.now() + timedelta(hours=1)
    assert trials_abandoned(later) == [trial.pk]
    assert "trials" in [kind.name for kind in leased_kinds()]
    AnswerTrial.objects.update(attempts=2)
    model = other_model()
    assert run(world, trial, model).error.code == "trial_ended"
    assert model.requests == []
    assert trials_abandoned(later) == []


def forget(world: World, kind: str, key: Any) -> ForgetReceipt:
    return world.forget(kind, key)


def test_erasing_what_only_a_trial_was_given(world: World, asked: Turn) -> None:
    new = remember(world, "In December, paying invoices takes TestCorp longer")
    trial, _system = tried(world, asked, memories="chosen", chosen=[str(new.pk)])
    assert new.content in str(trial.recalled)
    kept, _system = tried(world, asked, memories="none")
    receipt = forget(world, "memory", new.pk)
    assert [each.pk for each in AnswerTrial.objects.all()] == [kept.pk]
    assert receipt.swept["sessions_app_answertrial"] == 1


def test_erasing_what_the_answer_itself_had_deletes_its_trials(world: World, asked: Turn) -> None:
    tried(world, asked)
    forget(world, "memory", Memory.objects.get(content=FACT).pk)
    assert not AnswerTrial.objects.exists()


def test_erasing_a_text_that_a_trial_repeats_deletes_the_trial(world: World, asked: Turn) -> None:
    memory = remember(world, "Ibrahim keeps zebras behind the third warehouse", "chat", CLIENT)
    run(world, start(asked, memories="none"), other_model(f"I hear: {memory.content}."))
    forget(world, "memory", memory.pk)
    assert not AnswerTrial.objects.exists()


def test_what_is_erased_while_the_model_writes_is_not_stored(world: World, asked: Turn) -> None:
    memory = Memory.objects.get(content=FACT)

    def erase(_request: Any) -> str:
        forget(world, "memory", memory.pk)
        return f"It is so: {FACT}"

    trial = start(asked)
    trial_run(
        trial_id=trial.pk,
        dependencies=world.dependencies,
        model_named=lambda _name: other_model(erase),
    )
    assert FACT not in str(list(AnswerTrial.objects.values()))
    assert not AnswerTrial.objects.filter(state="done").exists()


def test_a_deleted_message_takes_later_trials_along(world: World, asked: Turn) -> None:
    world.say(CLIENT, "And in winter?")
    later = Turn.objects.latest("id")
    assert QUESTION in str(later.replay.prompt)
    tried(world, later)
    revoked = Message.objects.get(content=QUESTION)

    text_redact(message=revoked, texts=[QUESTION])
    assert not AnswerTrial.objects.exists()
