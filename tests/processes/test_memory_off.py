"""AC-FLAG-001: with the feature flag off the assistant answers from the message alone, and
nothing of what was said stays: in no table, and in no log."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.processes.conftest import everything
from tests.processes.posting import cloud_text, green_text, new_phone
from tests.processes.stage import GODFATHER, Stage, stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

STORES = ("sessions_app_chatsession", "sessions_app_message", "memories_app_memory")
MARKERS = ("marzipan", "praline", "\U0001f36b", "gingerbread", "turron", "halva")


def changed(phone: str, **message: Any) -> dict[str, Any]:
    """A text's body with another message in its place."""
    payload = cloud_text(phone, "")
    messages = payload["entry"][0]["changes"][0]["value"]["messages"]
    kept = {name: messages[0][name] for name in ("from", "id", "timestamp")}
    messages[0] = {**kept, **message}
    return payload


def is_nowhere(live: Stage, word: str) -> bool:
    return not live.database.tables_with(word)


def test_messages_are_answered_from_themselves_alone_and_nothing_of_them_stays() -> None:
    with stage(run=everything, ENABLE_MEMORY_SYSTEM="false") as live:
        phone, unanswered, other = new_phone(), new_phone(), new_phone()
        wamid = live.post.say(phone, "My cat is called marzipan")
        live.wait_for_answers(phone, 1)
        edit = {"type": "text", "text": {"body": "praline"}}
        reaction = {"message_id": wamid, "emoji": "\U0001f36b"}
        old = cloud_text(unanswered, "stale gingerbread")
        old["entry"][0]["changes"][0]["value"]["messages"][0]["timestamp"] = "1767225600"
        for payload in (
            changed(phone, type="edit", edit={"original_message_id": wamid, "message": edit}),
            changed(phone, type="reaction", reaction=reaction),
            old,
            changed(
                unanswered,
                type="text",
                text={"body": "gingerbread for all"},
                group_id="group-of-tests",
            ),
        ):
            assert live.post.cloud(payload).status_code == 200
        live.post.say(phone, "What is the cat called?")
        # Green API posts our own answer back to us, with its text.
        live.green.webhook_url = f"{live.installation.url}/webhooks/whatsapp/green/"
        assert live.post.green(green_text(other, "tell me of turron")).status_code == 200
        for person in (GODFATHER, other):
            live.post.say(person, "/remember the secret is halva")
            (refused,) = live.wait_for_answers(person, 1)
            assert "Memory system is disabled" in refused

        question = "What is the cat called?"
        assert live.wait_for_answers(phone, 2)[1] == f"answer to: {question}"
        prompt = live.openai.prompt_for(question)
        assert [message["role"] for message in prompt] == ["system", "user"]
        wait_until(lambda: live.green.sent, "an answer by Green API")
        live.green.wait_until_reported()
        assert [sent["message"] for sent in live.green.sent] == ["answer to: tell me of turron"]
        for person in (phone, unanswered, other):
            live.wait_until_over(person)
        assert live.graph.texts_to(unanswered) == []
        for marker in MARKERS:
            wait_until(partial(is_nowhere, live, marker), f"no {marker}")
            assert marker not in live.installation.output()
            assert marker not in str(prompt)
        for table in STORES:
            assert live.database.rows(f"SELECT 1 FROM {table} LIMIT 1") == []
