"""Serialize conversations as JSON."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import (
    MAX_WHATSAPP_CHAT,
    WhatsAppChatError,
    whatsapp_chat_normalise,
)
from memoryproject.foundation.rest_kit import fields
from memoryproject.foundation.rest_kit.serializers import (
    Items,
    Object,
    StoredMoment,
    Strict,
    Text,
    Truth,
)
from memoryproject.foundation.text.uuids import iso_utc
from sessions_app.conversations.message_store import (
    FORM,
    MAX_MESSAGES,
    chat_form,
    form_size,
    own_metadata,
)
from sessions_app.models import ChatSession, ForgottenKind
from sessions_app.models.chats import CLIENT, GODFATHER, chat_role
from sessions_app.models.messages import Role
from sessions_app.models.sessions import SessionStatus
from sessions_app.presentation.access import WHATSAPP_CHAT_SCHEMA
from sessions_app.presentation.message_forms import (
    MAX_CALLS,
    MAX_CONTENT,
    MAX_ID,
    MAX_METADATA_BYTES,
    MAX_NAME,
    Content,
    RoleField,
    ToolCallSerializer,
    WholeContent,
    check_form,
)

MAX_ADDRESS_LENGTH = MAX_WHATSAPP_CHAT


@extend_schema_field(WHATSAPP_CHAT_SCHEMA)
class WhatsAppChat(Text):
    """The chat, such as 15550100123@c.us, …@g.us, …@bsuid or …@external; in its stored form.

    Other spellings of the same id are accepted; another text is refused.
    """

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("max_length", MAX_ADDRESS_LENGTH)
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> str:
        try:
            return whatsapp_chat_normalise(super().to_internal_value(data))
        except WhatsAppChatError as error:
            raise serializers.ValidationError(str(error)) from error


class SessionSerializer(serializers.Serializer[Any]):
    session_id = fields.uuid("Names the session in addresses: `sessions/{session_id}/`.")
    whatsapp_chat = fields.text("The chat that it belongs to, in the stored form of its id.")
    status = serializers.ChoiceField(
        SessionStatus.choices,
        help_text="expired: it has ended. archived: it has ended, and no message can be added.",
    )
    created_at = fields.moment("When the session began.")
    last_active = fields.moment("When the last message was stored.")
    expired_at = fields.moment("When it ended; null while it is active.", allow_null=True)
    message_counter = fields.number("The last order_num given.")
    total_tokens = fields.number("Of the messages within the window.")
    client_name = fields.text("Empty where it isn't known.", source="chat.client_name")
    client_phone = fields.text("Empty where it isn't known.", source="chat.client_phone")
    user_role = serializers.SerializerMethodField(help_text="Of the chat's person at present.")

    @extend_schema_field(serializers.ChoiceField([CLIENT, GODFATHER]))
    def get_user_role(self, session: ChatSession) -> str:
        """Return the role by the chat's addresses, with which lists annotate their sessions."""
        addresses = getattr(session, "current_addresses", None)
        return chat_role(session.chat, godfather=settings.GODFATHER_PHONE, addresses=addresses)


class NewSessionSerializer(Strict):
    whatsapp_chat = WhatsAppChat(
        required=False, help_text="Required, except for a token that is bound to one chat."
    )


def media_shown(media: dict[str, str]) -> dict[str, str]:
    """Leave the provider's link out: who has it may fetch the file without any token."""
    return {name: value for name, value in media.items() if name != "url"}


class MediaField(serializers.DictField):
    def to_representation(self, value: dict[str, str]) -> dict[str, str]:
        return media_shown(value)


class MessageSerializer(serializers.Serializer[Any]):
    """A stored message."""

    message_id = fields.uuid("Names the message in addresses, receipts and replays.")
    session_id = fields.uuid("The session that it belongs to.")
    order_num = fields.number("Its place in the session, from 1.")
    role = serializers.ChoiceField(Role.choices)
    content = fields.text("As it was given, byte for byte.")
    timestamp = fields.moment("When it was written, as the provider or the caller said.")
    received_at = fields.moment("When it was stored here.")
    was_received = fields.truth(
        "False while a reply sent by WhatsApp hasn't reached its recipient."
    )
    sender = fields.text("Who wrote it, as the provider or the caller said; empty: not given.")
    recipient = fields.text(
        "To whom it was written, as the provider or the caller said; empty: not given."
    )
    tokens = fields.number("How many tokens it has, by the server's estimate.")
    image_path = fields.text(
        "Where its picture is, for a message of imported files; null: none.", allow_null=True
    )
    metadata = fields.json_object("The JSON object that was stored with it; empty: none.")
    kind = fields.text("text, image, video, audio, voice, document, sticker, location, contacts, …")
    media = MediaField(
        child=serializers.CharField(),
        help_text="Of a file: media_id, mime_type, sha256, filename, as far as they are known.",
    )
    tool_calls = ToolCallSerializer(
        many=True, read_only=True, help_text="The assistant's calls of tools."
    )
    tool_call_id = fields.text(
        "The call whose result a tool's message is.", read_only=True, allow_null=True
    )
    name = fields.text("The writer's name, if it was given.", read_only=True, allow_null=True)
    content_parts = serializers.ListField(
        child=serializers.DictField(),
        read_only=True,
        allow_null=True,
        help_text="The content as it was given, if in parts; `content` is their text then.",
    )

    def to_representation(self, instance: Any) -> dict[str, Any]:
        """Return what the fields say, without asking each of them: a page has 1,000 messages.

        ``instance``: a Message, or anything with its attributes.
        """
        form = chat_form(instance.metadata)
        return {
            "message_id": str(instance.message_id),
            "session_id": str(instance.session_id),
            "order_num": instance.order_num,
            "role": str(instance.role),
            "content": instance.content,
            "timestamp": iso_utc(instance.timestamp),
            "received_at": iso_utc(instance.received_at),
            "was_received": instance.was_received,
            "sender": instance.sender,
            "recipient": instance.recipient,
            "tokens": instance.tokens,
            "image_path": instance.image_path,
            "metadata": own_metadata(instance.metadata),
            "kind": instance.kind,
            "media": media_shown(instance.media),
            "tool_calls": list(form.tool_calls),
            "tool_call_id": form.tool_call_id or None,
            "name": form.name or None,
            "content_parts": form.parts,
        }


# Fields of a message that are read from its metadata.
OF_ITS_FORM = ("tool_calls", "tool_call_id", "name", "content_parts")


MAX_MODEL = 128
LEARN = (
    "Whether facts are learned from what people say in it, by the rules of messages on WhatsApp: "
    "EXTRACT_MEMORIES."
)
# Of an assistant's message, as OpenAI's client writes it.
ALWAYS_SENT = frozenset(["annotations", "audio", "function_call"])


class NewMessageSerializer(Strict):
    role = RoleField(help_text="developer is system, ai is assistant, human is user.")
    content = Content(
        required=False,
        help_text=(
            "Kept byte for byte; it may be empty. Or parts in OpenAI's form; null only beside "
            "tool_calls."
        ),
    )
    timestamp = StoredMoment(required=False, help_text="Default: now.")
    metadata = Object(
        required=False, help_text=f"Any JSON object, at most {MAX_METADATA_BYTES:,} bytes."
    )
    sender = Text(
        required=False,
        allow_blank=True,
        max_length=MAX_ADDRESS_LENGTH,
        help_text="Who wrote it, in any form. Default: empty.",
    )
    recipient = Text(
        required=False,
        allow_blank=True,
        max_length=MAX_ADDRESS_LENGTH,
        help_text="To whom it was written, in any form. Default: empty.",
    )
    tool_calls = Items(
        child=ToolCallSerializer(),
        required=False,
        allow_null=True,
        max_length=MAX_CALLS,
        help_text="Only of an assistant's message: the tools that it calls; null: none.",
    )
    tool_call_id = Text(
        required=False,
        allow_null=True,
        max_length=MAX_ID,
        help_text="Only of a tool's message: the call whose result it is; null: none.",
    )
    name = Text(
        required=False,
        allow_null=True,
        max_length=MAX_NAME,
        help_text="The writer's name, for a message of any role; null: none.",
    )

    refusal = Text(
        required=False,
        allow_null=True,
        allow_blank=True,
        max_length=MAX_CONTENT,
        help_text="What an assistant says in place of its content; null: none.",
    )

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Leave out the fields that clients send with every message, where they are empty."""
        if isinstance(data, Mapping):
            data = {k: v for k, v in data.items() if v or k not in ALWAYS_SENT}
        return dict(super().to_internal_value(data))

    def validate_metadata(self, metadata: dict[str, Any]) -> dict[str, Any]:
        if FORM in metadata:
            raise serializers.ValidationError(f"The name {FORM} is taken by the server.")
        if form_size(metadata) > MAX_METADATA_BYTES:
            raise serializers.ValidationError(f"It has more than {MAX_METADATA_BYTES:,} bytes.")
        return metadata

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        refusal = attrs.pop("refusal", None)
        if refusal and attrs.get("content") is None:
            attrs["content"] = refusal
        if "content" not in attrs and not attrs.get("tool_calls"):
            raise serializers.ValidationError({"content": "This field is required."}, "required")
        check_form(attrs)
        return attrs


class NewMessagesSerializer(Strict):
    messages = Items(
        child=NewMessageSerializer(),
        min_length=1,
        max_length=MAX_MESSAGES,
        help_text="In the order in which they are stored: all of them, or none.",
    )
    learn = Truth(default=False, help_text=LEARN)


class NewExchangeSerializer(Strict):
    """What a person said, and what your own model answered."""

    query = WholeContent(help_text="What the person said: a text, or parts in OpenAI's form.")
    reply = WholeContent(help_text="What was answered, in the same forms.")
    model = Text(
        required=False,
        allow_blank=True,
        max_length=MAX_MODEL,
        help_text="The model that answered, for staff. Default: empty.",
    )
    timestamp = StoredMoment(required=False, help_text="When it was said. Default: now.")
    learn = Truth(default=False, help_text=LEARN)


class StoredMessagesSerializer(serializers.Serializer[Any]):
    messages = MessageSerializer(many=True, help_text="What was stored, in the order given.")
    learning = serializers.ChoiceField(
        ["queued", "off", "nothing"],
        help_text="queued: a worker learns from it. off: not wanted, or EXTRACT_MEMORIES is off. "
        "nothing: no person says anything in it that could be learned from.",
    )


class StoredExchangeSerializer(StoredMessagesSerializer):
    turn_id = fields.uuid("Names the replay: `turns/{turn_id}/`.")


class MessagesQuery(Strict):
    """``limit`` and ``cursor`` are those of all pages."""

    before = fields.moment(
        "Only messages with an earlier timestamp, such as …T09:30:00Z.", required=False
    )


class ReceiptSerializer(serializers.Serializer[Any]):
    """The receipt of a forgetting."""

    receipt_id = fields.uuid("Names the receipt in addresses: `receipts/{receipt_id}/`.")
    kind = serializers.ChoiceField(ForgottenKind.choices)
    object_id = fields.uuid("The id of what was forgotten; of a chat, its `object_id`.")
    forgotten_at = fields.moment("When it was forgotten.")
    swept = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="How many rows of which table, and how many media files.",
    )
    probe = fields.text(
        "absent: it was looked for and not found. found: `left` says what is still there."
    )
    probe_details = serializers.DictField(
        child=serializers.DictField(),
        help_text=(
            "What the probe did, by where it looked: queries, rows examined, and the columns, "
            "indexes and statistics looked_at. Empty for older receipts."
        ),
    )
    left = serializers.ListField(
        child=serializers.DictField(child=serializers.CharField()),
        source="still_there",
        help_text=(
            "What could not be removed, such as a file of a backup on a full disk: what it is, and "
            "its id. Staff remove it by hand. Empty if nothing is left."
        ),
    )
