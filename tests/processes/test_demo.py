"""`manage.py demo` against a real server, as `make demo` runs it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryproject.staff_site.demo.story_texts import CONVERSATIONS, conversation
from tests.processes.database import Database
from tests.processes.installation import Installation, free_port
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

DEBT = "TestCorp owes me ₪5,000 from invoice INV-001"
QUESTION = "What's the status with TestCorp?"
WAITING = """
from datetime import timedelta
from django.utils import timezone
from sessions_app.models import Chat, Turn
chat = Chat.objects.create(whatsapp_chat="15550177777@c.us", provider="cloud")
tomorrow = timezone.now() + timedelta(days=1)
Turn.objects.create(chat=chat, provider="cloud", asked_at=timezone.now(), not_before=tomorrow)
"""


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """What a newcomer has: no key, and the stand-ins' addresses on this machine."""
    started = Installation(
        tmp_path_factory.mktemp("demo"),
        ENABLE_MEMORY_SYSTEM="true",
        # The demo waits for each answer before it says more.
        TURN_DEBOUNCE_SECONDS="0",
        GODFATHER_PHONE="15550199999@c.us",
        WHATSAPP_CLOUD_API_URL=f"http://127.0.0.1:{free_port()}/v24.0",
        WHATSAPP_CLOUD_PHONE_NUMBER_ID="100000000000001",
        WHATSAPP_CLOUD_APP_SECRET="app-secret-of-tests",
        WHATSAPP_CLOUD_VERIFY_TOKEN="verify-token-of-tests",
        WHATSAPP_CLOUD_ACCESS_TOKEN="access-token-of-tests",
        GREEN_API_URL=f"http://127.0.0.1:{free_port()}",
        GREEN_API_ID_INSTANCE="1101000001",
        GREEN_API_TOKEN="green-token-of-tests",
        GREEN_API_WEBHOOK_TOKEN="webhook-token-of-tests",
    )
    try:
        started.prepare()
        started.start()
        yield started
    finally:
        started.stop()


def scene(printed: str, title: str) -> str:
    """What the demo printed of one conversation."""
    found = re.search(rf"^— {re.escape(title)}.*? —$(.*?)(?=^—|\Z)", printed, re.M | re.S)
    assert found, printed
    return found[1]


def test_every_conversation_is_played_and_played_again(installation: Installation) -> None:
    """Beside an answer that waits until tomorrow, as the demo's data have one: it isn't the
    demo's, which waits for its own only."""
    database = Database(installation.data_dir)
    installation.manage("shell", "-c", WAITING)
    for time in (1, 2):
        printed = installation.manage("demo")
        assert printed.count("\n— ") == len(CONVERSATIONS)
        godfather, client = scene(printed, "WhatsApp Cloud API: the godfather").split("Tom Sample")
        assert f"✅ Remembered: {DEBT}" in godfather
        assert f"• {DEBT}" in godfather.partition(QUESTION)[2]
        assert QUESTION in client
        assert "₪5,000" not in client
        assert "INV-001" not in client
        client = scene(printed, "Green API: a client, in English")
        known = "✅ I read" if time == 1 else "I know"
        assert f"← {known} receipt.pdf" in client
        answers = re.findall(r"^    ← ", printed, re.MULTILINE)
        states = Counter(turn["state"] for turn in database.rows("SELECT * FROM sessions_app_turn"))
        # Each time the same number of answers.
        assert states == {"sent": time * len(answers), "pending": 1}
        deliveries = database.rows(
            "SELECT 1 FROM sessions_app_inbounddelivery WHERE event <> 'StatusUpdate' "
            "AND event <> 'OwnSend'"
        )
        assert len(deliveries) == time * recorded_bodies()
        files = {
            ("image", "image/jpeg"): 3 * time,
            ("voice", "audio/wav"): 2 * time,
            ("document", "application/pdf"): time,
        }
        # Nobody waits for a picture before answering.
        wait_until(lambda: fetched_files(database) == files, f"the files are {files}")  # noqa: B023


def fetched_files(database: Database) -> dict[tuple[str, str], int]:
    """How many files the workers took from the stand-ins, by the message's kind and their type."""
    files = database.rows(
        "SELECT message.kind, file.content_type FROM sessions_app_mediafile file"
        " JOIN sessions_app_message message ON message.message_id = file.message_id"
        " WHERE file.state = 'stored'"
    )
    return Counter((file["kind"], file["content_type"]) for file in files)


def recorded_bodies() -> int:
    """Each body of a recording holds one event."""
    return sum(len(conversation(provider, name)) for provider, name in CONVERSATIONS)


def test_other_peoples_addresses_are_refused(installation: Installation, tmp_path: Path) -> None:
    """The settings would lead to real people. That memory is off is told, too."""
    elsewhere = Installation(tmp_path)
    elsewhere.environment = {
        **installation.environment,
        "WHATSAPP_CLOUD_API_URL": "https://graph.facebook.com/v24.0",
        "ENABLE_MEMORY_SYSTEM": "false",
    }
    with pytest.raises(AssertionError, match=r"(?s)memory system is disabled.*this machine only"):
        elsewhere.manage("demo")
    elsewhere.stop_processes()
