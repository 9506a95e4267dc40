"""A message is found by the token in its id, whichever identity stands before it."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import HealthCheck, example, given, settings, strategies as st

from memoryproject.foundation.integrations.whatsapp.events import (
    InboundMessage,
    MessageEdited,
    MessageRevoked,
    Party,
    Reaction,
)
from sessions_app.models import InboundDelivery, Message, OutboundPart, Turn
from sessions_app.models.messages import has_token_of
from tests.events import status
from tests.sessions.test_changes import whole_database
from tests.world import CLIENT, NUMBER_ID, OTHER_CLIENT, World, message_from

PHONE, BSUID = "15550100123", "US.10000000000000000001"
TOKEN = "AC0F09C0F8BF5E7A4B06"
BOTH = Party(phone=PHONE, bsuid=BSUID, name="Test User")
TOKENS = st.text("0123456789ABCDEFabcdef", min_size=8, max_size=127)
IDENTITIES = st.one_of(
    st.text("0123456789", min_size=5, max_size=15),
    st.builds("US.{}".format, st.text("0123456789", min_size=16, max_size=24)),
    st.builds("US.ENT.{}".format, st.text("0123456789", min_size=16, max_size=24)),
)
QUICK = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


def wamid(identity: str, token: str, *, ours: bool = False, end: bytes = b"\0") -> str:
    """An id as the Cloud API makes it."""
    sender = bytes([0x1C, 0x18, len(identity)]) + identity.encode()
    flag = b"\x15\x02\x00" + (b"\x11" if ours else b"\x12")
    raw = sender + flag + bytes([0x18, len(token)]) + token.encode() + end
    return "wamid." + base64.b64encode(raw).decode()


def token_of(message_id: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute("SELECT sessions_app_message_token(%s)", [message_id])
        return cursor.fetchone()[0]


@pytest.mark.django_db
@QUICK
@given(IDENTITIES, TOKENS, st.booleans(), st.sampled_from([b"\0", b""]))
def test_the_token_in_every_spelling(identity: str, token: str, ours: bool, end: bytes) -> None:
    made = wamid(identity, token, ours=ours, end=end)
    assert token_of(made) == token
    assert token_of(made.rstrip("=")) == token
    assert token_of(made.translate(str.maketrans("+/", "-_"))) == token


@pytest.mark.django_db
@QUICK
@given(st.text(max_size=300).filter(lambda text: "\0" not in text and text.isprintable()))
@example("wamid.")
@example("wamid.HBgLMTU1NTAxMDAxMjMVAgASGBQ=")
@example("wamid." + "A" * 17)
@example("wamid.====")
@example("wamid." + "A" * 400)
@example("3EB0C767D097B7C7C030")
def test_what_has_another_layout_has_no_token(message_id: str) -> None:
    assert token_of(message_id) is None


@pytest.mark.django_db
@QUICK
@given(st.binary(min_size=12, max_size=120))
def test_any_bytes_are_read(raw: bytes) -> None:
    token = token_of("wamid." + base64.urlsafe_b64encode(raw).decode().rstrip("="))
    assert token is None or token.encode() in raw


@pytest.mark.django_db
def test_ids_of_other_layouts_are_stored_and_compared_in_any_plan(world: World) -> None:
    """Whatever PostgreSQL evaluates first."""
    odd = ["wamid.a.b", "wamid.§", "sent.1", "wamid.=", ""]
    for number, message_id in enumerate(odd * 3):
        world.receive(message_from(CLIENT, f"{number}", provider_message_id=message_id + "x"))
        world.work()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        for message_id in odd:
            assert not Message.objects.filter(has_token_of("provider_message_id", message_id))
            assert not OutboundPart.objects.filter(has_token_of("provider_message_id", message_id))


@pytest.mark.django_db
def test_a_short_or_torn_token_is_none() -> None:
    assert token_of(wamid("15550100123", "ABCDEF1")) is None
    whole = base64.b64decode(wamid("15550100123", "D055B5E2C4225BA065")[6:])
    assert token_of("wamid." + base64.b64encode(whole[:-3]).decode()) is None


def written(text: str, identity: str, party: Party = BOTH, **changes: Any) -> InboundMessage:
    """A message with this identity in its id."""
    message_id = wamid(identity, TOKEN)
    return message_from(
        CLIENT,
        text,
        provider_message_id=message_id,
        delivery_key=f"message:{message_id}",
        party=party,
        **changes,
    )


def about(party: Party) -> dict[str, Any]:
    """What a change says of itself, without the id that it names."""
    return {
        "provider": "cloud",
        "number_id": NUMBER_ID,
        "party": party,
        "timestamp": timezone.now(),
    }


def revoked(identity: str, party: Party = BOTH) -> MessageRevoked:
    key = f"revoke:{identity}:{party.phone}:{party.bsuid}"
    return MessageRevoked(**about(party), delivery_key=key, original_id=wamid(identity, TOKEN))


def edited(text: str, identity: str, party: Party = BOTH) -> MessageEdited:
    return MessageEdited(
        **about(party),
        delivery_key=f"edit:{identity}:{party.phone}",
        raw={"edit": text},
        original_id=wamid(identity, TOKEN),
        text=text,
    )


def reacted(identity: str) -> Reaction:
    return Reaction(
        **about(BOTH),
        delivery_key=f"reaction:{identity}",
        target_id=wamid(identity, TOKEN),
        emoji="👍",
    )


EITHER = pytest.mark.parametrize(("first", "then"), [(PHONE, BSUID), (BSUID, PHONE)])


@pytest.mark.django_db
@EITHER
def test_a_change_finds_its_message_by_the_other_id(world: World, first: str, then: str) -> None:
    world.receive(written("the code is 1809", first))
    world.receive(edited("the code is 1912", then), reacted(then))
    message = Message.objects.get(provider_message_id=wamid(first, TOKEN))
    assert message.content == "the code is 1912"
    assert list(message.metadata["reactions"].values()) == ["👍"]
    world.receive(revoked(then))
    assert "the code is" not in whole_database()
    # Erasing the message erases what was delivered about it: by the id under which it is stored.
    subjects = set(InboundDelivery.objects.values_list("subject_id", flat=True))
    assert subjects == {wamid(first, TOKEN)}


@pytest.mark.django_db
@EITHER
def test_an_early_change_waits_for_its_message(world: World, first: str, then: str) -> None:
    world.say(CLIENT, "Good morning", party=BOTH)
    world.receive(edited("the code is 1912", first))
    world.receive(written("the code is 1809", then))
    assert Message.objects.get(provider_message_id=wamid(then, TOKEN)).content == "the code is 1912"


@pytest.mark.django_db
@EITHER
def test_a_revocation_of_nobody_known_is_obeyed(world: World, first: str, then: str) -> None:
    world.receive(revoked(first))
    world.receive(written("the code is 1809", then))
    assert Message.objects.get(provider_message_id=wamid(then, TOKEN)).revoked_at is not None
    world.work()
    assert world.provider.sent == []


@pytest.mark.django_db
@pytest.mark.parametrize("memory_enabled", [True, False])
@EITHER
def test_both_ids_are_one_turn(world: World, first: str, then: str, memory_enabled: bool) -> None:
    world.with_rules(memory_enabled=memory_enabled)
    world.receive(written("hello", first), written("hello", then))
    world.work()
    assert len(world.provider.sent) == 1
    assert Turn.objects.count() == 1
    assert Message.objects.filter(role="user").count() == int(memory_enabled)


@pytest.mark.django_db
def test_without_memory_a_waiting_message_is_revoked_by_the_other_id(world: World) -> None:
    world.with_rules(memory_enabled=False)
    world.receive(written("hello", PHONE), revoked(BSUID))
    world.work()
    assert world.provider.sent == []
    assert "hello" not in whole_database()


@pytest.mark.django_db
def test_nobody_changes_a_message_of_another_chat_by_its_token(world: World) -> None:
    world.receive(written("the code is 1809", PHONE))
    other = Party(phone="15550100456", bsuid="US.20000000000000000002", name="Stranger")
    world.say(OTHER_CLIENT, "hello", party=other)
    for identity in ("15550100456", "US.20000000000000000002"):
        world.receive(revoked(identity, other), edited("mine", identity, other))
    world.receive(revoked("15550100789", Party(phone="15550100789")))
    message = Message.objects.get(provider_message_id=wamid(PHONE, TOKEN))
    assert (message.content, message.revoked_at) == ("the code is 1809", None)


@pytest.mark.django_db
def test_a_strangers_message_is_not_taken_for_the_same(world: World) -> None:
    """Whoever writes a message chooses its token."""
    other = Party(phone="15550100456", bsuid="US.20000000000000000002", name="Stranger")
    world.receive(revoked("15550100456", other))
    world.receive(written("of the stranger", "15550100456", other), written("mine", PHONE))
    assert Message.objects.get(content="mine").revoked_at is None


@pytest.mark.django_db
@EITHER
def test_a_quotation_names_the_message_as_it_is_stored(world: World, first: str, then: str) -> None:
    world.receive(written("the code is 1809", first))
    world.say(CLIENT, "this one", party=BOTH, reply_to_id=wamid(then, TOKEN))
    quoting = Message.objects.get(content="this one")
    assert quoting.metadata["reply_to_id"] == wamid(first, TOKEN)


@pytest.mark.django_db
@EITHER
def test_a_status_finds_the_part_by_the_other_id(world: World, first: str, then: str) -> None:
    world.say(CLIENT, "hello", party=BOTH)
    part = OutboundPart.objects.get()
    part.provider_message_id = wamid(first, TOKEN, ours=True)
    part.save()
    world.receive(status(wamid(then, TOKEN, ours=True), "read", party=BOTH))
    part.refresh_from_db()
    assert part.delivery_status == "read"
    stranger = Party(phone="15550100456", bsuid="US.20000000000000000002")
    failed = status(wamid("15550100456", TOKEN, ours=True), "failed", party=stranger)
    world.receive(failed)
    part.refresh_from_db()
    assert part.delivery_status == "read"


@pytest.mark.django_db
def test_ids_of_green_api_are_compared_whole(world: World) -> None:
    """They are bare tokens, and of another provider."""
    world.receive(written("the code is 1809", PHONE))
    green = replace(revoked(PHONE), provider="green", original_id=TOKEN)
    world.receive(green)
    assert Message.objects.get(content="the code is 1809").revoked_at is None
