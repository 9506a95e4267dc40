"""Recordings can be played today, and twice."""

from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest

from memoryproject.foundation.integrations.whatsapp.events import (
    Event,
    Ignored,
    InboundMessage,
    MessageEdited,
    Reaction,
)
from memoryproject.foundation.integrations.whatsapp.registry import PROVIDERS
from memoryproject.staff_site.demo.story_texts import (
    CONVERSATIONS,
    conversation,
    events_of,
    restamp,
)
from tests.tables import table
from tests.unit.whatsapp.payloads import OWN, load, names

NOW = datetime(2026, 5, 6, 7, 8, 9, tzinfo=timezone.utc)


def played(provider: str, name: str, unique: str) -> list[Event]:
    return [
        event
        for body in conversation(provider, name)
        for event in events_of(provider, restamp(body, NOW, unique))
    ]


@table(("provider", "name"), CONVERSATIONS)
def test_recorded_conversations_are_understood(provider: str, name: str) -> None:
    events = played(provider, name, "1")

    assert not any(isinstance(event, Ignored) for event in events)
    texts = [event for event in events if isinstance(event, InboundMessage)]
    assert len({event.party.phone for event in texts}) == (2 if name == "godfather" else 1)
    assert texts[-1].text.endswith("?")
    assert any(event.text.startswith("/remember ") for event in texts)
    assert all(event.timestamp == NOW for event in texts)


@table(("provider", "name"), CONVERSATIONS)
def test_references_still_name_their_messages(provider: str, name: str) -> None:
    events = played(provider, name, "1")
    known = {event.provider_message_id for event in events if isinstance(event, InboundMessage)}

    for event in events:
        if isinstance(event, MessageEdited):
            assert event.original_id in known
        if isinstance(event, Reaction):
            assert event.target_id in known
        if isinstance(event, InboundMessage) and event.reply_to_id:
            assert event.reply_to_id in known


@pytest.mark.parametrize("provider", PROVIDERS)
def test_only_times_and_ids_change(provider: str) -> None:
    parse: Callable[..., list[Event]] = PROVIDERS[provider].parse
    for name in names(OWN / provider):
        recorded = load(OWN / provider / f"{name}.json")
        before = parse(recorded, received_at=NOW)
        after = parse(restamp(recorded, NOW, "1"), received_at=NOW)
        assert [type(event) for event in before] == [type(event) for event in after], name
        for old, new in zip(before, after, strict=True):
            if isinstance(old, InboundMessage) and isinstance(new, InboundMessage):
                assert (old.text, old.kind, old.party) == (new.text, new.kind, new.party)
                assert old.provider_message_id != new.provider_message_id


def test_times_keep_their_distance_and_their_type() -> None:
    recorded = load(OWN / "cloud" / "batch.json")
    value = recorded["entry"][0]["changes"][0]["value"]
    value["messages"][0]["timestamp"] = "1767225541"

    stamped = restamp(recorded, NOW, "1")

    times = [
        datetime.fromtimestamp(int(message["timestamp"]), tz=timezone.utc)
        for message in stamped["entry"][0]["changes"][0]["value"]["messages"]
    ]
    assert times[1] - times[0] == timedelta(seconds=59)
    status = stamped["entry"][0]["changes"][0]["value"]["statuses"][0]
    assert status["timestamp"] == str(int(NOW.timestamp()))
    assert value["messages"][0]["timestamp"] == "1767225541"
