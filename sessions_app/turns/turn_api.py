"""Serializers of replays and of prompt contexts."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.utils import timezone
from rest_framework import serializers
from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from memoryproject.foundation.rest_kit.errors import invalid
from memoryproject.foundation.rest_kit.operations import (
    described,
    request_example,
    response_example,
)
from memoryproject.foundation.rest_kit.serializers import Moment, Strict, Text, Whole
from memoryproject.foundation.rest_kit.views import ApiView
from sessions_app.models import Turn, TurnReplay
from sessions_app.models.chats import GODFATHER, reading_role
from sessions_app.models.turns import Outcome, TurnState
from sessions_app.presentation import examples
from sessions_app.presentation.access import session_in_chat_within
from sessions_app.presentation.message_forms import (
    ERROR_CODE,
    OUTCOME,
    BudgetLeftOutSerializer,
    PromptMessageSerializer,
    RecalledField,
)
from sessions_app.turns.dependencies import build_turn_dependencies
from sessions_app.turns.prompt_context import BudgetTooSmallError, context_make


class ContextQuestionSerializer(Strict):
    query = Text(
        required=False,
        allow_blank=True,
        max_length=65_536,
        help_text="What is said now. Default: the session's last message.",
    )
    max_tokens = Whole(
        required=False,
        min_value=1,
        max_value=10_000_000,
        help_text="The messages have at most so many tokens together, by the server's estimate.",
    )


class ContextSerializer(serializers.Serializer[Any]):
    messages = PromptMessageSerializer(many=True, help_text="For a chat model, in this order.")
    memories = serializers.ListField(
        child=RecalledField(),
        help_text="What was recalled, with its scores; in_prompt: it is in the messages.",
    )
    total_tokens = serializers.IntegerField(help_text="Of the messages, exactly.")
    left_out = BudgetLeftOutSerializer(help_text="What the budget left out.")


class TurnSerializer(serializers.Serializer[Any]):
    """The replay of one answer; serializes a TurnReplay with its turn and the turn's chat."""

    turn_id = serializers.UUIDField(
        source="turn.turn_id", help_text="Names the replay in addresses: `turns/{turn_id}/`."
    )
    whatsapp_chat = serializers.CharField(
        source="turn.chat.whatsapp_chat", help_text="The chat, in the stored form of its id."
    )
    session_id = serializers.UUIDField(
        source="turn.session_id",
        allow_null=True,
        help_text="The session of the message; null where memory is off.",
    )
    message_id = serializers.UUIDField(
        source="turn.message_id",
        allow_null=True,
        help_text="The message that was answered; null where it isn't stored, or was deleted.",
    )
    reply_message_id = serializers.UUIDField(
        source="turn.reply_id",
        allow_null=True,
        help_text="The message that holds the answer; null where none is stored.",
    )
    summary_message_id = serializers.UUIDField(
        source="summary_id",
        allow_null=True,
        help_text="The message whose summary is in the prompt; null: none.",
    )
    state = serializers.ChoiceField(TurnState.choices, source="turn.state")
    user_role = serializers.CharField(
        source="turn.user_role", help_text="For whom the answer was made: client or godfather."
    )
    prompt = PromptMessageSerializer(many=True, help_text="What the model was sent.")
    recalled = serializers.ListField(
        child=RecalledField(), help_text="Memories and messages, with their scores."
    )
    left_out = BudgetLeftOutSerializer(help_text="What the token budget left out.")
    model = serializers.CharField(help_text="The chat model that answered; empty where none did.")
    prompt_tokens = serializers.IntegerField(
        allow_null=True, help_text="How many the provider counted in the prompt; null: not known."
    )
    completion_tokens = serializers.IntegerField(
        allow_null=True, help_text="How many the provider counted in the answer; null: not known."
    )
    timings = serializers.DictField(child=serializers.IntegerField(), help_text="Milliseconds.")
    outcome = serializers.ChoiceField(
        Outcome.choices,
        source="turn.ended_as",
        allow_null=True,
        help_text=f"{OUTCOME} null: it waits, or the message has no answer of its own.",
    )
    error_code = serializers.CharField(
        source="turn.error_code", allow_null=True, help_text=ERROR_CODE
    )
    error = serializers.CharField(
        source="turn.error", help_text="Why there is no answer, or it wasn't sent; empty: no error."
    )
    attempts = serializers.IntegerField(
        source="turn.attempts", help_text="How many times a worker began with it."
    )
    asked_at = Moment(source="turn.asked_at", help_text="When the message was written.")
    created_at = Moment(source="turn.created_at", help_text="When the message arrived.")
    finished_at = Moment(
        source="turn.finished_at",
        allow_null=True,
        help_text="When the turn ended; null: it hasn't.",
    )


# REST view of the prompt that a model would receive.


class ContextView(ApiView):
    """The prompt of a session.

    It is POST only because a question may be long: nothing is stored.
    """

    scopes = {"POST": "read"}
    kinds = {"POST": "read"}
    needs_body = False
    raises = {BudgetTooSmallError: invalid}

    @described(
        operation_id="sessions_context",
        summary="What the model would be sent, for a model of your own",
        request=ContextQuestionSerializer,
        responses={200: ContextSerializer},
        examples=[
            request_example("A question", {"query": "When does TestCorp pay?", "max_tokens": 2000}),
            response_example("The prompt", examples.CONTEXT),
        ],
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        """Return what a model would be sent, within `max_tokens`.

        That is the system text with what is remembered, the summary and the history, as the
        assistant would get it.
        """
        body = self.body(ContextQuestionSerializer)
        found = session_in_chat_within(self.caller, session_id)
        context = context_make(
            found=found,
            dependencies=build_turn_dependencies(),
            query=body.get("query"),
            max_tokens=body.get("max_tokens"),
            # A bound token sees no memories of other chats.
            as_client=self.caller.is_bound,
            now=timezone.now(),
        )
        chat_id = found.session.chat_id
        self.record_read(object_type="session", object_id=session_id, chat_id=chat_id)
        return Response(ContextSerializer(context).data)


# REST view of replays.


class TurnView(ApiView):
    scopes = {"GET": "read"}
    staff_rights = {"GET": ["sessions_app.view_turn", "sessions_app.view_message"]}

    @described(
        operation_id="turns_get",
        summary="How one answer came about",
        responses=TurnSerializer,
        examples=[response_example("A replay", examples.TURN)],
    )
    def get(self, request: Request, turn_id: UUID) -> Response:
        """Return the replay of one answer.

        It holds what the model was sent, what was recalled with its scores, and what was left out.
        """
        turns = Turn.objects.select_related("chat", "replay").filter(self.caller.reach())
        turn = turns.filter(turn_id=turn_id).first()
        if turn is None:
            raise NotFound(f"There is no turn {turn_id}.")
        if self.caller.is_bound and reading_role(turn.user_role, turn.context) == GODFATHER:
            raise PermissionDenied(
                "The token is bound to chats, and this answer was made with the memories of all."
            )
        self.record_read(object_type="turn", object_id=turn.turn_id, chat_id=turn.chat_id)
        return Response(TurnSerializer(TurnReplay.of(turn)).data)
