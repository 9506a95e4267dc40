"""What each payload in tests/payloads/cloud must be understood as (summaries.told)."""

EXPECTED: dict[str, list[str]] = {
    "account_alert": [
        "critical: WhatsApp account alerts: OBA_APPROVED (Payment method missing)",
    ],
    "account_review_rejected": [
        "warning: WhatsApp account review update: REJECTED",
    ],
    "account_verified": [
        "info: WhatsApp account update: VERIFIED_ACCOUNT",
    ],
    "account_violation": [
        "critical: WhatsApp account update: ACCOUNT_VIOLATION (SPAM)",
    ],
    "audio_file": [
        "audio +media from 15550100123@c.us: ",
    ],
    "audio_voice": [
        "voice +media from 15550100123@c.us: ",
    ],
    "batch": [
        "text from 15550100123@c.us: Are you open on Friday?",
        "text from 15550100456@c.us: And on Sunday?",
        "sent wamid.SENT to 15550100123@c.us",
        "delivered wamid.SENT to 15550100123@c.us",
        "info: WhatsApp account update: VERIFIED_ACCOUNT",
        "text from 15550100123@c.us: Last one",
    ],
    "batch_with_rubbish": [
        "ignored: a message without an id",
        "ignored: a message without an id",
        "ignored: a message without an id",
        "text from 15550100123@c.us: Are you open on Friday?",
        "ignored: a status without an id",
        "sent wamid.SENT to 15550100123@c.us",
        "ignored: a change without a value",
        "ignored: a change without a value",
    ],
    "button": [
        "button from 15550100123@c.us: Confirm",
    ],
    "call_connect": [
        "ignored: field 'calls' needs nothing",
    ],
    "contacts": [
        "contacts from 15550100123@c.us: Noa Sample, +1 555-010-0456, +1 555-010-0457; Avi Sample",
    ],
    "contacts_vcard": [
        "contacts from 15550100123@c.us: Noa Sample, +1 555-010-0456",
    ],
    "document": [
        "document +media from 15550100123@c.us: The invoice",
    ],
    "echo_edit": [
        "edit of wamid.ECHOTEXT by 15550100123@c.us: We open at ten",
    ],
    "echo_image": [
        "image +media to 15550100123@c.us: Our new shelf",
    ],
    "echo_in_group": [
        "text to 15550100001@c.us in group-1: hello all",
    ],
    "echo_reaction": [
        "ignored: a reaction by the business itself",
    ],
    "echo_revoke": [
        "revocation of wamid.ECHOTEXT by 15550100123@c.us",
    ],
    "echo_text": [
        "text to 15550100123@c.us: We open at nine",
    ],
    "echo_to_user_id": [
        "text to US.20000000000000000001@bsuid: hello there",
    ],
    "edit_caption": [
        "edit of wamid.IMAGECAPTION by 15550100123@c.us: The repaired part",
    ],
    "edit_text": [
        "edit of wamid.TEXT by 15550100123@c.us: Are you open on Thursday?",
    ],
    "edit_unreadable": [
        "ignored: an edit whose new content can't be read",
    ],
    "errors_of_the_value": [
        "warning: WhatsApp reports error 130429: Rate limit hit: Too many messages",
        "critical: WhatsApp reports error 131031: Account locked",
    ],
    "group_created": [
        "ignored: field 'group_lifecycle_update' needs nothing",
    ],
    "group_participants": [
        "ignored: field 'group_participants_update' needs nothing",
    ],
    "group_suspended": [
        "warning: WhatsApp group status update: group_suspend",
    ],
    "history_sync": [
        "ignored: field 'history' needs nothing",
    ],
    "image": [
        "image +media from 15550100123@c.us: ",
    ],
    "image_caption": [
        "image +media from 15550100123@c.us: The broken part",
    ],
    "image_download_failed": [
        "image +media from 15550100123@c.us: ",
    ],
    "image_without_object": [
        "unsupported from 15550100123@c.us: ",
    ],
    "interactive_button": [
        "interactive from 15550100123@c.us: Yes, please",
    ],
    "interactive_call_permission": [
        "interactive from 15550100123@c.us: Call permission: accept",
    ],
    "interactive_flow": [
        'interactive from 15550100123@c.us: day: Sunday; guests: 4; extras: ["cake"]',
    ],
    "interactive_flow_broken": [
        "interactive from 15550100123@c.us: Sent",
    ],
    "interactive_list": [
        "interactive from 15550100123@c.us: Delivery",
    ],
    "interactive_new_kind": [
        "unsupported from 15550100123@c.us: ",
    ],
    "interactive_without_object": [
        "unsupported from 15550100123@c.us: ",
        "warning: WhatsApp reports error 131000: Something went wrong: Unsupported webhook payload",
    ],
    "location_named": [
        "location from 15550100123@c.us: Example Shop, 5 Example Street (32.0853, 34.7818)",
    ],
    "location_pin": [
        "location from 15550100123@c.us: Location (32.0853, 34)",
    ],
    "no_entry": [
        "ignored: the body has no entry",
    ],
    "nothing_in_the_value": [
        "ignored: a change with nothing in it",
    ],
    "number_quality_down": [
        "warning: WhatsApp phone number quality update: DOWNGRADE",
    ],
    "order": [
        "order from 15550100123@c.us: Gift wrapped, please\n2 × MUG-1 (45.5 ILS); 1 × PLATE",
    ],
    "reaction": [
        "reaction 👍 to wamid.SENT by 15550100123@c.us",
    ],
    "reaction_in_group": [
        "reaction ❤️ to wamid.SENT by 15550100123@c.us",
    ],
    "reaction_removed": [
        "reaction removed to wamid.SENT by 15550100123@c.us",
    ],
    "reaction_to_nothing": [
        "ignored: a reaction that names no message",
    ],
    "request_welcome": [
        "ignored: the person only opened the chat",
    ],
    "revoke": [
        "revocation of wamid.TEXT by 15550100123@c.us",
    ],
    "revoke_of_nothing": [
        "ignored: a revoke that names no message",
    ],
    "security_pin_changed": [
        "warning: WhatsApp security: PIN_CHANGED",
    ],
    "status_delivered": [
        "delivered wamid.SENT to 15550100123@c.us",
    ],
    "status_delivered_contact_knows_more": [
        "delivered wamid.SENT to 15550100123@c.us/US.20000000000000000001@bsuid",
    ],
    "status_delivered_links_ids": [
        "delivered wamid.SENT to 15550100123@c.us/US.20000000000000000001@bsuid",
    ],
    "status_delivered_user_id_only": [
        "delivered wamid.SENT to US.20000000000000000001@bsuid",
    ],
    "status_failed_window_closed": [
        "failed wamid.SENT to 15550100123@c.us (131047) Re-engagement message: More than 24 "
        "hours have passed",
    ],
    "status_failed_without_error": [
        "failed wamid.SENT to 15550100123@c.us (None) ",
    ],
    "status_played": [
        "played wamid.SENT to 15550100123@c.us",
    ],
    "status_read": [
        "read wamid.SENT to 15550100123@c.us",
    ],
    "status_read_in_group": [
        "read wamid.SENT",
    ],
    "status_sent": [
        "sent wamid.SENT to 15550100123@c.us",
    ],
    "status_unknown": [
        "ignored: unknown status 'teleported'",
    ],
    "sticker": [
        "sticker +media from 15550100123@c.us: ",
    ],
    "system_identity_changed": [
        "ignored: system message customer_identity_changed",
    ],
    "system_number_changed": [
        "15550100123@c.us is now 15550100789@c.us",
    ],
    "system_number_changed_old_spelling": [
        "15550100123@c.us is now 15550100789@c.us",
    ],
    "system_number_changed_with_new_user_id": [
        "15550100123@c.us/US.20000000000000000001@bsuid is now "
        "15550100789@c.us/US.20000000000000000002@bsuid",
    ],
    "system_user_id_changed": [
        "US.20000000000000000001@bsuid is now CA.20000000000000000002@bsuid",
    ],
    "system_user_id_changed_told_in_words": [
        "US.20000000000000000001@bsuid is now CA.20000000000000000002@bsuid",
    ],
    "system_without_new_address": [
        "ignored: user_changed_number that names only one address",
    ],
    "template_approved": [
        "ignored: field 'message_template_status_update' needs nothing",
    ],
    "template_rejected": [
        "warning: WhatsApp message template status update: REJECTED (welcome)",
    ],
    "text": [
        "text from 15550100123@c.us: Are you open on Friday?",
    ],
    "text_about_product": [
        "text from 15550100123@c.us: Is this one in stock?",
    ],
    "text_contact_of_someone_else": [
        "text from 15550100123@c.us: whose name is it?",
    ],
    "text_contact_without_ids": [
        "text from 15550100123@c.us: a name only",
    ],
    "text_forwarded_many_times": [
        "text from 15550100123@c.us: please pass on",
    ],
    "text_from_ad": [
        "text from 15550100123@c.us: I saw the ad",
    ],
    "text_hebrew": [
        "text from 15550100123@c.us: שלום, אתם פתוחים ביום שישי? 🙂\nתודה",
    ],
    "text_in_group": [
        "text from 15550100123@c.us in group-1: good morning all",
    ],
    "text_in_group_mentions_longer_number": [
        "text from 15550100123@c.us in group-1: @155501000019 are you there?",
    ],
    "text_in_group_mentions_us": [
        "text from 15550100123@c.us in group-1: @15550100001 when do you open?",
    ],
    "text_in_group_replies_to_us": [
        "text from 15550100123@c.us in group-1: thanks",
    ],
    "text_number_timestamp_as_integer": [
        "text from 15550100123@c.us: time as a number",
    ],
    "text_phone_and_user_id": [
        "text from 15550100123@c.us/US.20000000000000000001@bsuid: both ids",
    ],
    "text_reply_to_another": [
        "text from 15550100123@c.us in group-1: I agree with him",
    ],
    "text_reply_to_us": [
        "text from 15550100123@c.us: Yes, that one",
    ],
    "text_unknown_fields": [
        "text from 15550100123@c.us: hello",
    ],
    "text_user_id_in_from": [
        "text from US.20000000000000000001@bsuid: id instead of a phone",
    ],
    "text_user_id_only": [
        "text from US.20000000000000000001@bsuid: no phone",
    ],
    "text_with_nul": [
        "text from 15550100123@c.us: beforeafter",
    ],
    "text_without_body": [
        "unsupported from 15550100123@c.us: ",
    ],
    "text_without_contacts": [
        "text from 15550100123@c.us: nobody introduced me",
    ],
    "text_without_id": [
        "ignored: a message without an id",
    ],
    "text_without_sender": [
        "ignored: a message without a sender",
    ],
    "unknown_type": [
        "unsupported from 15550100123@c.us: ",
    ],
    "unsupported": [
        "unsupported from 15550100123@c.us: ",
    ],
    "unsupported_old_error_shape": [
        "unsupported from 15550100123@c.us: ",
    ],
    "user_id_update": [
        "US.20000000000000000001@bsuid is now 15550100123@c.us/US.20000000000000000002@bsuid",
    ],
    "user_preferences": [
        "ignored: field 'user_preferences' needs nothing",
    ],
    "video_caption": [
        "video +media from 15550100123@c.us: How it moves",
    ],
}
