"""Fields of forms whose scripts are not ours."""

from __future__ import annotations

import subprocess
import sys

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from tests.browser.visit import Visit

BOTH = (
    "import os, django; os.environ['DJANGO_SETTINGS_MODULE'] = 'memoryproject.settings';"
    "django.setup(); import memoryproject.urls, unfold.forms;"
    "from django.contrib.admin import helpers;"
    "print(helpers.AdminForm is unfold.forms.AdminForm)"
)


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_a_form_says_the_time_zone_once(staff: Page) -> None:
    """Django's script compares the server's clock with the browser's, beside each such field."""
    client = staff.context.new_cdp_session(staff)
    client.send("Emulation.setTimezoneOverride", {"timezoneId": "Pacific/Auckland"})
    for address in ("/admin/memories_app/memory/add/", "/admin/api/apitoken/add/"):
        staff.goto(address)
        expect(staff.locator(".timezonewarning").first).to_be_attached()
        expect(staff.locator(".timezonewarning").first).to_be_hidden()
        expect(staff.get_by_text("Times in")).to_be_visible()


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_a_file_is_chosen_without_an_error(visit: Visit, staff: Page) -> None:
    for name in ("admin:memories_app_sourcedocument_add", "admin:memories_app_memory_import"):
        staff.goto(reverse(name))
        file = {"name": "prices.txt", "mimeType": "text/plain", "buffer": b"Roses cost 5"}
        staff.locator("input[type=file]").set_input_files(file)  # type: ignore[arg-type]
        assert staff.locator("input[type=file]").evaluate("field => field.files.length") == 1
    assert visit.troubles() == []


def test_a_form_looks_the_same_whichever_form_was_opened_before() -> None:
    found = subprocess.run([sys.executable, "-c", BOTH], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "True"
