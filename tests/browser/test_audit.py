"""The audit log in a browser: list, search, the button that verifies."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from memoryproject.foundation.audit.audit_events import log_path
from memoryproject.foundation.audit.models import AuditEvent, AuditVerification
from memoryproject.foundation.audit.tasks import verify
from tests.audit.log import tamper
from tests.browser.visit import Visit, is_scrolled_sideways
from tests.world import CLIENT, World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LOG = "/admin/audit/auditevent/"


def test_from_a_chat_to_what_was_done_with_it(visit: Visit, staff: Page, world: World) -> None:
    world.say(CLIENT, "Good morning")
    chat = world.chat(CLIENT)
    staff.goto(f"/admin/sessions_app/chat/{chat.pk}/change/")
    staff.get_by_role("main").get_by_role("link", name="audit log", exact=True).click()
    actions = staff.locator("#result_list tbody .field-shown_action")
    expect(actions).to_have_text(["A conversation was read", "A session began"])
    assert CLIENT not in staff.locator("#changelist").inner_text()
    assert not is_scrolled_sideways(staff)
    assert visit.troubles() == []


def test_the_log_is_verified_by_a_button(visit: Visit, staff: Page) -> None:
    log_path().unlink(missing_ok=True)
    staff.goto(LOG)
    staff.get_by_role("link", name="Verify the log").click()
    state = staff.locator("#chain")
    staff.get_by_role("button", name="Verify now").click()
    expect(state).to_contain_text("as soon as a worker is free")
    verify(AuditVerification.objects.latest("id").pk)
    # The page shows by itself what the worker found.
    expect(state).to_contain_text("Verified: no tampering found.")
    tamper("UPDATE audit_auditevent SET actor = 'nobody' WHERE seq = 1")
    staff.get_by_role("button", name="Verify now").click()
    expect(state).to_contain_text("as soon as a worker is free")
    verify(AuditVerification.objects.latest("id").pk)
    expect(state).to_contain_text("NOT verified: 1 thing is wrong.")
    row = AuditEvent.objects.get(seq=1).pk
    expect(staff.locator(".findings")).to_contain_text(f"Event 1 (row {row} of audit_auditevent)")
    expect(staff.locator(".findings")).to_contain_text("differs from its line in actor")
    assert not is_scrolled_sideways(staff)
    assert visit.troubles() == []
    log_path().unlink()


def test_an_event_shows_all_of_it_and_changes_nothing(staff: Page, world: World) -> None:
    world.say(CLIENT, "Good morning")
    event = AuditEvent.objects.get(action="session.create")
    staff.goto(f"{LOG}{event.pk}/change/")
    expect(staff.locator("#content")).to_contain_text(str(world.session(CLIENT).pk))
    expect(staff.locator("input[name=_save]")).to_have_count(0)
