"""Every recorded payload is understood as the table beside it says."""

from collections.abc import Callable
from datetime import datetime, timezone

import pytest

from memoryproject.foundation.integrations.whatsapp.cloud.parse import parse_cloud
from memoryproject.foundation.integrations.whatsapp.events import Event
from memoryproject.foundation.integrations.whatsapp.green.parse import parse_green
from tests.unit.whatsapp.payloads import OWN, load, names
from tests.unit.whatsapp.summaries import told

PARSERS: dict[str, Callable[..., list[Event]]] = {"cloud": parse_cloud, "green": parse_green}
# What each payload must be understood as: see summaries.told.
EXPECTED: dict[str, dict[str, list[str]]] = {
    provider: load(OWN / f"expected_{provider}.json") for provider in PARSERS
}
RECEIVED = datetime(2026, 2, 3, tzinfo=timezone.utc)


def read(provider: str, name: str) -> list[Event]:
    return PARSERS[provider](load(OWN / provider / f"{name}.json"), received_at=RECEIVED)


@pytest.mark.parametrize("provider", PARSERS)
def test_every_payload_is_understood(provider: str) -> None:
    expected = EXPECTED[provider]
    assert {name: [told(event) for event in read(provider, name)] for name in expected} == expected


@pytest.mark.parametrize("provider", PARSERS)
def test_every_payload_file_has_an_expectation(provider: str) -> None:
    assert names(OWN / provider) == sorted(EXPECTED[provider])


@pytest.mark.parametrize("provider", PARSERS)
def test_raw_parses_to_the_same_event_again(provider: str) -> None:
    for name in EXPECTED[provider]:
        for event in read(provider, name):
            assert event in PARSERS[provider](event.raw, received_at=RECEIVED), name
