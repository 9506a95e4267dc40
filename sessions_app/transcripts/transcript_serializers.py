"""Serialize transcripts, their problems and what was saved of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import Error, connection
from rest_framework import serializers

from memoryproject.foundation.rest_kit.serializers import Strict, Text, Truth
from sessions_app.conversations.facade import ConversationNotFoundError, chat_at
from sessions_app.legacy_import.facade import chat_for_address, chat_of_session
from sessions_app.models import Chat, ChatSession
from sessions_app.presentation.serializers import WhatsAppChat
from sessions_app.transcript_files.facade import BusyError
from sessions_app.transcripts.conversation_queries import Conversation

# Find the conversation that batches belong to.


# The chat of batches for which no chat was given.
DEFAULT_CHAT = "transcripts@c.us"


@dataclass(frozen=True)
class Target:
    """A session by its id, or else a chat by its address, which may be new."""

    whatsapp_chat: str = DEFAULT_CHAT
    session_id: UUID | None = None

    def find(self) -> Conversation | None:
        """Return the stored conversation; None if the chat is new.

        Raises ConversationNotFoundError for an unknown session.
        """
        if self.session_id is None:
            chat = chat_at(self.whatsapp_chat)
            return None if chat is None else Conversation(chat)
        session = ChatSession.objects.select_related("chat").filter(pk=self.session_id).first()
        if session is None:
            raise ConversationNotFoundError(self.session_id)
        return Conversation(session.chat, session)

    def lock(self, now: datetime) -> Conversation:
        """Return the conversation with the chat's row locked; create a new chat.

        Call it in a transaction.
        """
        if self.session_id is not None:
            owner = chat_of_session(self.session_id)
            if owner is None:
                raise ConversationNotFoundError(self.session_id)
            sessions = ChatSession.objects.select_for_update(no_key=True)
            return Conversation(owner, sessions.get(pk=self.session_id))
        found = chat_for_address(address=self.whatsapp_chat, at=now)
        return Conversation(Chat.objects.select_for_update(no_key=True).get(pk=found.pk))


@contextmanager
def alone_in(target: Target) -> Iterator[None]:
    """Hold the lock on saves into the target's chat. Raises BusyError.

    The database releases the lock when the process dies.
    """
    found = target.find()
    name = str(found.chat.pk) if found else target.whatsapp_chat
    digest = hashlib.sha256(f"transcripts\0{name}".encode()).digest()
    key = int.from_bytes(digest[:8], "big", signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [key])
        if not cursor.fetchone()[0]:
            raise BusyError(
                "Another chat_memory saves into the same chat: run it again when that is done."
            )
    try:
        yield
    finally:
        with suppress(Error), connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [key])


MAX_OVERLAP = 10**9


class TranscriptTextSerializer(Strict):
    text = Text(allow_blank=True, help_text="User: … and Assistant: … in turn, byte for byte.")
    whatsapp_chat = WhatsAppChat(
        required=False, allow_null=True, help_text=f"Default: {DEFAULT_CHAT}. Made where new."
    )
    append = Truth(default=False, help_text="true: what repeats the stored end was said anew.")
    overlap = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=0,
        max_value=MAX_OVERLAP,
        help_text="So many messages at the beginning are the stored end; not with append.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["append"] and attrs.get("overlap") is not None:
            raise serializers.ValidationError({"overlap": "Give overlap or append, not both."})
        return attrs


class TranscriptProblemSerializer(serializers.Serializer[Any]):
    line = serializers.IntegerField(
        allow_null=True, help_text="The line of the text, from 1; null: none in particular."
    )
    rule = serializers.IntegerField(allow_null=True, help_text="Which of the seven it breaks.")
    code = serializers.CharField(help_text="For programs, such as `consecutive`.")
    what = serializers.CharField(help_text="What is wrong.")
    mend = serializers.CharField(help_text="How to correct it.")


class TranscriptValidationSerializer(serializers.Serializer[Any]):
    valid = serializers.BooleanField(help_text="Whether a save would accept the text.")
    messages = serializers.IntegerField(help_text="How many the text holds.")
    problems = TranscriptProblemSerializer(
        many=True, help_text="The first 100 of them; empty where it is valid."
    )
    further = serializers.IntegerField(help_text="Problems beyond those that are told.")
    notes = serializers.ListField(
        child=serializers.CharField(), help_text="Allowed, and perhaps not meant."
    )


class SavedTranscriptSerializer(serializers.Serializer[Any]):
    whatsapp_chat = serializers.CharField(
        help_text="The chat that they were saved in, in the stored form of its id."
    )
    session_id = serializers.UUIDField(help_text="The session that they were added to.")
    messages = serializers.IntegerField(help_text="How many the text holds.")
    added = serializers.IntegerField(help_text="How many of them were new.")
    overlap = serializers.IntegerField(help_text="How many at its beginning were stored already.")
    notes = serializers.ListField(
        child=serializers.CharField(), help_text="Allowed, and perhaps not meant; empty: none."
    )


class LeftOutMessageSerializer(serializers.Serializer[Any]):
    session_id = serializers.UUIDField(help_text="The session of the message.")
    order_num = serializers.IntegerField(help_text="Its place in the session, from 1.")
    message_id = serializers.UUIDField(help_text="The id of the message.")
    role = serializers.CharField(help_text="Such as user or system.")
    reason = serializers.CharField(
        help_text="For programs: unanswered, no_question, blank, other_role or too_large."
    )
    what = serializers.CharField(help_text="The reason in words.")


class TranscriptSerializer(serializers.Serializer[Any]):
    text = serializers.CharField(help_text="User: … and Assistant: … in turn, byte for byte.")
    messages = serializers.IntegerField(help_text="How many the text holds.")
    left_out = LeftOutMessageSerializer(
        many=True, help_text="The messages that a transcript can't represent; empty: none."
    )
