"""TURN_DEBOUNCE_SECONDS: a burst of messages is answered as one."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from memories_app.models import Memory
from memoryproject.foundation.integrations.llm.base import ChatRequest, OfflineChatModel
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from sessions_app.models import AssistantProfile, ChatPause, Turn
from sessions_app.turns.queue import chat_answer, next_chat
from tests.events import edit, revocation
from tests.world import CLIENT, OTHER_CLIENT, World, message_from, remember

GROUP = {"group_id": "120363000000000001@g.us", "mentions_us": True}


def answer(world: World, chat: str = CLIENT) -> list[str]:
    """Answer a burst that is over."""
    world.with_answer_rules(burst_gap=timedelta(seconds=5))
    chat_answer(chat_id=world.chat(chat).pk, dependencies=world.dependencies)
    return [sent.text for sent in world.provider.sent]


def states() -> list[str]:
    return list(Turn.objects.order_by("id").values_list("state", flat=True))


def test_a_burst_gets_one_answer_to_its_newest_message(world: World) -> None:
    world.receive(*(message_from(CLIENT, text) for text in ("Hi", "one thing:", "the price?")))
    assert answer(world) == ["answer to: the price?"]
    assert states() == ["merged", "merged", "sent"]
    assert [message.content for message in world.prompt()[1:]] == ["Hi", "one thing:", "the price?"]
    newest = Turn.objects.latest("id")
    assert {turn.context["merged_into"] for turn in Turn.objects.filter(state="merged")} == {
        str(newest.turn_id)
    }


def is_ready(world: World, *, seconds: float) -> bool:
    """Whether the chat is answered so long after now, with a wait of ten seconds."""
    now = timezone.now() + timedelta(seconds=seconds)
    wait = timedelta(seconds=10)
    chat = next_chat(godfather=(), besides=(), now=now, debounce=wait)
    return chat == world.chat(CLIENT).pk


def ago(seconds: float) -> None:
    """Let every message be so much older, instead of waiting."""
    Turn.objects.update(created_at=F("created_at") - timedelta(seconds=seconds))


def test_who_keeps_writing_is_waited_for(world: World) -> None:
    world.receive(message_from(CLIENT, "first"))
    assert not is_ready(world, seconds=9)
    assert is_ready(world, seconds=11)
    ago(8)
    world.receive(message_from(CLIENT, "second"))
    assert not is_ready(world, seconds=9)
    assert is_ready(world, seconds=11)
    # But not for ever.
    ago(8)
    world.receive(message_from(CLIENT, "third"))
    assert not is_ready(world, seconds=9)
    ago(25)
    world.receive(message_from(CLIENT, "fourth"))
    assert is_ready(world, seconds=0.1)


@pytest.mark.parametrize(
    "message",
    [
        {"text": "/help"},
        {"text": "please remember that I like tea"},
        {"text": "asked by the API", "provider": "console", "number_id": ""},
    ],
)
def test_what_is_never_waited_for(world: World, message: dict[str, str]) -> None:
    world.receive(message_from(CLIENT, "first"))
    assert not is_ready(world, seconds=1)
    world.receive(message_from(CLIENT, message.pop("text"), **message))
    assert is_ready(world, seconds=1)


def writes_on(world: World, *texts: str) -> ScriptedChatModel:
    """Let the person write these texts, each while an answer is made."""
    left = list(texts)

    def answered(request: ChatRequest) -> str:
        if left:
            world.receive(message_from(CLIENT, left.pop(0)))
        return f"answer to: {request.messages[-1].content}"

    model = ScriptedChatModel(answered)
    world.use(chat_model=model)
    return model


def test_what_comes_while_the_answer_is_made_joins_it_once(world: World) -> None:
    model = writes_on(world, "for Friday", "at five")
    world.receive(message_from(CLIENT, "A cake please"))
    assert answer(world) == ["answer to: for Friday", "answer to: at five"]
    assert states() == ["merged", "sent", "sent"]
    asked = [[line.content for line in each.messages[1:]] for each in model.requests]
    assert asked[:2] == [["A cake please"], ["A cake please", "for Friday"]]
    # The dropped answer was never said.
    assert "answer to: A cake please" not in asked[2]


def test_a_text_that_is_edited_while_the_answer_is_made(world: World) -> None:
    asked = message_from(CLIENT, "Two lovaes")

    def answered(request: ChatRequest) -> str:
        world.receive(edit(asked.provider_message_id, "Three loaves"))
        return f"answer to: {request.messages[-1].content}"

    world.use(chat_model=ScriptedChatModel(answered))
    world.receive(asked)
    assert answer(world) == ["answer to: Three loaves"]


def test_a_wish_for_a_person_in_a_burst_is_heard(world: World) -> None:
    texts = ("I want to talk to a person", "it's urgent", "my order is late")
    world.receive(*(message_from(CLIENT, text) for text in texts))
    (told,) = answer(world)
    assert told.startswith("I'm handing this over to a person")
    assert states() == ["merged", "merged", "sent"]


def test_a_command_meanwhile_is_no_newer_text(world: World) -> None:
    writes_on(world, "/remember Tea is at five")
    world.receive(message_from(CLIENT, "A cake please"))
    assert answer(world) == ["answer to: A cake please", "✅ Remembered: Tea is at five"]


def test_messages_far_apart_are_no_burst_although_both_wait(world: World) -> None:
    world.receive(message_from(CLIENT, "Do you have cakes?"))
    ago(60)
    world.receive(message_from(CLIENT, "And bread?"))
    assert answer(world) == ["answer to: Do you have cakes?", "answer to: And bread?"]


def test_a_command_ends_a_burst_and_is_carried_out(world: World) -> None:
    texts = ("Hi", "listen", "/remember Tea is at five", "clear?", "really?")
    world.receive(*(message_from(CLIENT, text) for text in texts))
    assert answer(world) == [
        "answer to: listen",
        "✅ Remembered: Tea is at five",
        "answer to: really?",
    ]
    assert Memory.objects.get().content == "Tea is at five"


def test_in_a_group_a_command_after_a_mention_ends_a_burst_too(world: World) -> None:
    texts = ("@DeniDin hi", "@DeniDin /remember Tea is at five", "@DeniDin ok?")
    world.receive(*(message_from(CLIENT, text, **GROUP) for text in texts))
    answer(world, "120363000000000001@g.us")
    assert Memory.objects.get().content == "Tea is at five"
    assert len(world.provider.sent) == 3


def test_a_picture_at_the_end_does_not_swallow_the_question(world: World) -> None:
    world.receive(message_from(CLIENT, "What does this cost?"))
    world.receive(message_from(CLIENT, "", kind="image"))
    replies = answer(world)
    assert replies[0] == "answer to: What does this cost?"
    assert replies[1].startswith("I received your picture")


def test_an_album_gets_one_answer(world: World) -> None:
    world.receive(*(message_from(CLIENT, "", kind="image") for _ in range(5)))
    (reply,) = answer(world)
    assert reply.startswith("I received your picture")
    assert states() == [*["merged"] * 4, "sent"]


def test_an_album_with_words_gets_one_answer_besides(world: World) -> None:
    texts = ("", "What does this cost?", "", "")
    world.receive(*(message_from(CLIENT, text, kind="image") for text in texts))
    replies = answer(world)
    assert replies[0] == "answer to: [image] What does this cost?"
    assert len(replies) == 2


def test_in_a_group_each_member_is_answered(world: World) -> None:
    asked = [(CLIENT, "when do you open?"), (CLIENT, "today?"), (OTHER_CLIENT, "a haircut?")]
    events = [message_from(chat, text, **GROUP) for chat, text in asked]
    world.receive(*events)
    assert answer(world, "120363000000000001@g.us") == [
        "answer to: Test User: today?",
        "answer to: Test User: a haircut?",
    ]
    assert states() == ["merged", "sent", "sent"]


def test_a_picture_before_the_question_is_part_of_it(world: World) -> None:
    world.receive(message_from(CLIENT, "", kind="image"))
    world.receive(message_from(CLIENT, "What does this cost?"))
    assert answer(world) == ["answer to: What does this cost?"]
    assert [message.content for message in world.prompt()[1:]] == [
        "[image]",
        "What does this cost?",
    ]


def test_a_revoked_newest_message_leaves_the_others_answered(world: World) -> None:
    last = message_from(CLIENT, "never mind")
    world.receive(message_from(CLIENT, "a question"), last, revocation(last.provider_message_id))
    assert answer(world) == ["answer to: a question"]
    assert states() == ["sent", "cancelled"]


def test_an_answer_that_only_waits_to_be_sent_is_no_part_of_a_burst(world: World) -> None:
    world.say(CLIENT, "first")
    Turn.objects.update(state="replied")
    Turn.objects.get().parts.update(state="waiting", content="answer to: first")
    world.receive(message_from(CLIENT, "second"), message_from(CLIENT, "third"))
    assert answer(world)[1:] == ["answer to: first", "answer to: third"]
    assert states() == ["sent", "merged", "sent"]


def test_a_message_whose_answer_somebody_waits_for_is_no_part_of_a_burst(world: World) -> None:
    asked = message_from(CLIENT, "asked by the API", provider="console", number_id="")
    world.receive(message_from(CLIENT, "Hi"), asked, message_from(CLIENT, "the price?"))
    assert answer(world) == ["answer to: Hi", "answer to: the price?"]
    assert states() == ["sent", "sent", "sent"]


@pytest.mark.parametrize("last", ["thanks!", "🙏", "hello?", "תודה רבה", "ok"])
def test_thanks_and_greetings_stand_for_no_question(world: World, last: str) -> None:
    world.use(chat_model=OfflineChatModel())
    remember(world, "A yearly service costs 450 shekels")
    world.receive(message_from(CLIENT, "how much is a yearly service?"), message_from(CLIENT, last))
    (reply,) = answer(world)
    assert "450 shekels" in reply


def test_each_question_of_a_burst_is_answered_without_a_model(world: World) -> None:
    world.use(chat_model=OfflineChatModel())
    AssistantProfile.objects.update_or_create(pk=1, defaults={"hours": {"sunday": "9:00-17:00"}})
    remember(world, "Our address is Dizengoff 99")
    questions = ("good morning", "what are your opening hours?", "what is your address?", "thanks")
    world.receive(*(message_from(CLIENT, text) for text in questions))
    (reply,) = answer(world)
    assert "9:00–17:00" in reply
    assert "Dizengoff 99" in reply
    assert "welcome" not in reply


def test_what_a_burst_asks_is_recalled_for_the_model(world: World) -> None:
    remember(world, "A yearly service costs 450 shekels")
    world.receive(
        message_from(CLIENT, "how much is a yearly service?"), message_from(CLIENT, "thanks!")
    )
    assert answer(world) == ["answer to: thanks!"]
    assert "450 shekels" in world.prompt()[0].content


def test_who_wants_a_person_gets_one_though_they_thank(world: World) -> None:
    world.use(chat_model=OfflineChatModel())
    world.receive(message_from(CLIENT, "I want to talk to a person"), message_from(CLIENT, "thx"))
    answer(world)
    assert ChatPause.objects.filter(chat=world.chat(CLIENT)).exists()
