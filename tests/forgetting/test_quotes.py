"""What others kept of a forgotten text without being asked to: quotes, neighbours, single words,
jobs, answers kept for calls that come twice, deliveries without a chat."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone
from django_q.models import OrmQ, Task
from django_q.signing import SignedPackage

from memories_app.models import Memory
from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.integrations.whatsapp.events import Party
from memoryproject.foundation.rest_kit.models import IdempotentAnswer
from memoryproject.foundation.rest_kit.tokens import token_create
from sessions_app.models import InboundDelivery, Message, Turn, TurnReplay
from tests.api.calling import Api
from tests.forgetting.dump import everything, left_of
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("new_connection_after"),
]

SAID = "The alarm is switched off with the blue key behind the clock"
PERSON = "15550177002@c.us"
OTHER_SESSION = "0b8f3f0a-6f0d-4d33-9a54-3f0f3a1c0a11"


def say(world: World, text: str, **changes: Any) -> Message:
    event = message_from(CLIENT, text, **changes)
    world.receive(event)
    world.work()
    return Message.objects.get(provider_message_id=event.provider_message_id)


def quoting(message: Message, text: str) -> dict[str, Any]:
    """As Green API's webhooks bring a quote: with the quoted text, or the beginning of it."""
    return {"reply_to_id": message.provider_message_id, "metadata": {"quoted": {"text": text}}}


@pytest.mark.parametrize("quoted", [SAID, "The alarm"])
def test_what_a_kept_message_quotes_of_it_goes(world: World, quoted: str) -> None:
    message = say(world, SAID)
    reply = say(world, "Is that still so?", **quoting(message, quoted))
    assert reply.metadata["quoted"]["text"] == quoted

    world.forget("message", message.pk)

    reply.refresh_from_db()
    assert reply.content == "Is that still so?"
    assert "quoted" not in reply.metadata
    assert left_of([SAID]) == []
    assert InboundDelivery.objects.get(message=reply).raw is None


def test_a_quote_of_something_else_stays(world: World) -> None:
    message = say(world, SAID)
    other = say(world, "We open at nine")
    reply = say(world, "Also on Fridays?", **quoting(other, "We open at nine"))
    world.forget("message", message.pk)
    reply.refresh_from_db()
    assert reply.metadata["quoted"]["text"] == "We open at nine"


def test_a_fact_of_one_word_is_gone_from_the_answers_that_had_it_in_reach(world: World) -> None:
    word = "Xanthippe4711"
    world.remember(CLIENT, word)
    memory = Memory.objects.get()
    world.say(CLIENT, "/memories")
    world.say(CLIENT, "Tell me more")
    turn = Turn.objects.latest("id")
    TurnReplay.objects.filter(turn=turn).update(
        recalled=[{"source": "memory", "id": str(memory.pk), "content": word}],
        prompt=[*turn.replay.prompt, {"role": "system", "content": f"They told: {word}"}],
    )
    Message.objects.filter(pk=turn.reply_id).update(content=f"It is {word}. Anything else?")
    assert left_of([word]), "the test must find it before it is forgotten"

    world.forget("memory", memory.pk)

    assert left_of([word]) == []
    assert Message.objects.get(pk=turn.reply_id).content == "[forgotten] Anything else?"


def test_a_word_in_an_answer_that_never_had_it_in_reach_stays(world: World) -> None:
    world.remember(CLIENT, "Haifa")
    world.say(OTHER_CLIENT, "Where are you?")
    answer = Message.objects.filter(chat__whatsapp_chat=OTHER_CLIENT, role="assistant").get()
    Message.objects.filter(pk=answer.pk).update(content="We are in Haifa.")
    world.forget("memory", Memory.objects.get().pk)
    answer.refresh_from_db()
    assert answer.content == "We are in Haifa."


def test_a_forgotten_neighbour_is_gone_from_what_other_turns_recalled(world: World) -> None:
    message = say(world, "Zanzibar")
    kept = say(world, "Where shall we go in the spring, what do you think?")
    world.say(CLIENT, "And now?")
    turn = Turn.objects.latest("id")
    beside = {"message_id": str(message.pk), "role": "user", "content": "Zanzibar"}
    hit = {"source": "message", "id": str(kept.pk), "content": kept.content, "before": beside}
    block = "Before that, they wrote: Zanzibar"
    TurnReplay.objects.filter(turn=turn).update(
        recalled=[hit], prompt=[{"role": "system", "content": block}]
    )

    world.forget("message", message.pk)

    turn.refresh_from_db()
    assert turn.replay.recalled[0]["before"]["content"] == "[forgotten]"
    assert turn.replay.recalled[0]["content"] == kept.content
    assert "Zanzibar" not in str(turn.replay.prompt)


@pytest.fixture
def api(transactional_db: None) -> Api:
    made = token_create(name="t", scopes=["read", "write"], actor=COMMAND_LINE)
    return Api(made.secret)


def opened(api: Api, whatsapp_chat: str, key: str) -> Any:
    return api.post("sessions/", {"whatsapp_chat": whatsapp_chat}, Idempotency_Key=key)


def test_kept_answers_that_name_an_erased_person_are_withheld(world: World, api: Api) -> None:
    world.say(PERSON, "Hello there")
    assert opened(api, PERSON, "k1").status_code == 200
    assert opened(api, OTHER_CLIENT, "k2").status_code == 201
    world.forget("chat", world.chat(PERSON).pk)
    assert IdempotentAnswer.objects.filter(withheld=True).count() == 1
    assert PERSON.split("@")[0] not in everything()
    assert opened(api, PERSON, "k1").status_code == 409
    again = opened(api, OTHER_CLIENT, "k2")
    assert again.headers["Idempotent-Replayed"] == "true"


def test_kept_answers_that_name_an_erased_session_are_withheld(world: World, api: Api) -> None:
    world.say(CLIENT, "Hello there")
    session = world.session(CLIENT)
    opened(api, CLIENT, "k1")
    world.say(CLIENT, "/reset")
    opened(api, CLIENT, "k2")
    world.forget("session", session.pk)
    assert [row.withheld for row in IdempotentAnswer.objects.order_by("id")] == [True, False]
    assert str(session.pk) not in str(list(IdempotentAnswer.objects.values("body", "headers")))


def test_deliveries_of_an_erased_person_that_found_no_chat_are_emptied(world: World) -> None:
    world.say(PERSON, "Hello there", party=Party(phone=PERSON.split("@")[0], name="Ada Example"))
    raws = {
        "status": {"status": {"recipient_id": PERSON.split("@")[0]}},
        "failed": {"contacts": [{"profile": {"name": "Ada Example"}}]},
        "other": {"status": {"recipient_id": "15550199888"}},
    }
    for key, raw in raws.items():
        InboundDelivery.objects.create(provider="cloud", delivery_key=key, event="X", raw=raw)
    early = InboundDelivery.objects.create(
        provider="cloud", delivery_key="early", event="X", change={"by": [PERSON], "text": "later"}
    )
    receipt = world.forget("chat", world.chat(PERSON).pk)
    kept = InboundDelivery.objects.filter(raw__isnull=False)
    assert [row.delivery_key for row in kept] == ["other"]
    early.refresh_from_db()
    assert early.change is None
    assert receipt.swept["sessions_app_inbounddelivery"] == 4


def test_jobs_and_results_that_name_an_erased_session_are_gone(world: World) -> None:
    world.say(CLIENT, "Hello there")
    session, now = world.session(CLIENT), timezone.now()
    for number, key in enumerate((session.pk, OTHER_SESSION)):
        task = {"id": f"{number}" * 32, "name": f"vectors {key}", "args": (str(key),), "kwargs": {}}
        OrmQ.objects.create(key="memory", payload=SignedPackage.dumps(task))
        Task.objects.create(**task, func="f", result=1, started=now, stopped=now, success=True)
    world.forget("session", session.pk)
    assert [task.id for task in Task.objects.all()] == ["1" * 32]
    names = [queued.task["name"] for queued in OrmQ.objects.all()]
    assert [name for name in names if name.startswith("vectors")] == [f"vectors {OTHER_SESSION}"]
