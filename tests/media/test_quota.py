"""Files that aren't fetched: those of refused messages, and those that find no room."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from memoryproject.foundation.integrations.whatsapp.cloud.client import CloudProvider
from memoryproject.foundation.integrations.whatsapp.events import Media
from memoryproject.staff_site.alerts import current_conditions
from sessions_app.limits.intake import UsageLimits
from sessions_app.media.fetch import MediaQuota, bytes_used, media_fetch
from sessions_app.models import ChatAccess, ChatPause, MediaFile, Message, Turn, UsageDay
from tests.dashboard.staff import staff_with
from tests.media.conftest import PNG, Files
from tests.media.test_media import ANYWHERE, conversation, reader
from tests.threads import at_once
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT

pytestmark = pytest.mark.django_db

SIZE = len(PNG)
TIGHT = MediaQuota(chat_bytes=2 * SIZE, total_bytes=3 * SIZE)


def limit(files: Files, **changes: Any) -> None:
    files.world.with_rules(limits=UsageLimits(**changes))


def say_picture(files: Files, by: str = CLIENT, content: bytes = PNG, **changes: Any) -> Message:
    media = Media(media_id=files.graph.add_file(content, "image/png"))
    files.world.say(by, "", kind="image", media=media, **changes)
    return Message.objects.filter(role="user").latest("received_at", "order_num")


def fetch_all(files: Files, **changes: Any) -> None:
    """What the workers do with everything that is due."""
    dependencies = replace(files.dependencies, **changes)
    for row in MediaFile.objects.order_by("created_at"):
        media_fetch(media_id=row.pk, dependencies=dependencies)


def states() -> list[tuple[str, str]]:
    rows = MediaFile.objects.order_by("created_at")
    return [(row.state, row.error_code) for row in rows]


def assert_not_kept(files: Files, code: str, words: str) -> None:
    fetch_all(files)
    assert states() == [("refused", code)]
    assert files.kept() == {}
    assert files.graph.requests == []
    assert words in conversation(files, reader())


@ANYWHERE
def test_a_chat_at_its_limit_of_the_hour_sends_files_in_vain(files: Files) -> None:
    limit(files, messages_per_hour=1)
    for _ in range(4):
        say_picture(files)
    fetch_all(files)
    # The second one is answered with the notice of the limit; its file counts as refused, too.
    assert states() == [("stored", ""), *[("refused", "limit_messages")] * 3]
    assert len(files.kept()) == 1
    assert "The chat has reached its messages an hour" in conversation(files, reader())


@ANYWHERE
@pytest.mark.parametrize(
    ("limits", "used", "code"),
    [
        ({"model_calls_per_day": 3}, {"model_calls": 3}, "limit_model_calls"),
        ({"tokens_per_day": 100}, {"prompt_tokens": 100}, "limit_tokens"),
        ({"daily_budget": Decimal(1)}, {"cost": Decimal(1)}, "limit_budget"),
    ],
)
def test_a_chat_at_its_limit(
    files: Files, limits: dict[str, Any], used: dict[str, Any], code: str
) -> None:
    files.world.say(CLIENT, "hello")
    limit(files, **limits)
    chat, today = files.world.chat(CLIENT), UsageLimits().day_of(timezone.now())
    UsageDay.objects.update_or_create(chat=chat, day=today, defaults=used)
    say_picture(files)
    assert_not_kept(files, code, "The file was not kept: The")


@ANYWHERE
def test_a_chat_that_staff_have_not_allowed(files: Files) -> None:
    limit(files, allow_list_only=True)
    say_picture(files)
    assert_not_kept(files, "chat_not_allowed", "Only chats that staff allow")


@ANYWHERE
def test_a_message_that_came_too_late(files: Files) -> None:
    say_picture(files, timestamp=timezone.now() - timedelta(hours=30))
    assert_not_kept(files, "too_old", "came too late to be answered")


@ANYWHERE
@pytest.mark.parametrize("access", [{"standing": "blocked"}, {"opted_out_at": timezone.now()}])
def test_a_blocked_chat_and_one_that_has_stopped(files: Files, access: dict[str, Any]) -> None:
    files.world.say(CLIENT, "hello")
    ChatAccess.objects.update_or_create(chat=files.world.chat(CLIENT), defaults=access)
    say_picture(files)
    assert not MediaFile.objects.exists()


def test_files_of_a_paused_chat_are_fetched_for_staff(files: Files) -> None:
    files.world.say(CLIENT, "hello")
    ChatPause.objects.create(chat=files.world.chat(CLIENT))
    say_picture(files)
    assert Turn.objects.latest("id").state == "held"
    fetch_all(files)
    assert states() == [("stored", "")]


def test_the_owner_has_no_limit_but_that_of_the_storage(files: Files) -> None:
    limit(files, messages_per_hour=1, allow_list_only=True, model_calls_per_day=1)
    for _ in range(3):
        say_picture(files, GODFATHER)
    fetch_all(files, quota=TIGHT)
    assert states() == [("stored", ""), ("stored", ""), ("refused", "chat_full")]


def test_a_full_chat_keeps_its_messages_and_no_more_files(files: Files) -> None:
    for _ in range(4):
        say_picture(files)
    fetch_all(files, quota=TIGHT)
    assert states() == [("stored", ""), ("stored", ""), *[("refused", "chat_full")] * 2]
    assert len(files.kept()) == 2
    assert bytes_used() == bytes_used(files.world.chat(CLIENT).pk) == 2 * SIZE
    assert Message.objects.filter(role="user").count() == 4
    assert "the storage limit of this chat is reached" in conversation(files, reader())
    # Another chat has room, until all of it is used.
    for _ in range(2):
        say_picture(files, OTHER_CLIENT)
    fetch_all(files, quota=TIGHT)
    assert states()[4:] == [("stored", ""), ("refused", "total_full")]


def test_staff_get_one_alert_for_each_limit(files: Files) -> None:
    for _ in range(5):
        say_picture(files)
        say_picture(files, OTHER_CLIENT)
    fetch_all(files, quota=TIGHT)
    now = timezone.now()
    found = {each.key: str(each.text) for each in current_conditions(now)}
    alerts = {key: text for key, text in found.items() if key.startswith("files")}
    assert set(alerts) == {"files:chats", "files:total"}
    later = {each.key for each in current_conditions(now + timedelta(days=2))}
    assert not later & set(alerts)


def test_a_file_that_would_pass_the_limit_is_not_loaded(files: Files) -> None:
    """By the size that the provider states, and by the bytes that come where it states none."""
    say_picture(files)
    say_picture(files, content=PNG + b"x" * SIZE)
    fetch_all(files, quota=TIGHT)
    assert states() == [("stored", ""), ("refused", "chat_full")]

    class Unsized(CloudProvider):
        def fetch_media(self, *, into: Any, **_: Any) -> None:
            for _block in range(3):
                into.write(PNG)

    provider = Unsized(api_url="", phone_number_id="1", access_token="x", timeout=1.0)
    say_picture(files)
    fetch_all(files, quota=TIGHT, providers={"cloud": provider})
    assert states()[2] == ("refused", "chat_full")
    assert len(files.kept()) == 1


def test_room_that_becomes_free_is_used_again(files: Files) -> None:
    for _ in range(2):
        say_picture(files)
    fetch_all(files, quota=TIGHT)
    MediaFile.objects.order_by("created_at").update(state="removed")
    say_picture(files)
    fetch_all(files, quota=TIGHT)
    assert states()[2] == ("stored", "")


def test_a_file_larger_than_each_may_be_says_so(files: Files) -> None:
    say_picture(files)
    fetch_all(files, quota=TIGHT, max_bytes=SIZE - 1)
    assert states() == [("refused", "too_large")]


@pytest.mark.django_db(transaction=True)
def test_workers_at_once_do_not_exceed_the_limit(files: Files) -> None:
    for _ in range(6):
        say_picture(files)
    dependencies = replace(files.dependencies, quota=TIGHT)
    keys = list(MediaFile.objects.values_list("pk", flat=True))
    at_once(*[partial(media_fetch, media_id=key, dependencies=dependencies) for key in keys])
    assert sorted(states()) == [*[("refused", "chat_full")] * 4, *[("stored", "")] * 2]
    assert len(files.kept()) == 2


def test_operations_shows_what_files_use(files: Files, settings: Any) -> None:
    settings.MEDIA_MAX_MB_TOTAL, settings.MEDIA_MAX_MB_PER_CHAT = 30, 7
    say_picture(files)
    fetch_all(files)
    rights = ("dashboard.operate_server", "sessions_app.view_chat", "sessions_app.view_message")
    page = staff_with(*rights).get("/admin/operations/").content.decode()
    assert "of at most 30.0" in page
    assert "files use at most 7.0" in page
    name = files.world.chat(CLIENT).shown_name
    assert name in page
    assert name not in staff_with(rights[0], name="noa").get("/admin/operations/").content.decode()
