"""The pages as an app: without a connection, and with pushes."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from memoryproject.staff_site.models import PushDevice
from tests.browser.visit import Visit, serious

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PAGE = "/admin/account/notifications/"
# In place of a push service, which the browser of a test doesn't reach.
PUSHES = """
Notification.requestPermission = async () => "granted";
const made = { unsubscribe: async () => { sessionStorage.setItem("ended", "yes"); return true; },
  toJSON: () => ({ endpoint: "https://93.184.216.34/push",
    keys: { p256dh: "B" + "A".repeat(86), auth: "A".repeat(22) } }) };
PushManager.prototype.subscribe = async () => made;
PushManager.prototype.getSubscription = async () => localStorage.getItem("staffPushes") && made;
"""


def test_without_a_connection_the_app_says_so_and_keeps_nothing(staff: Page) -> None:
    staff.goto(PAGE)
    staff.evaluate("navigator.serviceWorker.ready")
    staff.reload()
    staff.context.set_offline(True)
    try:
        staff.goto("/admin/sessions_app/chat/")
        expect(staff.get_by_role("heading", name="You are offline")).to_be_visible()
        assert staff.evaluate("caches.keys()") == []
        assert serious(staff) == []
    finally:
        staff.context.set_offline(False)
    staff.get_by_role("link", name="Try again").click()
    expect(staff.get_by_role("banner")).to_be_visible()


@pytest.mark.parametrize("who", ["the same person", "another one"])
def test_a_browser_shows_pushes_only_of_who_turned_them_on(
    visit: Visit, staff: Page, who: str
) -> None:
    staff.add_init_script(PUSHES)
    staff.goto(PAGE)
    staff.get_by_role("button", name="Turn on in this browser").click()
    expect(staff.get_by_text("Pushes are on in this browser.")).to_be_visible()
    assert PushDevice.objects.get().user.username == "staff"
    staff.goto("/admin/")
    assert staff.evaluate("sessionStorage.getItem('ended')") is None
    if who == "another one":
        staff.evaluate("localStorage.setItem('staffPushes', '0')")
        staff.goto("/admin/")
    else:
        staff.locator(".account-menu > summary").click()
        staff.get_by_role("button", name="Log out").click()
        expect(staff.get_by_role("link", name="Log in again")).to_be_visible()
    staff.wait_for_function("sessionStorage.getItem('ended') === 'yes'")
    assert staff.evaluate("localStorage.getItem('staffPushes')") is None
