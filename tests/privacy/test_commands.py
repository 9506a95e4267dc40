"""What a command answers doesn't tell whether there is something that isn't one's own."""

from __future__ import annotations

import pytest

from memories_app.models import Memory
from tests.privacy.oracle import may_see
from tests.privacy.town import CHATS, VIEWERS, MemoryPlan, build_town
from tests.world import GODFATHER

NO_SUCH_ID = "0" * 32


@pytest.mark.django_db
def test_forgetting_what_is_not_ones_own_is_answered_as_what_does_not_exist() -> None:
    """By id, by the beginning of it or by the text itself, whatever its state."""
    states = ("active", "superseded", "proposed", "expired", "document")
    plans = [
        MemoryPlan(visibility, CHATS.index(GODFATHER), state, 0)
        for visibility in ("owner", "public")
        for state in states
    ]
    town = build_town(plans, [])
    viewer = VIEWERS[0]
    (none,) = town.say(viewer, f"/forget {NO_SUCH_ID}")
    hidden = [secret for secret in town.secrets if not may_see(viewer, secret)]
    assert len(hidden) == len(plans) - 2
    for secret in hidden:
        for which in (str(secret.key), secret.key.hex[:8], secret.text):
            assert town.say(viewer, f"/forget {which}") == [none], secret
    assert Memory.objects.count() == len(plans)
