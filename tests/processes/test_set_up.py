"""The set-up in the browser of a server that runs: nothing of it needs a restart."""

from __future__ import annotations

import re
import sys
from typing import Any

import httpx
import pytest

from tests.processes.conftest import everything
from tests.processes.posting import APP_SECRET, NUMBER_ID, new_phone
from tests.processes.stage import ACCESS_TOKEN, stage
from tests.processes.waiting import wait_until
from tests.shown import words_of

pytestmark = pytest.mark.processes

PASSWORD = "a-password-of-tests"
NOT_SET = (
    "CHAT_MODEL OPENAI_BASE_URL TRANSCRIPTION_MODEL GODFATHER_PHONE WHATSAPP_CLOUD_APP_SECRET "
    "WHATSAPP_CLOUD_PHONE_NUMBER_ID WHATSAPP_CLOUD_ACCESS_TOKEN WHATSAPP_CLOUD_VERIFY_TOKEN"
)


class Browser:
    """Fills in the forms of staff's pages."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def page(self, address: str) -> str:
        return words_of(self._client.get(address).raise_for_status().text)

    def fill(self, address: str, **typed: str) -> httpx.Response:
        """Post the form of a page; the page to which it leads."""
        form = self._client.get(address).text
        hidden = dict(re.findall(r'name="(csrfmiddlewaretoken|seen)" value="([^"]*)"', form))
        answer = self._client.post(address, data={**hidden, **typed}, headers={"Referer": address})
        return answer.raise_for_status()


def test_what_is_stored_needs_no_restart_and_the_environment_wins() -> None:
    unset: Any = dict.fromkeys(NOT_SET.split(), "")
    with (
        stage(run=everything, EMBEDDER="wordllama", ADMIN_PASSWORD=PASSWORD, **unset) as new,
        httpx.Client(base_url=new.installation.url, follow_redirects=True, timeout=60) as client,
    ):
        new.installation.manage("ensure_admin")
        browser = Browser(client)
        first = browser.fill("/admin/login/", username="admin", password=PASSWORD)
        assert first.url.path == "/admin/setup/owner/"
        person, later = new_phone(), new_phone()
        assert new.post.cloud({"object": "whatsapp_business_account"}).status_code == 401

        browser.fill("/admin/setup/owner/", GODFATHER_PHONE="+1 555 010 0100")
        browser.fill(
            "/admin/setup/whatsapp/",
            provider="cloud",
            WHATSAPP_CLOUD_PHONE_NUMBER_ID=NUMBER_ID,
            WHATSAPP_CLOUD_ACCESS_TOKEN=ACCESS_TOKEN,
            WHATSAPP_CLOUD_APP_SECRET=APP_SECRET,
        )
        browser.fill(
            "/admin/setup/model/",
            OPENAI_BASE_URL=new.openai.base_url,
            OPENAI_MODEL="model-of-tests",
        )
        wait_until(
            lambda: "Result of the check" in browser.page("/admin/setup/model/"), "it is checked"
        )
        assert "model-of-tests answers" in browser.page("/admin/setup/model/")
        assert new.openai.chat_bodies[-1]["model"] == "model-of-tests"

        new.post.say(person, "Do you have cake?")
        assert new.wait_for_answers(person, 1) == ["answer to: Do you have cake?"]
        assert f"Last message from …{person[-2:]}" in browser.page("/admin/setup/whatsapp/")
        new.installation.stop_program("answer")
        answers = (sys.executable, "manage.py", "answer")
        new.installation.programs["answer"] = new.installation.start_other(
            *answers, CHAT_MODEL="offline"
        )
        asked = len(new.openai.chat_bodies)
        new.post.say(later, "Do you have cake?")
        new.wait_for_answers(later, 1)
        assert len(new.openai.chat_bodies) == asked
