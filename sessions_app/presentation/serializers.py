"""Serialize conversations as JSON."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import (
    MAX_WHATSAPP_CHAT,
    WhatsAppChatError,
    whatsapp_chat_normalise,
)
from memoryproject.foundation.rest_kit.serializers import Moment, Object, Strict, Text
from memoryproject.foundation.text.iso_times import iso_utc
from sessions_app.conversations.facade import FORM, MAX_MESSAGES, chat_form, form_size, own_metadata
from sessions_app.models import Chat, ChatSession, ForgottenKind
from sessions_app.models.messages import Role
from sessions_app.models.roles import CLIENT, GODFATHER, user_role
from sessions_app.models.sessions import SessionStatus
from sessions_app.presentation.lookup import WHATSAPP_CHAT_SCHEMA
from sessions_app.presentation.message_forms import (
    MAX_CALLS,
    MAX_ID,
    MAX_METADATA_BYTES,
    MAX_NAME,
    Content,
    ToolCallSerializer,
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
    session_id = serializers.UUIDField()
    whatsapp_chat = serializers.CharField()
    status = serializers.ChoiceField(SessionStatus.choices)
    created_at = Moment()
    last_active = Moment(help_text="When the last message was stored.")
    expired_at = Moment(allow_null=True)
    message_counter = serializers.IntegerField(help_text="The last order_num given.")
    total_tokens = serializers.IntegerField(help_text="Of the messages within the window.")
    client_name = serializers.CharField(
        source="chat.client_name", help_text="Empty where it isn't known."
    )
    client_phone = serializers.CharField(
        source="chat.client_phone", help_text="Empty where it isn't known."
    )
    user_role = serializers.SerializerMethodField(help_text="Of the chat's person at present.")

    @extend_schema_field(serializers.ChoiceField([CLIENT, GODFATHER]))
    def get_user_role(self, session: ChatSession) -> str:
        """Return the role by the chat's addresses, with which lists annotate their sessions."""
        if not settings.GODFATHER_PHONE:
            # user_role would log a warning for each session of a list.
            return CLIENT
        chat = session.chat
        addresses = getattr(session, "current_addresses", None)
        if addresses is None:
            current = chat.addresses.filter(left_at__isnull=True)
            addresses = current.values_list("address", flat=True)
        return user_role(
            addresses=addresses,
            is_group=chat.is_group,
            whatsapp_chat=chat.whatsapp_chat,
            godfather=settings.GODFATHER_PHONE,
        )


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

    message_id = serializers.UUIDField()
    session_id = serializers.UUIDField()
    order_num = serializers.IntegerField(help_text="Its place in the session, from 1.")
    role = serializers.ChoiceField(Role.choices)
    content = serializers.CharField(help_text="As it was given, byte for byte.")
    timestamp = Moment()
    received_at = Moment(help_text="When it was stored here.")
    was_received = serializers.BooleanField(
        help_text="False while a reply sent by WhatsApp hasn't reached its recipient."
    )
    sender = serializers.CharField()
    recipient = serializers.CharField()
    tokens = serializers.IntegerField()
    image_path = serializers.CharField(allow_null=True)
    metadata = serializers.DictField(child=serializers.JSONField())
    kind = serializers.CharField(
        help_text="text, image, video, audio, voice, document, sticker, location, contacts, …"
    )
    media = MediaField(
        child=serializers.CharField(),
        help_text="Of a file: media_id, mime_type, sha256, filename, as far as they are known.",
    )
    tool_calls = serializers.SerializerMethodField(help_text="The assistant's calls of tools.")
    tool_call_id = serializers.SerializerMethodField(
        help_text="The call whose result a tool's message is."
    )
    name = serializers.SerializerMethodField(help_text="The writer's name, if it was given.")
    content_parts = serializers.SerializerMethodField(
        help_text="The content as it was given, if in parts; `content` is their text then."
    )

    @extend_schema_field(ToolCallSerializer(many=True))
    def get_tool_calls(self, message: Any) -> list[Any]:
        return list(chat_form(message.metadata).tool_calls)

    def get_tool_call_id(self, message: Any) -> str | None:
        return chat_form(message.metadata).tool_call_id or None

    def get_name(self, message: Any) -> str | None:
        return chat_form(message.metadata).name or None

    @extend_schema_field({"type": "array", "items": {"type": "object"}, "nullable": True})
    def get_content_parts(self, message: Any) -> Any:
        return chat_form(message.metadata).parts

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


class TimestampRangeSerializer(serializers.Serializer[Any]):
    start = Moment(source="range_start")
    end = Moment(source="range_end")


class SummarySerializer(serializers.Serializer[Any]):
    """What a summary covers: SummarizationMetadata of seed 003."""

    summary_metadata_id = serializers.UUIDField(
        help_text="By which the summary's message names it: summaryMetadataId in its metadata."
    )
    session_id = serializers.UUIDField()
    number = serializers.IntegerField(help_text="Its place among the session's summaries, from 1.")
    summary_message_id = serializers.UUIDField(help_text="The message that holds its text.")
    summarized_message_ids = serializers.ListField(child=serializers.UUIDField())
    first_order = serializers.IntegerField(help_text="order_num of its first message.")
    last_order = serializers.IntegerField(help_text="order_num of its last message.")
    timestamp_range = TimestampRangeSerializer(
        source="*", help_text="The earliest and the latest timestamp of its messages."
    )
    skill_id = serializers.CharField()
    model = serializers.CharField(help_text="Empty where no chat model made it.")
    is_extractive = serializers.BooleanField(
        help_text="Made of the messages' own words, without a chat model."
    )
    sources_deleted = serializers.BooleanField(
        help_text="Its messages were deleted (DELETE_SUMMARIZED_MESSAGES)."
    )
    created_at = Moment()


class NewMessageSerializer(Strict):
    role = serializers.ChoiceField(Role.choices)
    content = Content(
        required=False,
        help_text=(
            "Kept byte for byte; it may be empty. Or parts in OpenAI's form; null only beside "
            "tool_calls."
        ),
    )
    timestamp = Moment(required=False, help_text="Default: now.")
    metadata = Object(
        required=False,
        help_text=f"Any JSON object, at most {MAX_METADATA_BYTES:,} bytes.",
    )
    sender = Text(required=False, allow_blank=True, max_length=MAX_ADDRESS_LENGTH)
    recipient = Text(required=False, allow_blank=True, max_length=MAX_ADDRESS_LENGTH)
    tool_calls = serializers.ListField(
        child=ToolCallSerializer(), required=False, allow_null=True, max_length=MAX_CALLS
    )
    tool_call_id = Text(required=False, allow_null=True, max_length=MAX_ID)
    name = Text(required=False, allow_null=True, max_length=MAX_NAME)

    def validate_metadata(self, metadata: dict[str, Any]) -> dict[str, Any]:
        if FORM in metadata:
            raise serializers.ValidationError(f"The name {FORM} is taken by the server.")
        if form_size(metadata) > MAX_METADATA_BYTES:
            raise serializers.ValidationError(f"It has more than {MAX_METADATA_BYTES:,} bytes.")
        return metadata

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "content" not in attrs and not attrs.get("tool_calls"):
            raise serializers.ValidationError({"content": "This field is required."}, "required")
        check_form(attrs)
        return attrs


class NewMessagesSerializer(Strict):
    messages = serializers.ListField(
        child=NewMessageSerializer(), min_length=1, max_length=MAX_MESSAGES
    )


class StoredMessagesSerializer(serializers.Serializer[Any]):
    messages = MessageSerializer(many=True)


class MessagesQuery(Strict):
    """``limit`` and ``cursor`` are those of all pages."""

    before = Moment(
        required=False, help_text="Only messages with an earlier timestamp, such as …T09:30:00Z."
    )


class ReceiptSerializer(serializers.Serializer[Any]):
    """The receipt of a forgetting."""

    receipt_id = serializers.UUIDField()
    kind = serializers.ChoiceField(ForgottenKind.choices)
    object_id = serializers.UUIDField()
    forgotten_at = Moment()
    swept = serializers.DictField(
        child=serializers.IntegerField(), help_text="How many rows of which table."
    )
    probe = serializers.CharField(help_text="absent: it was looked for and not found.")
    probe_details = serializers.DictField(
        child=serializers.DictField(),
        help_text=(
            "What the probe did, by where it looked: queries, rows examined, and the columns, "
            "indexes and statistics looked_at. Empty for older receipts."
        ),
    )


class RecalledField(serializers.DictField):
    """An entry of a replay record, with the API's field names.

    It has memory_id or message_id, and times with Z. A card is identified by its session_id.
    """

    def to_representation(self, value: dict[str, Any]) -> dict[str, Any]:
        recalled = {**value, "created_at": value["created_at"].replace("+00:00", "Z")}
        object_id = recalled.pop("id")
        if value["source"] in ("memory", "message"):
            recalled = {f"{value['source']}_id": object_id, **recalled}
        return dict(super().to_representation(recalled))


class PromptMessageSerializer(serializers.Serializer[Any]):
    """A message as chat APIs take it."""

    role = serializers.CharField(help_text="system, user, assistant or tool.")
    content = serializers.CharField(
        allow_null=True, help_text="null: the assistant only calls tools."
    )
    tool_calls = ToolCallSerializer(many=True, required=False)
    tool_call_id = serializers.CharField(required=False)
    name = serializers.CharField(required=False)


class BudgetLeftOutSerializer(serializers.Serializer[Any]):
    """What did not fit into a prompt. Empty where nothing was asked of a model."""

    messages_until = serializers.IntegerField(
        required=False,
        help_text=(
            "Messages up to this order_num are not in the prompt, except in the summary and the "
            "passage: they exceed the history's limit. 0: none."
        ),
    )
    messages_over_context = serializers.IntegerField(
        required=False,
        help_text="How many of the messages after them did not fit beside what was recalled.",
    )
    recalled = serializers.IntegerField(
        required=False, help_text="How many recalled texts did not fit."
    )
    messages_cut = serializers.IntegerField(
        required=False, help_text="How many messages are in the prompt shortened."
    )
    recalled_cut = serializers.IntegerField(
        required=False, help_text="How many recalled texts are in the prompt shortened."
    )
    profile_cut = serializers.IntegerField(
        required=False, help_text="How many texts of the assistant's profile are shortened."
    )
    recall_degraded = serializers.BooleanField(
        required=False, help_text="A part of memory could not be searched."
    )
    passage = serializers.CharField(
        required=False,
        help_text=(
            "The messages between the summary and the history, shortened, as the system text has "
            "them. Empty: there are none."
        ),
    )
    summarized_until = serializers.IntegerField(
        required=False,
        help_text="The summary covers messages up to this order_num. 0: there is none.",
    )
    refused_prompts = serializers.IntegerField(
        required=False, help_text="How many longer prompts the model refused before this one."
    )


class ChatSerializer(serializers.Serializer[Any]):
    whatsapp_chat = serializers.CharField()
    object_id = serializers.UUIDField(
        source="id", help_text="By which receipts and the audit log name it."
    )
    addresses = serializers.SerializerMethodField(help_text="By which it is known now.")
    is_group = serializers.BooleanField()
    client_name = serializers.CharField()
    client_phone = serializers.CharField(help_text="Empty where it isn't known.")
    language = serializers.CharField()
    memory_enabled = serializers.BooleanField(
        allow_null=True, help_text="Null: as ENABLE_MEMORY_SYSTEM says."
    )
    created_at = Moment()

    def get_addresses(self, chat: Chat) -> list[str]:
        """Return the addresses that the view's queryset prefetched with the chats."""
        current = {link.address for link in chat.addresses.all() if link.left_at is None}
        return sorted(current)
