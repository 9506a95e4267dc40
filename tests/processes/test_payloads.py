"""Every recorded payload, posted to the running server as its provider posts it: what each
holds is stored, and nothing is answered that should not be."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeGuard

import pytest

from memoryproject.foundation.integrations.whatsapp.events import (
    Event,
    InboundMessage,
    MessageEdited,
    MessageRevoked,
    Reaction,
)
from memoryproject.foundation.integrations.whatsapp.registry import PROVIDERS
from memoryproject.staff_site.demo.story_texts import CONVERSATIONS, conversation, restamp
from tests.processes.stage import Stage
from tests.processes.waiting import wait_until
from tests.unit.whatsapp.payloads import OWN, SHARED, load

pytestmark = pytest.mark.processes

PARSE: dict[str, Callable[[Any], list[Event]]] = {
    name: record.parse for name, record in PROVIDERS.items()
}
# A revocation in front of its message, so that it is certain that nobody answers it; the business's
# own messages in front of what they would answer; a changed number in front of messages from the
# new one, whose holder before would get no answer any more.
FIRST = ("revoke", "deleted", "echo_", "phone_text", "phone_image", "changed_number")
# The last word of Green API on our account, or nothing is sent by it.
LAST = "state_authorized"
# How many of the payloads that differ in their words alone are answered: each takes its time.
ANSWERED_ALIKE = 2


@dataclass(frozen=True)
class Posted:
    """A payload that was posted, and the events that it holds."""

    name: str
    provider: str
    status: int
    answer: str
    events: list[Event]


def recorded() -> list[tuple[str, str, dict[str, Any]]]:
    """(name, provider, body) of all payloads that are here."""
    paths: list[Path] = []
    for provider in PARSE:
        for folder in (OWN / provider, SHARED / provider):
            paths += sorted(folder.glob("*.json"))
    paths.sort(key=lambda path: (path.stem == LAST, not any(word in path.stem for word in FIRST)))
    found = [(str(path), path.parent.name, load(path)) for path in paths]
    for provider, name in CONVERSATIONS:
        bodies = conversation(provider, name)
        found += [(f"demo/{provider}_{name}", provider, body) for body in bodies]
    return found


def few_of_each_kind() -> list[tuple[str, str, dict[str, Any]]]:
    """Some of all payloads: a few of those that hold the same kinds of events."""
    counted: Counter[tuple[Any, ...]] = Counter()
    found = []
    for name, provider, body in recorded():
        kinds = tuple(kind_of(event) for event in PARSE[provider](body))
        counted[provider, kinds] += 1
        if counted[provider, kinds] <= ANSWERED_ALIKE:
            found.append((name, provider, body))
    return found


def kind_of(event: Event) -> tuple[Any, ...]:
    """All that may decide whether an event is answered, and how."""
    if not isinstance(event, InboundMessage):
        return (type(event).__name__,)
    asked = (event.group_id is not None, event.mentions_us, event.replies_to_us)
    return (event.kind, event.from_business, bool(event.text), event.media is not None, *asked)


def post_all(
    live: Stage, bodies: list[tuple[str, str, dict[str, Any]]], restamped_as: str | None
) -> list[Posted]:
    """Post these: as they were recorded, or with today's times and new ids."""
    posted = []
    for name, provider, recording in bodies:
        body = recording
        if restamped_as is not None:
            body = restamp(recording, datetime.now(timezone.utc), restamped_as)
        answer = live.post.cloud(body) if provider == "cloud" else live.post.green(body)
        events = PARSE[provider](body)
        posted.append(Posted(name, provider, answer.status_code, answer.text, events))
    return posted


def events_of(posted: list[Posted]) -> list[Event]:
    return [event for each in posted for event in each.events]


def assert_stored(live: Stage, events: list[Event]) -> None:
    """Every delivery is on record as processed; every message has its text, kind and media."""
    deliveries = live.database.rows("SELECT * FROM sessions_app_inbounddelivery")
    by_key = {(row["provider"], row["delivery_key"]): row for row in deliveries}
    for event in events:
        row = by_key[event.provider, event.delivery_key]
        assert row["event"] == type(event).__name__
        assert not row["outcome"].startswith("not processed"), row
    rows = live.database.rows("SELECT * FROM sessions_app_message")
    messages = {(row["provider"], row["provider_message_id"]): row for row in rows}
    edited = {event.original_id: event for event in events if isinstance(event, MessageEdited)}
    revoked = {event.original_id for event in events if isinstance(event, MessageRevoked)}
    seen: set[str] = set()
    for event in events:
        if not isinstance(event, InboundMessage) or event.provider_message_id in seen:
            continue
        seen.add(event.provider_message_id)
        assert_message(messages[event.provider, event.provider_message_id], event, edited, revoked)
    for event in events:
        if isinstance(event, Reaction) and event.target_id in seen - revoked:
            reactions = messages[event.provider, event.target_id]["metadata"]["reactions"]
            assert event.emoji in ("", *reactions.values())


def assert_message(
    row: dict[str, Any], event: InboundMessage, edited: dict[str, MessageEdited], revoked: set[str]
) -> None:
    assert row["kind"] == event.kind
    assert row["role"] == ("assistant" if event.from_business else "user")
    assert row["timestamp"] == event.timestamp
    if event.provider_message_id in revoked:
        assert (row["content"], row["history"], row["media"]) == ("", [], {})
        return
    edit = edited.get(event.provider_message_id)
    assert row["content"] == (edit.text if edit else event.text)
    if edit is None:
        assert row["media"] == (event.media.as_dict() if event.media else {})
    elif edit.text != event.text:
        assert row["history"][0]["content"] == event.text
    # Of a quoted message that is stored, its own text is kept.
    given = {key: value for key, value in event.metadata.items() if key != "quoted"}
    assert {**row["metadata"], **given} == row["metadata"]
    assert row["metadata"].get("reply_to_id") == event.reply_to_id


def test_old_ones_are_stored_and_not_answered(live: Stage) -> None:
    """As they were recorded: long ago."""
    before = len(live.graph.sent), len(live.green.sent)
    posted = post_all(live, recorded(), None)

    assert [each for each in posted if each.status != 200] == []
    assert [each for each in posted if "Traceback" in each.answer] == []
    assert_stored(live, events_of(posted))
    asked = [event for event in events_of(posted) if is_for_us(event)]
    assert len(asked) > 50
    wait_until(lambda: not open_turns(live), "nothing waits for an answer")
    ids = [event.provider_message_id for event in asked]
    states = live.database.rows(
        "SELECT DISTINCT state FROM sessions_app_turn WHERE provider_message_id = ANY(%s)", ids
    )
    assert [row["state"] for row in states] == ["missed"]
    assert (len(live.graph.sent), len(live.green.sent)) == before


def test_fresh_ones_are_answered_once_where_they_should_be(live: Stage) -> None:
    """With today's times: those that people addressed to us, and nothing else."""
    before = {"cloud": len(live.graph.sent), "green": len(live.green.sent)}
    # Other tests of these servers end connections under the jobs, which may be told of later.
    failed = "SELECT id, func, result FROM django_q_task WHERE NOT success AND started > %s"
    (now,) = live.database.rows("SELECT now()")
    posted = post_all(live, few_of_each_kind(), uuid.uuid4().hex)
    events = events_of(posted)

    assert [each for each in posted if each.status != 200] == []
    wait_until(lambda: not open_turns(live), "everything is answered", seconds=120)
    assert_stored(live, events)
    revoked = {event.original_id for event in events if isinstance(event, MessageRevoked)}
    ours = {event.provider_message_id for event in events if isinstance(event, InboundMessage)}
    due = {
        (event.provider, event.provider_message_id)
        for event in events
        if is_for_us(event) and event.provider_message_id not in revoked
    }
    turns = live.database.rows(
        "SELECT provider, provider_message_id, state, error, attempts FROM sessions_app_turn"
        " WHERE provider_message_id = ANY(%s)",
        list(ours),
    )
    assert len(due) > 20
    assert [turn for turn in turns if turn["state"] != "sent"] == []
    assert {(turn["provider"], turn["provider_message_id"]) for turn in turns} == due
    for provider, server in (("cloud", live.graph), ("green", live.green)):
        answered = [each for each in due if each[0] == provider]
        assert len(server.sent) - before[provider] == len(answered)
    assert live.database.rows(failed, now["now"]) == []


def is_for_us(event: Event) -> TypeGuard[InboundMessage]:
    """Whether the assistant is to answer it, were it fresh."""
    if not isinstance(event, InboundMessage) or event.from_business or event.kind == "call":
        return False
    return event.group_id is None or event.mentions_us or event.replies_to_us


def open_turns(live: Stage) -> list[dict[str, Any]]:
    """The turns that are not over, but for those whose fate is unknown after a kill."""
    return live.database.rows(
        "SELECT id FROM sessions_app_turn WHERE state IN ('pending', 'running', 'replied')"
        " OR (state = 'sending' AND lease_token IS NOT NULL)"
    )
