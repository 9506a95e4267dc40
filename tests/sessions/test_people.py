"""Who a chat belongs to: addresses that are linked, merged, changed and handed on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories_app.models import Memory
from memoryproject.foundation.integrations.llm.base import OfflineChatModel
from memoryproject.foundation.integrations.whatsapp.events import (
    AddressChanged,
    InboundMessage,
    MessageRevoked,
    Party,
)
from sessions_app.models import AssistantProfile, Chat, ChatAddress, ChatSession, Message, Turn
from tests.events import moved, revocation, status
from tests.world import CLIENT, GODFATHER, World, message_from

PHONE = "15550100123"
BSUID = "US.10000000000000000001"
OTHER_BSUID = "US.10000000000000000002"
NEW_PHONE = "15550100789"
GROUP = "120363000000000001"


def by_phone(**more: Any) -> Party:
    return Party(phone=PHONE, name="Test User", **more)


def test_a_person_without_a_phone_is_answered_by_their_id(world: World) -> None:
    assert world.say(CLIENT, "Hi", party=Party(bsuid=BSUID)) == ["answer to: Hi"]
    chat = Chat.objects.get()
    assert (chat.whatsapp_chat, chat.client_phone) == (f"{BSUID}@bsuid", "")
    to = world.provider.sent[0].to
    assert (to.phone, to.bsuid) == (None, BSUID)


def test_phone_and_id_shown_together_are_one_person(world: World) -> None:
    world.say(CLIENT, "by phone", party=by_phone())
    world.say(CLIENT, "by both", party=by_phone(bsuid=BSUID))
    world.say(CLIENT, "by id", party=Party(bsuid=BSUID))
    chat = Chat.objects.get()
    assert (chat.whatsapp_chat, chat.client_phone) == (CLIENT, PHONE)
    assert ChatSession.objects.count() == 1


def test_an_id_first_takes_the_phone_when_it_is_shown(world: World) -> None:
    world.say(CLIENT, "by id", party=Party(bsuid=BSUID))
    shown = world.provider.sent[0].provider_message_id
    world.receive(status(shown, "delivered", party=by_phone(bsuid=BSUID)))
    assert Chat.objects.get().whatsapp_chat == CLIENT


def test_one_person_by_two_providers_is_one_chat(world: World) -> None:
    world.say(CLIENT, "by the Cloud API")
    world.say(CLIENT, "by Green API", provider="green", number_id="1101000001")
    assert Chat.objects.count() == 1
    assert [message.content for message in world.messages(CLIENT)][::2] == [
        "by the Cloud API",
        "by Green API",
    ]
    assert list(Turn.objects.order_by("id").values_list("provider", flat=True)) == [
        "cloud",
        "green",
    ]


def test_two_chats_of_one_person_are_merged_into_the_older(world: World) -> None:
    world.say(CLIENT, "/remember I like tea", party=Party(bsuid=BSUID))
    older = Chat.objects.get()
    world.say(CLIENT, "by phone", party=by_phone())
    newer_session = ChatSession.objects.latest("created_at")
    world.say(CLIENT, "it is me", party=by_phone(bsuid=BSUID))
    chat = Chat.objects.get()
    assert (chat.pk, chat.whatsapp_chat) == (older.pk, CLIENT)
    assert Memory.objects.get().chat_id == chat.pk
    assert chat.sessions.get(status="active") == newer_session
    assert chat.sessions.count() == 2
    assert chat.turns.count() == 3
    assert "I like tea" in world.seen_by_model(CLIENT, "Do I like tea?", party=by_phone())


def test_a_number_that_shows_up_with_another_persons_id_changed_hands(world: World) -> None:
    world.say(CLIENT, "/remember The safe's code is 1234", party=by_phone(bsuid=BSUID))
    seen = world.seen_by_model(
        CLIENT, "What is the safe's code?", party=by_phone(bsuid=OTHER_BSUID)
    )
    assert "1234" not in seen
    assert Chat.objects.count() == 2
    assert "1234" in world.seen_by_model(
        CLIENT, "What is the safe's code?", party=Party(bsuid=BSUID)
    )


def test_a_new_number_keeps_the_chat(world: World) -> None:
    world.say(CLIENT, "/remember I like tea")
    world.receive(moved(Party(phone=PHONE), Party(phone=NEW_PHONE)))
    party = Party(phone=NEW_PHONE)
    assert "I like tea" in world.seen_by_model(CLIENT, "Do I like tea?", party=party)
    chat = Chat.objects.get()
    assert (chat.whatsapp_chat, chat.client_phone) == (f"{NEW_PHONE}@c.us", NEW_PHONE)
    assert ChatAddress.objects.get(address=CLIENT).left_at is not None


def test_who_had_the_new_number_before_keeps_their_own_memory(world: World) -> None:
    long_ago = timezone.now() - timedelta(hours=20)
    world.say(CLIENT, "my secret is 77", party=Party(phone=NEW_PHONE), timestamp=long_ago)
    world.say(CLIENT, "hello", party=by_phone())
    world.receive(moved(Party(phone=PHONE), Party(phone=NEW_PHONE)))
    seen = world.seen_by_model(CLIENT, "What is my secret?", party=Party(phone=NEW_PHONE))
    assert "77" not in seen
    assert Chat.objects.count() == 2


def test_a_new_id_does_not_take_the_phone_away(world: World) -> None:
    world.say(CLIENT, "hello", party=by_phone(bsuid=BSUID))
    world.receive(moved(by_phone(bsuid=BSUID), Party(bsuid=OTHER_BSUID)))
    world.say(CLIENT, "again", party=by_phone(bsuid=OTHER_BSUID))
    chat = Chat.objects.get()
    assert chat.addresses.get(address=CLIENT).left_at is None
    assert chat.addresses.get(address=f"{BSUID}@bsuid").left_at is not None


def test_in_a_group_only_what_is_meant_for_the_assistant_is_answered(world: World) -> None:
    assert world.say(CLIENT, "hello everybody", group_id=GROUP) == []
    assert world.say(CLIENT, "hello", group_id=GROUP, mentions_us=True)
    assert world.say(CLIENT, "@DeniDin hello", group_id=GROUP)
    ours = world.provider.sent[-1].provider_message_id
    assert world.say(CLIENT, "and?", group_id=GROUP, reply_to_id=ours)
    assert world.say(CLIENT, "and?", group_id=GROUP, replies_to_us=True)
    chat = Chat.objects.get()
    assert (chat.whatsapp_chat, chat.is_group) == (f"{GROUP}@g.us", True)
    assert chat.messages.filter(role="user").count() == 5
    assert world.provider.sent[-1].to.group_id == GROUP


def test_group_policies(world: World) -> None:
    world.with_rules(group_policy="always")
    assert world.say(CLIENT, "hello everybody", group_id=GROUP)
    world.with_rules(group_policy="never")
    assert world.say(CLIENT, "hello", group_id=GROUP, mentions_us=True) == []


def test_in_a_group_the_model_reads_who_said_what(world: World) -> None:
    world.say(CLIENT, "I bring cake", group_id=GROUP)
    world.say(GODFATHER, "who brings what?", group_id=GROUP, mentions_us=True)
    said = [message.content for message in world.prompt()[1:]]
    assert said == ["Test User: I bring cake", "Test User: who brings what?"]


def test_a_command_in_a_group_may_follow_the_mention(world: World) -> None:
    replies = world.say(
        CLIENT, "@15550100001 /remember cake on Friday", group_id=GROUP, mentions_us=True
    )
    assert replies == ["✅ Remembered: cake on Friday"]


# What is said to the assistant in a group, and what it is without the mention; None: no command.
ADDRESSED = {
    "hey @DeniDin remember that our van is red": "our van is red",
    "remember that our van is blue @DeniDin": "our van is blue",
    "remember that our van is blue, @denidin!": "our van is blue",
    "please @DeniDin remember that our van is white": "our van is white",
    "remember @DeniDin that our van is grey": "our van is grey",
    "remember that our van is old @DeniDin please": "our van is old",
    "hi @DeniDin, remember that our desk is oak": "our desk is oak",
    "@DeniDin: remember that our lamp is LED": "our lamp is LED",
    "hey @DeniDin /remember our bus is late": "our bus is late",
    "/remember @DeniDin our bus is early": "our bus is early",
    "היי @DeniDin תזכור שהמזגן שלנו חדש": "המזגן שלנו חדש",
    "תזכור שהמזגן שלנו ישן @DeniDin": "המזגן שלנו ישן",
    "hola @DeniDin recuerda que nuestra puerta es verde": "nuestra puerta es verde",
    "lembra que nosso portão é verde @DeniDin": "nosso portão é verde",
    "salut @DeniDin retiens que notre portail est vert": "notre portail est vert",
    "запомни, что наши ворота зелёные, @DeniDin": "наши ворота зелёные",
    "تذكر أن بوابتنا خضراء @DeniDin": "بوابتنا خضراء",
    "hey @15550100001 remember that our gate is green": "our gate is green",
    "remember that our gate is tall @15550100001": "our gate is tall",
    # Mentions of others are parts of what is said.
    "@DeniDin remember that the key is with @15550199999": "the key is with @15550199999",
    "@DeniDin remember that @15550199999 has the key": "@15550199999 has the key",
    "hey @Bob remember that our van is red": None,
}


@pytest.mark.parametrize("text", ADDRESSED)
def test_a_mention_of_the_assistant_may_stand_anywhere(text: str, world: World) -> None:
    ours = {"group_id": GROUP, "business_address": "15550100001"}
    world.say(CLIENT, "@15550100001 hello", mentions_us=True, **ours)
    mentions = "15550100001" in text
    replies = world.say(CLIENT, text, mentions_us=mentions, **ours)
    fact = ADDRESSED[text]
    assert [reply.partition(": ")[2] for reply in replies] == [fact] * bool(fact)


def test_a_question_is_the_same_with_a_mention_in_it(world: World) -> None:
    AssistantProfile.objects.create(pk=1, name="Deni Din", hours={"monday": "9-17"})
    world.use(chat_model=OfflineChatModel())
    world.say(CLIENT, "@Deni Din /remember our van is blue", group_id=GROUP)
    for asked in ("when do you open?", "what colour is our van?"):
        ways = ("@Deni Din {}", "hey @Deni Din {}", "{} @deni din", "{}\n@Deni Din")
        answers = {world.say(CLIENT, way.format(asked), group_id=GROUP)[-1] for way in ways}
        assert len(answers) == 1, answers
        assert ("9:00" in str(answers)) == ("open" in asked), answers


# Webhooks come late: what was written before a person moved on changes nothing afterwards.


NEW_NUMBER = "15550100789@c.us"


def number_change() -> AddressChanged:
    return moved(Party(phone="15550100123"), Party(phone="15550100789"))


def who_moved(world: World) -> None:
    world.say(CLIENT, "from the old number")
    world.receive(number_change())


def test_an_old_message_does_not_bring_the_old_number_back(world: World) -> None:
    who_moved(world)
    earlier = timezone.now() - timedelta(hours=1)
    world.receive(message_from(CLIENT, "written before", timestamp=earlier))
    chat = Chat.objects.get()
    assert chat.whatsapp_chat == NEW_NUMBER
    assert chat.addresses.get(address=CLIENT).left_at is not None


def test_who_writes_from_the_old_number_later_is_somebody_else(world: World) -> None:
    who_moved(world)
    later = timezone.now() + timedelta(seconds=5)
    world.receive(message_from(CLIENT, "I am new here", timestamp=later))
    assert Chat.objects.count() == 2
    assert [message.content for message in world.messages(CLIENT)] == ["I am new here"]


def revoked(message: InboundMessage, party: Party, group_id: str | None = None) -> MessageRevoked:
    return revocation(message.provider_message_id, party=party, group_id=group_id)


def test_a_revocation_before_the_change_meets_its_message_after_it(world: World) -> None:
    world.say(CLIENT, "from the old number")
    later = timezone.now() + timedelta(seconds=5)
    message = message_from(CLIENT, "forget this at once", timestamp=later)
    world.receive(revoked(message, message.party))
    world.receive(number_change())
    world.receive(message)
    stored = Message.objects.get(provider_message_id=message.provider_message_id)
    assert stored.chat != Chat.objects.get(whatsapp_chat=NEW_NUMBER)
    assert stored.content == ""
    assert stored.revoked_at is not None


def test_a_revocation_after_the_change_meets_its_message_of_before(world: World) -> None:
    message = message_from(CLIENT, "forget this at once")
    world.receive(message)
    world.receive(number_change())
    later = timezone.now() + timedelta(seconds=5)
    world.receive(message_from(CLIENT, "I am new here", timestamp=later))
    world.receive(revoked(message, message.party))
    stored = Message.objects.get(provider_message_id=message.provider_message_id)
    assert (stored.chat, stored.content) == (Chat.objects.get(whatsapp_chat=NEW_NUMBER), "")
    assert [kept.content for kept in world.messages(CLIENT)] == ["I am new here"]


def test_an_early_revocation_by_somebody_else_is_not_applied(world: World) -> None:
    world.say(CLIENT, "one")
    world.say(NEW_NUMBER, "two")
    message = message_from(CLIENT, "this stays")
    world.receive(revoked(message, Party(phone="15550100789")))
    world.receive(message)
    assert Message.objects.filter(content="this stays", revoked_at__isnull=True).exists()


def test_an_early_revocation_from_a_group_is_not_applied_elsewhere(world: World) -> None:
    world.say(CLIENT, "in the group", group_id="120363000000000001")
    message = message_from(CLIENT, "this stays")
    world.receive(revoked(message, message.party, group_id="120363000000000001"))
    world.receive(message)
    assert Message.objects.filter(content="this stays", revoked_at__isnull=True).exists()
