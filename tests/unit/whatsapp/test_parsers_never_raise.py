"""Whatever JSON comes, the parsers give events that can be stored."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from memoryproject.foundation.integrations.whatsapp.cloud.parse import parse_cloud
from memoryproject.foundation.integrations.whatsapp.events import Event, InboundMessage
from memoryproject.foundation.integrations.whatsapp.green.parse import parse_green
from tests.fuzz.damage import FACTOR, places
from tests.unit.whatsapp.payloads import OWN, load, names

pytestmark = pytest.mark.slow

KINDS = {
    *("text", "image", "video", "audio", "voice", "document", "sticker", "location", "contacts"),
    *("interactive", "button", "order", "poll", "call", "unsupported"),
}
PARSERS: dict[str, Callable[..., list[Event]]] = {"cloud": parse_cloud, "green": parse_green}
RECORDED = {
    provider: [load(OWN / provider / f"{name}.json") for name in names(OWN / provider)]
    for provider in PARSERS
}

TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["\x00", "\ud83d", "{{SWE001}}", "wamid.X", "US.1", "1", "group", "text"]),
)
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.just(10**400), TEXTS)
ANY_JSON = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


def check(events: list[Event]) -> None:
    assert events
    for event in events:
        stored = json.dumps(event.raw, allow_nan=False, ensure_ascii=False)
        stored.encode()
        # Without the escaped backslashes, which may stand before a u.
        assert "\\u0000" not in stored.replace("\\\\", "")
        assert event.delivery_key
        event.delivery_key.encode()
        if isinstance(event, InboundMessage):
            assert event.kind in KINDS
            assert event.party.addresses()
            assert event.timestamp.utcoffset() is not None
            json.dumps([event.metadata, event.text], allow_nan=False).encode()
            assert "\x00" not in event.text


@pytest.mark.parametrize("provider", PARSERS)
@given(payload=ANY_JSON)
@settings(max_examples=30 * FACTOR, deadline=None)
def test_random_json(provider: str, payload: Any) -> None:
    check(PARSERS[provider](payload))


@pytest.mark.parametrize("provider", PARSERS)
def test_every_single_piece_replaced_by_every_kind_of_value(provider: str) -> None:
    replacement: Any
    for recorded in RECORDED[provider]:
        for path in places(recorded):
            for replacement in (None, True, 7, 10**400, 1.5, "", "x", [], [[]], {}, {"id": {}}):
                payload = copy.deepcopy(recorded)
                holder = payload
                for key in path[:-1]:
                    holder = holder[key]
                holder[path[-1]] = replacement
                check(PARSERS[provider](payload))


@pytest.mark.parametrize("provider", PARSERS)
def test_endless_depth(provider: str) -> None:
    deep: Any = "bottom"
    for _ in range(900):
        deep = {"messageData": [deep]}

    check(PARSERS[provider]({"typeWebhook": "incomingMessageReceived", "entry": deep, **deep}))
