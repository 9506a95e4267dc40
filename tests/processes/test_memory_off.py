"""AC-FLAG-001: with the feature flag off the assistant answers from the message alone, and
nothing of what was said stays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.processes.conftest import everything
from tests.processes.posting import cloud_text, green_text, new_phone
from tests.processes.stage import GODFATHER, Stage, stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

STORES = ("sessions_app_chatsession", "sessions_app_message", "memories_app_memory")


@pytest.fixture(scope="module")
def forgetful() -> Iterator[Stage]:
    """A stage with ENABLE_MEMORY_SYSTEM=false."""
    with stage(run=everything, ENABLE_MEMORY_SYSTEM="false") as started:
        yield started


def assert_nothing_stays(forgetful: Stage, marker: str) -> None:
    wait_until(lambda: not forgetful.database.tables_with(marker), f"no row holds {marker}")
    assert marker not in forgetful.installation.output()
    for table in STORES:
        assert forgetful.database.rows(f"SELECT 1 FROM {table} LIMIT 1") == []


def test_answered_from_the_message_alone(forgetful: Stage) -> None:
    phone = new_phone()
    forgetful.post.say(phone, "My cat is called marzipan")
    forgetful.wait_for_answers(phone, 1)
    forgetful.post.say(phone, "What is the cat called?")

    answers = forgetful.wait_for_answers(phone, 2)
    assert answers == ["answer to: My cat is called marzipan", "answer to: What is the cat called?"]
    prompt = forgetful.openai.prompt_for("What is the cat called?")
    assert [message["role"] for message in prompt] == ["system", "user"]
    assert "marzipan" not in str(prompt)
    assert_nothing_stays(forgetful, "marzipan")


def test_nothing_is_kept_of_edits_and_reactions(forgetful: Stage) -> None:
    phone = new_phone()
    wamid = forgetful.post.say(phone, "about nougat")
    forgetful.wait_for_answers(phone, 1)
    edit = {"original_message_id": wamid, "message": {"type": "text", "text": {"body": "praline"}}}
    for change in (
        {"type": "edit", "edit": edit},
        {"type": "reaction", "reaction": {"message_id": wamid, "emoji": "\U0001f36b"}},
    ):
        assert forgetful.post.cloud(changed(phone, change)).status_code == 200

    for marker in ("nougat", "praline", "\U0001f36b"):
        assert_nothing_stays(forgetful, marker)
    assert forgetful.graph.texts_to(phone) == ["answer to: about nougat"]


def test_nothing_is_kept_of_messages_that_are_not_answered(forgetful: Stage) -> None:
    phone = new_phone()
    old = cloud_text(phone, "stale gingerbread")
    message = old["entry"][0]["changes"][0]["value"]["messages"][0]
    message["timestamp"] = "1767225600"
    grouped = cloud_text(phone, "gingerbread for all")
    grouped["entry"][0]["changes"][0]["value"]["messages"][0]["group_id"] = "group-of-tests"
    for payload in (old, grouped):
        assert forgetful.post.cloud(payload).status_code == 200

    forgetful.wait_until_over(phone)
    assert_nothing_stays(forgetful, "gingerbread")
    assert forgetful.graph.texts_to(phone) == []


def test_green_api_echoes_leave_nothing(forgetful: Stage) -> None:
    """Green API posts our own answer back to us, with its text."""
    phone = new_phone()
    forgetful.green.webhook_url = f"{forgetful.installation.url}/webhooks/whatsapp/green/"
    assert forgetful.post.green(green_text(phone, "tell me of turron")).status_code == 200

    wait_until(lambda: forgetful.green.sent, "an answer by Green API")
    forgetful.green.wait_until_reported()
    forgetful.wait_until_over(phone)
    assert [sent["message"] for sent in forgetful.green.sent] == ["answer to: tell me of turron"]
    assert_nothing_stays(forgetful, "turron")


@pytest.mark.parametrize("phone", [GODFATHER, "15550109999"])
def test_remember_says_that_memory_is_disabled(forgetful: Stage, phone: str) -> None:
    forgetful.post.say(phone, "/remember the secret is halva")

    (answer,) = forgetful.wait_for_answers(phone, 1)
    assert "Memory system is disabled" in answer
    assert_nothing_stays(forgetful, "halva")


def changed(phone: str, message: dict[str, Any]) -> dict[str, Any]:
    """A text's body with another message in its place."""
    payload = cloud_text(phone, "")
    messages = payload["entry"][0]["changes"][0]["value"]["messages"]
    kept = {name: messages[0][name] for name in ("from", "id", "timestamp")}
    messages[0] = {**kept, **message}
    return payload
