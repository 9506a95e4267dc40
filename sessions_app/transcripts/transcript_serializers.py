"""Transcripts, their problems and what was saved of them as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from memoryproject.foundation.rest_kit import fields
from memoryproject.foundation.rest_kit.serializers import Strict, Text, Truth
from sessions_app.presentation.serializers import WhatsAppChat
from sessions_app.transcripts.conversation_queries import DEFAULT_CHAT

MAX_OVERLAP = 10**9


class TranscriptTextSerializer(Strict):
    text = Text(allow_blank=True, help_text="User: … and Assistant: … in turn, byte for byte.")
    whatsapp_chat = WhatsAppChat(
        required=False, allow_null=True, help_text=f"Default: {DEFAULT_CHAT}. Made where new."
    )
    append = Truth(default=False, help_text="true: what repeats the stored end was said anew.")
    overlap = fields.number(
        "So many messages at the beginning are the stored end; not with append.",
        required=False,
        allow_null=True,
        min_value=0,
        max_value=MAX_OVERLAP,
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["append"] and attrs.get("overlap") is not None:
            raise serializers.ValidationError({"overlap": "Give overlap or append, not both."})
        return attrs


class TranscriptProblemSerializer(serializers.Serializer[Any]):
    line = fields.number("The line of the text, from 1; null: none in particular.", allow_null=True)
    rule = fields.number("Which of the seven it breaks.", allow_null=True)
    code = fields.text("For programs, such as `consecutive`.")
    what = fields.text("What is wrong.")
    mend = fields.text("How to correct it.")


class TranscriptValidationSerializer(serializers.Serializer[Any]):
    valid = fields.truth("Whether a save would accept the text.")
    messages = fields.number("How many the text holds.")
    problems = TranscriptProblemSerializer(
        many=True, help_text="The first 100 of them; empty where it is valid."
    )
    further = fields.number("Problems beyond those that are told.")
    notes = fields.texts("Allowed, and perhaps not meant.")


class SavedTranscriptSerializer(serializers.Serializer[Any]):
    whatsapp_chat = fields.text("The chat that they were saved in, in the stored form of its id.")
    session_id = fields.uuid("The session that they were added to.")
    messages = fields.number("How many the text holds.")
    added = fields.number("How many of them were new.")
    overlap = fields.number("How many at its beginning were stored already.")
    notes = fields.texts("Allowed, and perhaps not meant; empty: none.")


class LeftOutMessageSerializer(serializers.Serializer[Any]):
    session_id = fields.uuid("The session of the message.")
    order_num = fields.number("Its place in the session, from 1.")
    message_id = fields.uuid("The id of the message.")
    role = fields.text("Such as user or system.")
    reason = fields.text("For programs: unanswered, no_question, blank, other_role or too_large.")
    what = fields.text("The reason in words.")


class TranscriptSerializer(serializers.Serializer[Any]):
    text = fields.text("User: … and Assistant: … in turn, byte for byte.")
    messages = fields.number("How many the text holds.")
    left_out = LeftOutMessageSerializer(
        many=True, help_text="The messages that a transcript can't represent; empty: none."
    )
