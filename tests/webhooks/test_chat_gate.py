"""One thread at a time stores events of a chat; none waits for one that is slow."""

from __future__ import annotations

from memoryproject.foundation.integrations.whatsapp.events import Party
from sessions_app.inbound.receive import addresses_of
from tests.events import status
from tests.world import CLIENT, message_from

LONG = 60.0
ONE, TWO = "15550100123@c.us", "15550100124@c.us"


def test_an_event_is_of_the_chat_that_it_names() -> None:
    message = message_from(CLIENT, "hello")
    assert addresses_of(message) == {CLIENT}
    both = message_from(CLIENT, "hello", party=Party(phone="15550100123", bsuid="US.1"))
    assert addresses_of(both) == {CLIENT, "US.1@bsuid"}
    assert addresses_of(message_from(CLIENT, "hello", group_id="1@g.us")) == {"1@g.us"}
    assert addresses_of(status("wamid.1", "read")) == set()
