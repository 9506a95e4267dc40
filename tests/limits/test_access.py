"""Blocked chats, and chats that staff allow."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.integrations.llm.base import ChatRequest
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.foundation.integrations.whatsapp.base import SendResult
from sessions_app.inbound.synchronous_chat import NoAnswerError
from sessions_app.limits.figures import standing_set
from sessions_app.merging.merge_chats import chat_merge
from sessions_app.models import (
    ChatAccess,
    InboundDelivery,
    Message,
    MessageEmbedding,
    OutboundPart,
    Turn,
)
from sessions_app.models.limits import Standing
from sessions_app.turns.queue import chat_answer
from tests.doubles.recording_provider import RecordingProvider
from tests.limits.conftest import Limiting, calls, ends, sent
from tests.sessions.desk import Desk
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db
BLOCKED, ALLOWED, NONE = (str(each) for each in (Standing.BLOCKED, Standing.ALLOWED, Standing.NONE))


def decide(world: World, standing: str, whatsapp_chat: str = CLIENT, reason: str = "spam") -> bool:
    return standing_set(
        chat_id=world.chat(whatsapp_chat).pk,
        standing=standing,
        reason=reason,
        by=None,
        actor=Actor("staff", "dana"),
        now=timezone.now(),
    )


def outcomes() -> list[str]:
    return list(InboundDelivery.objects.order_by("id").values_list("outcome", flat=True))


def test_a_blocked_chat_is_left_in_its_deliveries(world: World) -> None:
    world.say(CLIENT, "Hi")
    assert decide(world, BLOCKED)
    vectors = MessageEmbedding.objects.count()
    for text in ("Buy my coins", "/help", "stop", "Buy them now"):
        assert world.say(CLIENT, text) == []
    assert calls(world) == 1
    assert Message.objects.count() == 2
    assert MessageEmbedding.objects.count() == vectors
    assert outcomes()[1:] == ["not answered: Staff have blocked this chat."] * 4
    assert InboundDelivery.objects.latest("id").raw == {"text": "Buy them now"}
    assert world.say(OTHER_CLIENT, "Hi") == ["answer to: Hi"]


def test_what_waits_when_the_chat_is_blocked_is_not_answered(world: World) -> None:
    world.say(CLIENT, "Hi")
    world.receive(message_from(CLIENT, "one"), message_from(CLIENT, "/help"))
    decide(world, BLOCKED)
    world.work()
    assert ends() == [("sent", ""), ("refused", "chat_blocked"), ("refused", "chat_blocked")]
    assert len(sent(world)) == 1


def block_while_answering(world: World, text: str, whatsapp_chat: str = CLIENT) -> list[str]:
    """Let staff block the chat while the model makes this answer; return what is sent."""

    def answer(_request: ChatRequest) -> str:
        assert decide(world, BLOCKED, whatsapp_chat)
        return text

    world.use(chat_model=ScriptedChatModel(answer))
    return world.say(whatsapp_chat, "Hi")


def test_an_answer_that_is_being_made_when_the_chat_is_blocked_is_not_sent(world: World) -> None:
    assert block_while_answering(world, "One moment") == []
    assert ends() == [("refused", "chat_blocked")]
    turn = Turn.objects.get()
    assert (turn.lease_token, turn.finished_at is not None) == (None, True)
    assert turn.reply is not None
    assert (turn.reply.content, turn.reply.delivery_status) == ("One moment", "failed")
    decide(world, NONE, reason="")
    world.work()
    assert sent(world) == [], "not after the block either"


def test_with_memory_off_nothing_is_kept_of_the_answer_either(world: World) -> None:
    world.with_rules(memory_enabled=False)
    assert block_while_answering(world, "One moment") == []
    turn = Turn.objects.get()
    assert (turn.state, turn.unstored_text, turn.unstored_reply) == ("refused", "", "")
    assert OutboundPart.objects.get().content == ""


class BlockingProvider(RecordingProvider):
    """Staff block the chat as soon as the first text is sent."""

    def __init__(self, world: World) -> None:
        super().__init__(name="cloud", text_limit=10)
        self.world = world

    def send_text(self, **sent: Any) -> SendResult:
        result = super().send_text(**sent)
        decide(self.world, BLOCKED)
        return result


def test_the_rest_of_a_long_answer_is_held_back(world: World) -> None:
    provider = BlockingProvider(world)
    world.use(providers={"cloud": provider})
    world.say(CLIENT, "Hi")
    assert [part.text for part in provider.sent] == ["answer to:"]
    assert ends() == [("refused", "chat_blocked")]
    assert [part.state for part in OutboundPart.objects.order_by("number")] == ["sent", "failed"]


def test_an_answer_to_the_owner_goes_out_and_so_do_replies(world: World, desk: Desk) -> None:
    assert block_while_answering(world, "One moment", GODFATHER) == ["One moment"]
    assert block_while_answering(world, "One moment") == []
    desk.write("Please stop writing to us.")
    world.work()
    assert sent(world)[-1] == "Please stop writing to us."


def test_with_memory_off_nothing_is_kept_of_a_blocked_chat(world: World) -> None:
    world.say(CLIENT, "Hi")
    decide(world, BLOCKED)
    world.with_rules(memory_enabled=False)
    world.say(CLIENT, "Buy my coins")
    assert InboundDelivery.objects.latest("id").raw is None


def test_the_owner_cant_be_blocked(world: World) -> None:
    world.say(GODFATHER, "Hi")
    decide(world, BLOCKED, GODFATHER)
    assert world.say(GODFATHER, "Again") == ["answer to: Again"]


def test_a_caller_of_the_api_is_told_that_the_chat_is_blocked(world: World) -> None:
    world.say(CLIENT, "Hi")
    decide(world, BLOCKED)
    with pytest.raises(NoAnswerError, match="Staff have blocked this chat"):
        world.talk("Hi")


def test_with_an_allow_list_owner_and_allowed_chats_are_answered(limited: Limiting) -> None:
    world = limited(allow_list_only=True)
    assert world.say(GODFATHER, "Hi") == ["answer to: Hi"]
    assert world.say(CLIENT, "May I ask something?") == []
    assert world.say(CLIENT, "/help") == []
    assert [message.content for message in world.messages(CLIENT)][0] == "May I ask something?"
    assert ends()[1:] == [("refused", "chat_not_allowed")] * 2
    decide(world, ALLOWED, reason="client")
    assert world.say(CLIENT, "And now?") == ["answer to: And now?"]
    decide(world, NONE, reason="")
    assert world.say(CLIENT, "Still?") == []
    assert calls(world) == 2


def test_strangers_can_stop_the_assistant_with_an_allow_list(limited: Limiting) -> None:
    world = limited(allow_list_only=True)
    (confirmation,) = world.say(CLIENT, "stop")
    assert confirmation.startswith("The assistant is off for you")
    assert world.say(CLIENT, "start") == []


@pytest.mark.parametrize("blocked", [CLIENT, OTHER_CLIENT])
def test_a_blocked_person_stays_blocked_in_merged_chats(world: World, blocked: str) -> None:
    for chat in (CLIENT, OTHER_CLIENT):
        world.say(chat, "Hi")
        decide(world, ALLOWED, chat)
    decide(world, BLOCKED, blocked)
    merged = chat_merge(world.chat(CLIENT), world.chat(OTHER_CLIENT))
    assert ChatAccess.objects.get().standing == BLOCKED
    assert world.say(merged.whatsapp_chat, "Hi") == []


def test_a_worker_that_meets_a_message_of_a_chat_that_is_off_the_list(limited: Limiting) -> None:
    world = limited()
    world.receive(message_from(CLIENT, "Hi"))
    world = limited(allow_list_only=True)
    assert chat_answer(chat_id=world.chat(CLIENT).pk, dependencies=world.dependencies) == 1
    assert ends() == [("refused", "chat_not_allowed")]
    assert Turn.objects.get().finished_at


def test_a_standing_is_one_of_three(world: World) -> None:
    world.say(CLIENT, "Hi")
    unknown: Any = "liked"
    with pytest.raises(KeyError):
        decide(world, unknown)
