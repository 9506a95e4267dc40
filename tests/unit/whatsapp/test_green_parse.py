"""Green API details that a one-line summary doesn't show."""

from datetime import datetime, timezone
from typing import Any

from memoryproject.foundation.integrations.whatsapp.events import OwnSend
from memoryproject.foundation.integrations.whatsapp.green.parse import parse_green
from tests.tables import table
from tests.unit.whatsapp.payloads import OWN, load

RECEIVED = datetime(2026, 2, 3, 4, 5, 6, tzinfo=timezone.utc)


def only(name: str) -> Any:
    [event] = parse_green(load(OWN / "green" / f"{name}.json"), received_at=RECEIVED)
    return event


def test_message_carries_its_ids_time_and_name() -> None:
    event = only("text")

    assert event.provider == "green"
    assert event.number_id == "1101000001"
    assert event.provider_message_id == "TEXT"
    assert event.delivery_key == "1101000001:message:TEXT"
    assert event.timestamp == datetime(2026, 1, 1, tzinfo=timezone.utc)
    assert event.party.name == "Dana Sample"
    assert event.business_address == "15550100001"


def test_types_of_webhooks_have_keys_of_their_own() -> None:
    body = load(OWN / "green" / "text.json")
    keys = set()
    for kind in (
        "incomingMessageReceived",
        "outgoingMessageReceived",
        "outgoingAPIMessageReceived",
    ):
        [event] = parse_green({**body, "typeWebhook": kind})
        keys.add(event.delivery_key)

    assert len(keys) == 3


def test_status_key_holds_the_status() -> None:
    assert only("status_read").delivery_key == "1101000001:outgoingMessageStatus:SENT:read"


def test_group_message_is_by_its_sender() -> None:
    event = only("text_in_group")

    assert event.group_id == "120363000000000002"
    assert event.group_name == "Regulars"
    assert event.party.phone == "15550100123"


def test_a_change_in_a_group_says_which() -> None:
    assert only("reaction_in_group").group_id == "120363000000000002"
    assert only("reaction").group_id is None


def test_other_forms_of_address_are_no_phone() -> None:
    party = only("text_from_lid").party

    assert party.phone is None
    assert party.other == "99887766554433@lid"


@table(
    ("name", "mentions", "replies"),
    [
        ("text_in_group", False, False),
        ("text_in_group_mentions_us", True, False),
        ("quoted_text", False, True),
        ("quoted_text_of_another", False, False),
        ("image_quoting_us", False, True),
    ],
)
def test_who_is_spoken_to(name: str, mentions: bool, replies: bool) -> None:
    event = only(name)

    assert (event.mentions_us, event.replies_to_us) == (mentions, replies)


@table(
    "name",
    [
        "quoted_text",
        "image_quoting_us",
        "buttons_response",
        "list_response",
        "template_buttons_reply",
        "interactive_buttons_response",
    ],
)
def test_reply_names_the_quoted_message(name: str) -> None:
    assert only(name).reply_to_id == "SENT"


@table(
    ("name", "metadata"),
    [
        ("text", {}),
        ("extended_text", {}),
        ("extended_text_forwarded_often", {"forwarded": True, "frequently_forwarded": True}),
        ("image_forwarded", {"forwarded": True}),
        ("video_note", {"video_note": True}),
        ("document_that_is_music", {"provider_type": "documentMessage"}),
        ("buttons_response", {"button": {"title": "Yes", "id": "1"}}),
        ("text_error_marker", {"provider_type": "textMessage", "errors": [{"code": "SWE003"}]}),
        (
            "quoted_text",
            {
                "quoted": {
                    "text": "our question",
                    "sender": "15550100001@c.us",
                    "provider_type": "textMessage",
                }
            },
        ),
    ],
)
def test_metadata(name: str, metadata: dict[str, Any]) -> None:
    assert only(name).metadata == metadata


def test_error_markers_are_never_content() -> None:
    lost = only("image_not_downloadable")

    assert lost.kind == "unsupported"
    assert lost.media is None
    assert lost.text == "The broken part"
    assert "text" not in only("quoted_error_marker").metadata["quoted"]


def test_media_reference_is_complete() -> None:
    assert only("document").media.as_dict() == {
        "url": "https://media.example.com/1101000001/f.bin",
        "mime_type": "application/pdf",
        "filename": "חשבונית 7.pdf",
    }


def test_what_the_owner_typed_is_from_the_business() -> None:
    event = only("phone_text")

    assert event.from_business
    assert event.party.phone == "15550100123"
    assert event.party.name == "Dana Sample"


def test_own_send_proves_what_went_out() -> None:
    event = only("api_text")

    assert isinstance(event, OwnSend)
    assert (event.provider_message_id, event.text) == ("APITEXT", "Our answer")
