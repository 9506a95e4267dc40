"""Every recorded payload is understood as the table beside it says."""

import json
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from memoryproject.foundation.integrations.whatsapp.cloud.parse import parse_cloud
from memoryproject.foundation.integrations.whatsapp.events import (
    KINDS,
    Event,
    Ignored,
    InboundMessage,
)
from memoryproject.foundation.integrations.whatsapp.green.parse import parse_green
from tests.unit.whatsapp import expected_cloud, expected_green
from tests.unit.whatsapp.payloads import OWN, SHARED, load, names
from tests.unit.whatsapp.summaries import told

PARSERS: dict[str, Callable[..., list[Event]]] = {"cloud": parse_cloud, "green": parse_green}
EXPECTED = {"cloud": expected_cloud.EXPECTED, "green": expected_green.EXPECTED}
ALL_OWN = [(provider, name) for provider, table in EXPECTED.items() for name in table]
RECEIVED = datetime(2026, 2, 3, tzinfo=timezone.utc)


@pytest.mark.parametrize(("provider", "name"), ALL_OWN)
def test_payload_is_understood(provider: str, name: str) -> None:
    events = PARSERS[provider](load(OWN / provider / f"{name}.json"), received_at=RECEIVED)

    assert [told(event) for event in events] == EXPECTED[provider][name]


@pytest.mark.parametrize("provider", PARSERS)
def test_every_payload_file_has_an_expectation(provider: str) -> None:
    assert names(OWN / provider) == sorted(EXPECTED[provider])


@pytest.mark.parametrize(("provider", "name"), ALL_OWN)
def test_raw_parses_to_the_same_event_again(provider: str, name: str) -> None:
    parse = PARSERS[provider]

    for event in parse(load(OWN / provider / f"{name}.json"), received_at=RECEIVED):
        assert event in parse(event.raw, received_at=RECEIVED)


@pytest.mark.parametrize("provider", PARSERS)
def test_delivery_keys_tell_events_apart(provider: str) -> None:
    parsed: dict[str, list[dict[str, Any]]] = {}
    for name in names(OWN / provider):
        for event in PARSERS[provider](load(OWN / provider / f"{name}.json")):
            parsed.setdefault(event.delivery_key, []).append(event.raw)

    for key, bodies in parsed.items():
        ids = {_identity(body) for body in bodies}
        assert len(ids) == 1, key


def _identity(body: dict[str, Any]) -> str:
    """What two deliveries of one event have in common, whatever else they say."""
    if "typeWebhook" in body:
        told_id = body.get("idMessage")
        parts = (body["typeWebhook"], told_id or json.dumps(body), body.get("status"))
        return repr(parts)
    for change in (body.get("entry") or [{}])[0].get("changes", []):
        value = change.get("value") if isinstance(change, dict) else None
        for part in ("messages", "statuses", "message_echoes"):
            for item in (value or {}).get(part, []) if isinstance(value, dict) else []:
                if isinstance(item, dict) and item.get("id"):
                    return repr((item["id"], item.get("status"), item.get("recipient_type")))
    return json.dumps(body, sort_keys=True)


def _shared() -> list[Path]:
    return sorted(path for provider in PARSERS for path in (SHARED / provider).glob("*.json"))


def test_shared_collection_is_understood() -> None:
    if not _shared():
        pytest.skip("there is no shared collection of payloads beside this checkout")
    for path in _shared():
        events = PARSERS[path.parent.name](load(path))
        assert events, path.name
        for event in events:
            if isinstance(event, InboundMessage):
                assert event.kind in KINDS, path.name
                assert event.party.addresses(), path.name
                assert "{{SWE" not in event.text, path.name
            assert not isinstance(event, Ignored) or event.reason, path.name
