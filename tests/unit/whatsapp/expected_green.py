"""What each payload in tests/payloads/green must be understood as (summaries.told)."""

EXPECTED: dict[str, list[str]] = {
    "api_deleted": [
        "ignored: a change that our own API call made",
    ],
    "api_text": [
        "own send to 15550100123@c.us: Our answer",
    ],
    "api_text_to_group": [
        "own send to 120363000000000002@g.us: Our answer",
    ],
    "audio_file": [
        "audio +media from 15550100123@c.us: ",
    ],
    "audio_ptt": [
        "voice +media from 15550100123@c.us: ",
    ],
    "audio_voice": [
        "voice +media from 15550100123@c.us: ",
    ],
    "avatar_info": [
        "ignored: webhook type 'avatarInfo' needs nothing",
    ],
    "buttons_response": [
        "interactive from 15550100123@c.us: Yes",
    ],
    "contact": [
        "contacts from 15550100123@c.us: Noa Sample, +1 555-010-0456",
    ],
    "contacts_array": [
        "contacts from 15550100123@c.us: Noa Sample, +1 555-010-0456; Avi Sample",
    ],
    "contacts_array_other_key": [
        "contacts from 15550100123@c.us: Noa Sample, +1 555-010-0456",
    ],
    "deleted": [
        "revocation of TEXT by 15550100123@c.us",
    ],
    "deleted_of_nothing": [
        "ignored: deletedMessage that names no message",
    ],
    "device_info": [
        "ignored: webhook type 'deviceInfo' needs nothing",
    ],
    "document": [
        "document +media from 15550100123@c.us: The invoice",
    ],
    "document_that_is_music": [
        "audio +media from 15550100123@c.us: ",
    ],
    "edited": [
        "edit of TEXT by 15550100123@c.us: Are you open on Thursday?",
    ],
    "edited_caption": [
        "edit of IMAGECAPTION by 15550100123@c.us: The repaired part",
    ],
    "edited_error_marker": [
        "ignored: an edit whose new content can't be read",
    ],
    "extended_text": [
        "text from 15550100123@c.us: see https://example.com",
    ],
    "extended_text_error_marker": [
        "unsupported from 15550100123@c.us: ",
    ],
    "extended_text_forwarded_often": [
        "text from 15550100123@c.us: please pass on",
    ],
    "group_invite": [
        "unsupported from 15550100123@c.us: ",
    ],
    "image_caption": [
        "image +media from 15550100123@c.us: The broken part",
    ],
    "image_forwarded": [
        "image +media from 15550100123@c.us: ",
    ],
    "image_not_downloadable": [
        "unsupported from 15550100123@c.us: The broken part",
    ],
    "image_quoting_us": [
        "image +media from 15550100123@c.us: like this",
    ],
    "incoming_block": [
        "ignored: webhook type 'incomingBlock' needs nothing",
    ],
    "incoming_call": [
        "ignored: webhook type 'incomingCall' needs nothing",
    ],
    "interactive_buttons": [
        "interactive from 15550100123@c.us: Choose\nWhen shall we come?\nAny day",
    ],
    "interactive_buttons_response": [
        "interactive from 15550100123@c.us: Second",
    ],
    "list_response": [
        "interactive from 15550100123@c.us: Delivery",
    ],
    "location": [
        "location from 15550100123@c.us: Example Shop, 5 Example Street (32.0853, 34.7818)",
    ],
    "location_pin": [
        "location from 15550100123@c.us: Location (32.0853, 34.7818)",
    ],
    "no_type": [
        "ignored: webhook type '(none)' needs nothing",
    ],
    "outgoing_call": [
        "ignored: webhook type 'outgoingCall' needs nothing",
    ],
    "phone_deleted": [
        "revocation of PHONETEXT by 15550100123@c.us",
    ],
    "phone_edited": [
        "edit of PHONETEXT by 15550100123@c.us: We open at ten",
    ],
    "phone_image": [
        "image +media to 15550100123@c.us: Our new shelf",
    ],
    "phone_reaction": [
        "ignored: a reaction by the business itself",
    ],
    "phone_text": [
        "text to 15550100123@c.us: We open at nine",
    ],
    "phone_text_in_group": [
        "text to 15550100001@c.us in 120363000000000002: hello all",
    ],
    "poll": [
        "poll from 15550100123@c.us: Which day? Sunday, Monday",
    ],
    "poll_older_shape": [
        "poll from 15550100123@c.us: Which day? Sunday",
    ],
    "poll_vote": [
        "ignored: a vote in a poll",
    ],
    "quota_exceeded": [
        "warning: Green API quota exceeded: correspondents (3 of 3). Allowed: 3 chats",
    ],
    "quota_under_another_type": [
        "warning: Green API quota exceeded: correspondents (3 of 3)",
    ],
    "quoted_error_marker": [
        "text from 15550100123@c.us: and this?",
    ],
    "quoted_text": [
        "text from 15550100123@c.us: yes",
    ],
    "quoted_text_of_another": [
        "text from 15550100123@c.us in 120363000000000002: no",
    ],
    "reaction": [
        "reaction 👍 to SENT by 15550100123@c.us",
    ],
    "reaction_in_group": [
        "reaction ❤️ to SENT by 15550100123@c.us",
    ],
    "reaction_removed": [
        "reaction removed to SENT by 15550100123@c.us",
    ],
    "state_authorized": [
        "info: The Green API instance is now authorized",
    ],
    "state_blocked": [
        "critical: The Green API instance is now blocked",
    ],
    "state_notAuthorized": [
        "critical: The Green API instance is now notAuthorized",
    ],
    "state_sleepMode": [
        "warning: The Green API instance is now sleepMode",
    ],
    "state_starting": [
        "info: The Green API instance is now starting",
    ],
    "state_yellowCard": [
        "critical: The Green API instance is now yellowCard",
    ],
    "status_delivered": [
        "delivered SENT to 15550100123@c.us",
    ],
    "status_failed": [
        "failed SENT to 15550100123@c.us (None) The phone is offline",
    ],
    "status_instance": [
        "ignored: webhook type 'statusInstanceChanged' needs nothing",
    ],
    "status_no_account": [
        "failed SENT to 15550100123@c.us (None) The number has no WhatsApp account",
    ],
    "status_no_active_session": [
        "failed SENT to 15550100123@c.us (None) The person's 24-hour window is closed",
    ],
    "status_not_in_group": [
        "failed SENT (None) The account is not a member of the group",
    ],
    "status_played": [
        "played SENT to 15550100123@c.us",
    ],
    "status_read": [
        "read SENT to 15550100123@c.us",
    ],
    "status_sent": [
        "sent SENT to 15550100123@c.us",
    ],
    "status_unknown": [
        "ignored: unknown status 'teleported'",
    ],
    "status_yellow_card": [
        "failed SENT to 15550100123@c.us (None) WhatsApp holds back messages of this "
        "account (yellow card)",
    ],
    "sticker": [
        "sticker +media from 15550100123@c.us: ",
    ],
    "template": [
        "interactive from 15550100123@c.us: Your parcel is here\nExample Post",
    ],
    "template_buttons_reply": [
        "interactive from 15550100123@c.us: Later",
    ],
    "text": [
        "text from 15550100123@c.us: Are you open on Friday?",
    ],
    "text_error_marker": [
        "unsupported from 15550100123@c.us: ",
    ],
    "text_from_lid": [
        "text from 99887766554433@lid: hidden number",
    ],
    "text_from_lid_with_phone": [
        "text from 15550100123@c.us/99887766554433@lid: two addresses",
    ],
    "text_hebrew": [
        "text from 15550100123@c.us: מתי אתם פותחים? ⏰",
    ],
    "text_in_group": [
        "text from 15550100123@c.us in 120363000000000002: good morning",
    ],
    "text_in_group_from_lid": [
        "text from 99887766554433@lid in 120363000000000002: hidden in a group",
    ],
    "text_in_group_mentions_us": [
        "text from 15550100123@c.us in 120363000000000002: @15550100001 what is the price?",
    ],
    "text_with_nul": [
        "text from 15550100123@c.us: beforeafter",
    ],
    "text_without_id": [
        "ignored: a message without an id",
    ],
    "text_without_sender": [
        "ignored: a message without a sender",
    ],
    "unknown_message_type": [
        "unsupported from 15550100123@c.us: ",
    ],
    "unknown_webhook": [
        "ignored: webhook type 'hologramReceived' needs nothing",
    ],
    "video_note": [
        "video +media from 15550100123@c.us: ",
    ],
}
