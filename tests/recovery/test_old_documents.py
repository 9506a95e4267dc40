"""The parser of old documents: right for both generations, and never taken aback."""

from __future__ import annotations

import json
import math
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from sessions_app.legacy_import.import_session import numbered
from sessions_app.legacy_import.parse_sessions import (
    MAX_DEPTH,
    MAX_ORDER,
    ROLES,
    LegacyError,
    LegacyMessage,
    LegacySession,
    parse_message,
    parse_session,
)
from sessions_app.legacy_import.session_folder import FoundMessage
from tests.recovery.old_files import CLIENT, NOW, message

LATEST = NOW + timedelta(days=1)

SURROGATES = st.text(st.characters(codec=None, exclude_categories=()), max_size=10)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | SURROGATES | st.just(10**400)
MOMENTS = st.datetimes(timezones=st.none() | st.just(timezone.utc)).map(datetime.isoformat)
ANY_JSON = st.recursive(
    SCALARS | MOMENTS | st.sampled_from(ROLES) | st.uuids().map(str),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SURROGATES, inner, max_size=3),
    max_leaves=6,
)
SESSION = {
    "session_id": "00000000-0000-4000-8000-000000000001",
    "whatsapp_chat": CLIENT,
    "created_at": NOW.isoformat(),
    "last_active": NOW.isoformat(),
}


def documents(valid: dict[str, Any], fields: set[str]) -> st.SearchStrategy[dict[str, Any]]:
    """A valid document with any values in some of its fields, some left out, some more."""
    wrong = st.dictionaries(st.sampled_from(sorted(fields)) | SURROGATES, ANY_JSON, max_size=4)
    gone = st.sets(st.sampled_from(sorted(fields)), max_size=4)
    return st.builds(
        lambda more, less: {
            name: value for name, value in {**valid, **more}.items() if name not in less
        },
        wrong,
        gone,
    )


def check_storable(value: object) -> None:
    """That PostgreSQL takes a value, also inside of JSON."""
    if isinstance(value, str):
        assert "\x00" not in value
        value.encode("utf-8")
    elif isinstance(value, float):
        assert math.isfinite(value)
    elif isinstance(value, datetime):
        assert value.tzinfo is timezone.utc
        assert value <= LATEST
    elif isinstance(value, dict):
        for key, part in value.items():
            check_storable(key)
            check_storable(part)
    elif isinstance(value, list | tuple):
        for part in value:
            check_storable(part)


@given(documents(SESSION, LegacySession.names()) | ANY_JSON, SURROGATES)
def test_any_session_document_is_read_or_refused(document: Any, name: str) -> None:
    try:
        session = parse_session(document, name=name, latest=LATEST)
    except LegacyError:
        return
    check_storable({**vars(session), "messages": []})
    assert isinstance(session.session_id, UUID)
    assert 0 < len(session.whatsapp_chat) <= 255


@given(documents(message(1), LegacyMessage.names()) | ANY_JSON, st.none() | st.integers(1, 1000))
def test_any_message_document_is_read_or_refused(document: Any, position: int | None) -> None:
    try:
        found = parse_message(document, latest=LATEST, position=position)
    except LegacyError:
        return
    check_storable(vars(found))
    assert found.role in ROLES
    assert 1 <= found.order_num <= MAX_ORDER
    assert isinstance(found.message_id(UUID(int=1)), UUID)


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"))
SHORT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=255)
TIMES = st.datetimes(datetime(1970, 1, 2), datetime(2026, 1, 18))


@given(
    document=st.fixed_dictionaries(
        {
            "message_id": st.uuids().map(str),
            "order_num": st.integers(1, MAX_ORDER),
            "role": st.sampled_from(ROLES),
            "content": TEXTS,
            "sender": SHORT,
            "recipient": SHORT,
            "timestamp": TIMES.map(datetime.isoformat),
            "received_at": TIMES.map(lambda time: f"{time.isoformat()}Z"),
            "was_received": st.booleans(),
            "tokens": st.integers(0, 10**6),
            "image_path": st.none() | SHORT,
            "extra": st.recursive(st.integers() | SHORT, st.lists, max_leaves=4),
        }
    ),
    ref=st.sampled_from(["session_id", "chat_id"]),
)
def test_a_message_survives_the_round_trip(document: dict[str, Any], ref: str) -> None:
    written = json.loads(json.dumps({**document, ref: "the-session"}))
    found = parse_message(written, latest=LATEST)
    for name in ("order_num", "role", "content", "sender", "recipient", "tokens", "image_path"):
        assert getattr(found, name) == document[name]
    assert found.original_id == document["message_id"] == str(found.message_id(UUID(int=1)))
    assert found.session_ref == "the-session"
    assert found.timestamp == datetime.fromisoformat(document["timestamp"] + "+00:00")
    assert found.received_at.isoformat() == document["received_at"].replace("Z", "+00:00")
    assert found.naive
    assert found.unknown == {"extra": document["extra"]}


@given(times=st.tuples(TIMES, TIMES), ids=st.lists(SHORT, max_size=5, unique=True), name=SHORT)
def test_both_generations_agree(
    times: tuple[datetime, datetime], ids: list[str], name: str
) -> None:
    common = {
        "client_name": name,
        "message_ids": ids,
        "created_at": times[0].isoformat() + "+00:00",
        "last_active": times[1].isoformat() + "+00:00",
        "total_tokens": 7,
    }
    newer = {"session_id": SESSION["session_id"], "whatsapp_chat": CLIENT, **common}
    older = {"chat_id": SESSION["session_id"], "phone_number": CLIENT, **common}
    read = [
        parse_session(json.loads(json.dumps(one)), name="", latest=LATEST) for one in (newer, older)
    ]
    assert read[0] == read[1]
    assert read[0].message_ids == ids
    assert read[0].client_name == name
    assert read[0].last_active == times[1].replace(tzinfo=timezone.utc)
    assert (read[0].total_tokens, read[0].naive, read[0].messages) == (7, False, [])


def test_nesting_has_an_end() -> None:
    deep: Any = "x"
    for _ in range(MAX_DEPTH + 2):
        deep = [deep]
    with pytest.raises(LegacyError, match="nested"):
        parse_message(message(1, extra=deep), latest=LATEST)


@given(st.lists(st.integers(1, 20), max_size=15))
def test_numbers_rise_keep_gaps_and_move_only_where_they_must(numbers: list[int]) -> None:
    given_numbers = [
        FoundMessage(UUID(int=place), _legacy(number), "") for place, number in enumerate(numbers)
    ]
    placed = numbered(given_numbers)
    result = [number for number, _ in placed]
    assert result == sorted(set(result))
    assert all(number >= found.legacy.order_num for number, found in placed)
    if len(set(numbers)) == len(numbers):
        assert result == sorted(numbers)


def _legacy(number: int) -> LegacyMessage:
    return parse_message(message(1, order_num=number), latest=LATEST)
