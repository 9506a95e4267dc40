"""Cloud API details that a one-line summary doesn't show."""

from datetime import datetime, timezone
from typing import Any

import pytest

from memoryproject.foundation.integrations.whatsapp.cloud.parse import parse_cloud
from memoryproject.foundation.integrations.whatsapp.events import (
    Event,
    InboundMessage,
    MessageEdited,
    StatusUpdate,
)
from tests.tables import table
from tests.unit.whatsapp.payloads import OWN, load

RECEIVED = datetime(2026, 2, 3, 4, 5, 6, tzinfo=timezone.utc)


def only(name: str) -> Any:
    return first(load(OWN / "cloud" / f"{name}.json"))


def first(payload: dict[str, Any]) -> Event:
    return parse_cloud(payload, received_at=RECEIVED)[0]


def with_timestamp(value: Any) -> dict[str, Any]:
    payload: dict[str, Any] = load(OWN / "cloud" / "text.json")
    payload["entry"][0]["changes"][0]["value"]["messages"][0]["timestamp"] = value
    return payload


def test_message_carries_its_ids_time_and_name() -> None:
    event = only("text")

    assert event.provider == "cloud"
    assert event.number_id == "100000000000001"
    assert event.provider_message_id == "wamid.TEXT"
    assert event.delivery_key == "100000000000001:message:wamid.TEXT"
    assert event.timestamp == datetime(2026, 1, 1, tzinfo=timezone.utc)
    assert event.party.name == "Dana Sample"
    assert event.business_address == "15550100001"
    assert not event.from_business


def test_status_key_holds_the_status() -> None:
    assert only("status_read").delivery_key == "100000000000001:status:wamid.SENT:read"


@table("garbage", [None, "", "soon", -5, 0, True, [], {}, 10**30, "1" * 5000, "٣"])
def test_unreadable_timestamp_becomes_the_time_of_receipt(garbage: Any) -> None:
    event = first(with_timestamp(garbage))

    assert isinstance(event, InboundMessage)
    assert event.timestamp == RECEIVED


@pytest.mark.parametrize("seconds", [1767225600, "1767225600", 1767225600.7])
def test_timestamp_may_be_a_number_or_a_string(seconds: Any) -> None:
    event = first(with_timestamp(seconds))

    assert isinstance(event, InboundMessage)
    assert event.timestamp == datetime(2026, 1, 1, tzinfo=timezone.utc)


def test_name_comes_from_the_matching_contact_only() -> None:
    assert only("text_contact_of_someone_else").party.name == ""
    assert only("text_contact_without_ids").party.name == "Dana Sample"
    names = [
        event.party.name
        for event in parse_cloud(load(OWN / "cloud" / "batch.json"))
        if isinstance(event, InboundMessage)
    ]
    assert names == ["Dana Sample", "Avi Sample", "Dana Sample"]


def test_username_is_kept_without_its_sign() -> None:
    event = only("text_user_id_only")

    assert event.party.phone is None
    assert event.party.username == "dana"
    assert event.metadata["username"] == "dana"


@table(
    ("name", "mentions", "replies"),
    [
        ("text_in_group", False, False),
        ("text_in_group_mentions_us", True, False),
        ("text_in_group_mentions_longer_number", False, False),
        ("text_in_group_replies_to_us", False, True),
        ("text_reply_to_another", False, False),
        ("text_reply_to_us", False, True),
    ],
)
def test_who_is_spoken_to(name: str, mentions: bool, replies: bool) -> None:
    event = only(name)

    assert (event.mentions_us, event.replies_to_us) == (mentions, replies)


def test_reply_names_the_quoted_message() -> None:
    assert only("text_reply_to_us").reply_to_id == "wamid.SENT"


def test_media_reference_is_complete() -> None:
    media = only("document").media

    assert media.as_dict() == {
        "media_id": "310000000000005",
        "mime_type": "application/pdf",
        "sha256": "3q2+7wECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxw=",
        "filename": "חשבונית 7.pdf",
    }


@table(
    ("name", "metadata"),
    [
        ("text", {}),
        ("text_forwarded_many_times", {"frequently_forwarded": True}),
        ("button", {"button": {"title": "Confirm", "payload": "confirm-7"}}),
        ("interactive_button", {"button": {"title": "Yes, please", "id": "yes"}}),
        (
            "interactive_list",
            {"button": {"title": "Delivery", "id": "row-2", "description": "To your door"}},
        ),
        ("unknown_type", {"provider_type": "hologram"}),
        (
            "unsupported_old_error_shape",
            {
                "provider_type": "unsupported",
                "errors": [
                    {
                        "code": 131051,
                        "title": "Unsupported message type",
                        "details": "Message type is not currently supported",
                    }
                ],
            },
        ),
    ],
)
def test_metadata(name: str, metadata: dict[str, Any]) -> None:
    assert only(name).metadata == metadata


def test_flow_token_is_not_content() -> None:
    event = only("interactive_flow")

    assert "secret" not in event.text
    assert "secret" not in str(event.metadata)


def test_reason_beside_the_messages_explains_the_one_that_has_none() -> None:
    event = only("interactive_without_object")

    assert event.kind == "unsupported"
    assert event.metadata["errors"][0]["code"] == 131000


def test_edit_of_a_caption_names_the_file() -> None:
    event = only("edit_caption")

    assert isinstance(event, MessageEdited)
    assert event.media is not None
    assert event.media.media_id == "310000000000001"
    assert only("edit_text").media is None


def test_a_change_in_a_group_says_which() -> None:
    assert only("reaction_in_group").group_id
    assert only("reaction").group_id is None


def test_status_hands_our_id_back_and_links_addresses() -> None:
    sent = only("status_sent")
    linked = only("status_delivered_contact_knows_more")

    assert isinstance(sent, StatusUpdate)
    assert sent.callback_id == "reply-41"
    assert linked.party.addresses() == ["15550100123@c.us", "US.20000000000000000001@bsuid"]
    assert only("status_read").callback_id is None


def test_failure_tells_code_and_text() -> None:
    event = only("status_failed_window_closed")

    assert event.error_code == 131047
    assert event.error_text == "Re-engagement message: More than 24 hours have passed"


def test_everyone_in_a_group_reads_for_themselves() -> None:
    payload = load(OWN / "cloud" / "status_read_in_group.json")
    one = first(payload)
    status = payload["entry"][0]["changes"][0]["value"]["statuses"][0]
    status["recipient_participant_id"] = "15550100456"

    assert first(payload).delivery_key != one.delivery_key
    assert isinstance(one, StatusUpdate)
    assert one.party is None


def test_retry_in_another_batch_has_the_same_keys() -> None:
    batch = load(OWN / "cloud" / "batch.json")
    together = {event.delivery_key for event in parse_cloud(batch)}
    alone = {
        event.delivery_key
        for entry in batch["entry"]
        for change in entry["changes"]
        for event in parse_cloud({"entry": [{**entry, "changes": [change]}]})
    }

    assert together == alone


def test_notice_of_another_time_is_another_notice() -> None:
    payload = load(OWN / "cloud" / "account_violation.json")
    before = first(payload).delivery_key
    payload["entry"][0]["time"] += 1

    assert first(payload).delivery_key != before


def test_echo_is_from_the_business_to_the_client() -> None:
    event = only("echo_text")

    assert event.from_business
    assert event.party.phone == "15550100123"
    assert event.party.name == "Dana Sample"


def test_what_the_database_refuses_is_gone_everywhere() -> None:
    payload = load(OWN / "cloud" / "text_unknown_fields.json")
    message = payload["entry"][0]["changes"][0]["value"]["messages"][0]
    message["text"]["body"] = "a\x00b\ud800c"
    message["future_field"] = {"ke\x00y": ["\x00", float("nan"), float("inf")]}

    event = first(payload)

    assert isinstance(event, InboundMessage)
    assert event.text == "ab\N{REPLACEMENT CHARACTER}c"
    raw = event.raw["entry"][0]["changes"][0]["value"]["messages"][0]
    assert raw["future_field"] == {"key": ["", None, None]}
    assert "\x00" not in repr(event.raw)
