"""Saying something first, in a browser: the form, its preview and the results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from sessions_app.broadcasts.send_broadcast import broadcast_step
from sessions_app.models import Broadcast, Label
from tests.browser.visit import Visit, looked_at
from tests.dashboard.test_broadcasts import SALE
from tests.loopback.graph import GraphServer
from tests.world import CLIENT, OTHER_CLIENT, World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def listed(settings: Any) -> Iterator[None]:
    with GraphServer(access_token="token") as server:
        settings.WHATSAPP_CLOUD_API_URL = f"{server.url}/v24.0"
        settings.WHATSAPP_CLOUD_PHONE_NUMBER_ID = server.phone_number_id
        settings.WHATSAPP_CLOUD_ACCESS_TOKEN = "token"
        settings.WHATSAPP_BUSINESS_ACCOUNT_ID = server.business_account_id
        server.template_list = [SALE]
        yield


def test_a_template_is_chosen_previewed_and_sent(
    visit: Visit, staff: Page, world: World, listed: None
) -> None:
    for each in (CLIENT, OTHER_CLIENT):
        world.say(each, "Hi")
    Label.objects.create(name="VIP")
    staff.goto("/admin/broadcasts/")
    assert looked_at(staff) == []
    staff.get_by_role("link", name="sale").click()
    staff.get_by_label("{{1}}").fill("{name|there}")
    staff.get_by_label("{{2}}").fill("nine")
    staff.get_by_role("button", name="Preview").click()
    expect(staff.get_by_role("heading", name="It goes to 2 people")).to_be_visible()
    assert looked_at(staff) == []
    staff.get_by_role("button", name="Send to 2 people").dblclick()
    expect(staff.get_by_text("next messages at")).to_be_visible()
    broadcast_step(Broadcast.objects.get().pk)
    staff.reload()
    assert looked_at(staff) == []
    staff.goto("/admin/broadcasts/")
    staff.get_by_role("button", name="עברית").click()
    expect(staff.get_by_role("heading", name="לומר משהו")).to_be_visible()
    assert looked_at(staff) == []
    assert visit.troubles() == []
