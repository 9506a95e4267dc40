"""Serializers of a whole turn by the API."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from memoryproject.foundation.rest_kit import fields
from memoryproject.foundation.rest_kit.serializers import Strict, Text, Truth
from sessions_app.inbound.synchronous_chat import Talk
from sessions_app.models import Turn, TurnReplay
from sessions_app.models.turns import Outcome
from sessions_app.presentation.message_forms import ERROR_CODE, OUTCOME, RecalledField
from sessions_app.presentation.serializers import WhatsAppChat


class AskSerializer(Strict):
    """A message to the assistant in a chat."""

    whatsapp_chat = WhatsAppChat(
        required=False, help_text="Required, except for a token that is bound to one chat."
    )
    # The limit bounds the work that one call causes; WhatsApp's own limit is lower.
    content = Text(
        allow_blank=True,
        max_length=65_536,
        help_text="What the person says, kept byte for byte; commands such as /remember work.",
    )
    stream = Truth(default=False, help_text="Answer with server-sent events instead.")


class ChatAnswerSerializer(serializers.Serializer[Any]):
    """One whole turn. Where memory is off the ids are null."""

    reply = fields.text("The whole text of the answer.")
    session_id = fields.uuid(
        "The session that holds the message and the answer; null where memory is off.",
        allow_null=True,
    )
    message_id = fields.uuid(
        "The id of the stored message; null where memory is off.", allow_null=True
    )
    reply_message_id = fields.uuid(
        "The id of the stored answer; null where memory is off.", allow_null=True
    )
    turn_id = fields.uuid(
        "Names the replay: `turns/{turn_id}/`; null where memory is off.", allow_null=True
    )
    outcome = serializers.ChoiceField(Outcome.choices, help_text=OUTCOME)
    error_code = fields.text(ERROR_CODE, allow_null=True)
    memories = serializers.ListField(
        child=RecalledField(), help_text="What was recalled, with its scores."
    )


def answer_of(talk: Talk) -> dict[str, Any]:
    """Return a turn's answer in the form of ChatAnswerSerializer."""
    turn = talk.turn
    answer = {
        "reply": talk.reply,
        **accepted_of(turn),
        "reply_message_id": turn.reply_id,
        "outcome": turn.outcome,
        "error_code": turn.error_code,
        "memories": TurnReplay.of(turn).recalled,
    }
    return dict(ChatAnswerSerializer(answer).data)


def accepted_of(turn: Turn) -> dict[str, Any]:
    """Return the ids that are known as soon as the message is stored.

    Where memory is off they are None.
    """
    remembered = turn.session_id is not None
    return {
        "session_id": turn.session_id,
        "message_id": turn.message_id,
        "turn_id": turn.turn_id if remembered else None,
    }
