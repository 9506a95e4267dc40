"""Every page of the admin in Hebrew, dark, as axe sees it on a narrow screen; with texts that would
like to be more than text. A file of its own: it takes as long as the English one, beside it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from memories_app.facts.validation import NewMemory
from memories_app.store.remember import memory_remember
from memoryproject.foundation.integrations.whatsapp.events import Party
from sessions_app.embedding.choice import embedder
from sessions_app.models import Chat, Label
from tests.browser.every_page import PHONE, Look, look_at_all
from tests.browser.visit import Visit
from tests.staff.furnish import furnish
from tests.world import CLIENT, World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HOSTILE = (
    '<script>window.taken = true</script><img src="x" onerror="window.taken = true">'
    "\u202eright to left override \u200b\u200d\ufeff zero width {{ 7|add:7 }} %s "
    '"><b onmouseover=alert(1)>'
)


def test_what_people_write_stays_text_on_every_page(
    visit: Visit, staff: Page, world: World
) -> None:
    party = Party(phone=CLIENT.split("@")[0], name=HOSTILE[:200])
    world.say(CLIENT, HOSTILE, party=party)
    world.say(CLIENT, HOSTILE + "x" * 20_000, party=party)
    memory_remember(
        NewMemory(content=HOSTILE, visibility="owner", tags=(HOSTILE[:60],)), embedder=embedder()
    )
    furnish(world)
    Chat.objects.update(client_name=HOSTILE[:200])
    Label.objects.update(name=HOSTILE[:40])
    wrong = look_at_all(visit, Look(PHONE, 1280, "dark", "he", lists=True))
    assert not wrong, "\n".join(wrong)
    staff.goto("/admin/")
    assert staff.evaluate("document.documentElement.lang") == "he"
