"""Each spelling of a chat's id becomes one form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from memoryproject.foundation.integrations.whatsapp.cloud.parse import parse_cloud
from memoryproject.foundation.integrations.whatsapp.events import Event, InboundMessage
from memoryproject.foundation.integrations.whatsapp.green.parse import parse_green
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import (
    PATTERN,
    WhatsAppChatError,
    whatsapp_chat_normalise,
    whatsapp_chat_of_provider,
)
from tests.spellings import spellings, stored_ids
from tests.tables import table
from tests.unit.whatsapp.payloads import OWN, load, names

PERSON = "15550100123@c.us"


@table(
    ("text", "stored"),
    [
        (PERSON, PERSON),
        ("+15550100123@c.us", PERSON),
        ("15550100123", PERSON),
        ("+15550100123", PERSON),
        ("15550100123@C.US", PERSON),
        ("15550100123@s.whatsapp.net", PERSON),
        ("15550100123:12@S.WhatsApp.Net", PERSON),
        ("1234567890@c.us", "1234567890@c.us"),
        ("120363000000000001@G.US", "120363000000000001@g.us"),
        ("79876543210-1581234048@g.us", "79876543210-1581234048@g.us"),
        ("Y2FwaV9ncm91cDox=@g.us", "Y2FwaV9ncm91cDox=@g.us"),
        ("US.20000000000000000001", "US.20000000000000000001@bsuid"),
        ("us.ent.2a@BSUID", "US.ENT.2a@bsuid"),
        ("12ab.x@bsuid", "12ab.x@bsuid"),
        ("99887766554433@LID", "99887766554433@lid"),
        ("Order-7.b@External", "Order-7.b@external"),
        ("Transcripts@c.us", "transcripts@c.us"),
    ],
)
def test_a_spelling_becomes_the_stored_form(text: str, stored: str) -> None:
    assert whatsapp_chat_normalise(text) == stored


@table(
    "text",
    [
        "", "@", "@c.us", "@g.us", "@external", "someone", ".", "..", "../../etc@c.us", "a/b@c.us",
        "a\\b@external", "..@external", "..@bsuid", "0501234567", "00972501234567@c.us",
        "1555 0100123@c.us", " 15550100123@c.us", "15550100123@c.us\n", "1555\x000100123@c.us",
        "1555\u200e0100123@c.us", "１５５５０１００１２３", "١٥٥٥٠١٠٠١٢٣@c.us", "😀", "😀@external",
        "15550100123@c.us@c.us", "x@y@c.us", "15550100123@example.com", "1555-010-0123@c.us",
        "15550100123x@c.us", "US.123@c.us", "++15550100123", "+@c.us", "status@broadcast",
        "15550100123@\u212a.us", "1" * 21, "x" * 256 + "@external",
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(WhatsAppChatError, match="15550100123@c.us"):
        whatsapp_chat_normalise(text)


@given(st.data())
def test_no_spelling_is_another_chat(data: st.DataObject) -> None:
    stored = data.draw(stored_ids)
    assert whatsapp_chat_normalise(data.draw(spellings(stored))) == stored


@given(st.text(max_size=30) | st.from_regex(PATTERN, fullmatch=True))
def test_the_stored_form_is_its_own(text: str) -> None:
    try:
        stored = whatsapp_chat_normalise(text)
    except WhatsAppChatError:
        return
    assert whatsapp_chat_normalise(stored) == stored
    assert not set("/\\ \n") & set(stored)


@given(st.text(max_size=30))
def test_an_address_of_a_provider_is_kept_unless_it_could_be_a_path(text: str) -> None:
    kept = whatsapp_chat_of_provider(text)
    assert whatsapp_chat_of_provider(kept) == kept
    assert kept.isprintable()
    assert not set("/\\ ") & set(kept)
    assert kept not in (".", "..")


def test_forms_that_the_providers_may_send_later_are_kept() -> None:
    for text in ("15550100123@hosted", "120363@newsletter", "status@broadcast", "strange-id"):
        assert whatsapp_chat_of_provider(text) == text


@pytest.mark.parametrize(("provider", "parse"), [("cloud", parse_cloud), ("green", parse_green)])
def test_recorded_senders_are_normal(provider: str, parse: Callable[[Any], list[Event]]) -> None:
    folder = OWN / provider
    events = [event for name in names(folder) for event in parse(load(folder / f"{name}.json"))]
    senders = [event.party for event in events if isinstance(event, InboundMessage)]
    assert senders
    for address in (address for party in senders for address in party.addresses()):
        assert whatsapp_chat_normalise(address) == address
