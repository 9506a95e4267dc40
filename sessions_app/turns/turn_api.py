"""Serializers of replays and of prompt contexts."""

from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from memoryproject.foundation.rest_kit import errors, idempotency, views
from memoryproject.foundation.rest_kit.operations import conflicting, described
from memoryproject.foundation.rest_kit.serializers import Choice, Moment, Strict, Text, Truth
from sessions_app.inbox import move_markers, notes
from sessions_app.models import GODFATHER, Outcome, Turn, TurnReplay, TurnState
from sessions_app.models.chats import reading_role
from sessions_app.models.review import MAX_NOTE_LENGTH
from sessions_app.presentation import access, message_forms
from sessions_app.turns import answer_review, prompt_context
from sessions_app.turns.dependencies import build_turn_dependencies

# More than any model reads.
MAX_TOKENS_GIVEN = 10_000_000
LIMITS = {"total": "max_tokens", "memories": "max_memories", "history": "max_history"}
LIMIT = {"type": "integer", "minimum": 1, "maximum": MAX_TOKENS_GIVEN}


@extend_schema_field(
    {
        "oneOf": [
            LIMIT,
            {
                "type": "object",
                "properties": {**dict.fromkeys(LIMITS, {**LIMIT, "minimum": 0}), "total": LIMIT},
                "additionalProperties": False,
            },
        ]
    }
)
class MaxTokens(serializers.Field[Any, Any, Any, Any]):
    """A number of tokens for all, or numbers by part, as which both are read."""

    default_error_messages = {
        "form": (
            f"It must be a whole number from 1 to {MAX_TOKENS_GIVEN:,}, or an object of such "
            "numbers under total, memories and history, of which the last two may be 0."
        )
    }

    def to_internal_value(self, data: Any) -> dict[str, int]:
        limits = data if isinstance(data, dict) else {"total": data}
        for name, limit in limits.items():
            is_number = isinstance(limit, int) and not isinstance(limit, bool)
            least = int(name == "total")
            if name not in LIMITS or not is_number or not least <= limit <= MAX_TOKENS_GIVEN:
                self.fail("form")
        return dict(limits)

    def to_representation(self, value: Any) -> Any:
        return value


class ContextQuestionSerializer(Strict):
    query = Text(required=False, allow_blank=True, max_length=65_536)
    max_tokens = MaxTokens(required=False)
    system = Text(required=False, allow_blank=True, max_length=65_536)
    persona = Truth(default=True)
    roles = Choice(["openai", "strict"], default="openai")


class ContextSerializer(serializers.Serializer[Any]):
    messages = message_forms.PromptMessageSerializer(many=True)
    memories = serializers.ListField(child=message_forms.RecalledField())
    total_tokens = serializers.IntegerField()
    left_out = message_forms.BudgetLeftOutSerializer()


class TurnSerializer(serializers.Serializer[Any]):
    """The replay of one answer; serializes a TurnReplay with its turn and the turn's chat."""

    turn_id = serializers.UUIDField(source="turn.turn_id")
    whatsapp_chat = serializers.CharField(source="turn.chat.whatsapp_chat")
    session_id = serializers.UUIDField(source="turn.session_id", allow_null=True)
    message_id = serializers.UUIDField(source="turn.message_id", allow_null=True)
    reply_message_id = serializers.UUIDField(source="turn.reply_id", allow_null=True)
    summary_message_id = serializers.UUIDField(source="summary_id", allow_null=True)
    state = serializers.ChoiceField(TurnState.choices, source="turn.state")
    user_role = serializers.CharField(source="turn.user_role")
    prompt = message_forms.PromptMessageSerializer(many=True)
    recalled = serializers.ListField(child=message_forms.RecalledField())
    left_out = message_forms.BudgetLeftOutSerializer()
    model = serializers.CharField()
    prompt_tokens = serializers.IntegerField(allow_null=True)
    completion_tokens = serializers.IntegerField(allow_null=True)
    timings = serializers.DictField(child=serializers.IntegerField())
    outcome = serializers.ChoiceField(Outcome.choices, source="turn.ended_as", allow_null=True)
    error_code = serializers.CharField(source="turn.error_code", allow_null=True)
    error = serializers.CharField(source="turn.error")
    attempts = serializers.IntegerField(source="turn.attempts")
    asked_at = Moment(source="turn.asked_at")
    created_at = Moment(source="turn.created_at")
    finished_at = Moment(source="turn.finished_at", allow_null=True)


# REST view of the prompt that a model would receive.


class ContextView(views.ApiView):
    """The prompt of a session.

    It is POST only because a question may be long: nothing is stored.
    """

    scopes = {"POST": "read"}
    kinds = {"POST": "read"}
    needs_body = False
    raises = {prompt_context.BudgetTooSmallError: errors.invalid}

    @described(
        operation_id="sessions_context",
        request=ContextQuestionSerializer,
        responses={200: ContextSerializer},
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        """Return what a model would be sent, within `max_tokens`.

        That is the system text with what is remembered, the summary and the history, as the
        assistant would get it; or, with `persona` false and your own `system`, for an assistant of
        your own.
        """
        body = self.body(ContextQuestionSerializer)
        found = access.session_in_chat_within(self.caller, session_id)
        context = prompt_context.context_make(
            found=found,
            dependencies=build_turn_dependencies(),
            query=body.get("query"),
            form=prompt_context.ContextForm(
                **{LIMITS[name]: limit for name, limit in body.get("max_tokens", {}).items()},
                own_system=body.get("system", ""),
                persona=body["persona"],
                strict=body["roles"] == "strict",
            ),
            # A bound token sees no memories of other chats.
            as_client=self.caller.is_bound,
            now=timezone.now(),
        )
        chat_id = found.session.chat_id
        self.record_read(object_type="session", object_id=session_id, chat_id=chat_id)
        return Response(ContextSerializer(context).data)


# REST view of replays.


class TurnView(views.ApiView):
    serializer_class = TurnSerializer
    scopes = {"GET": "read"}
    staff_rights = {"GET": ["sessions_app.view_turn", "sessions_app.view_message"]}

    @described(operation_id="turns_get", responses=TurnSerializer)
    def get(self, request: Request, turn_id: UUID) -> Response:
        """Return the replay of one answer.

        It holds what the model was sent, what was recalled with its scores, and what was left out.
        """
        turns = Turn.objects.select_related("chat", "replay").filter(self.caller.reach())
        turn = self.one_of(turns.filter(turn_id=turn_id), f"turn {turn_id}")
        if self.caller.is_bound and reading_role(turn.user_role, turn.context) == GODFATHER:
            raise PermissionDenied(
                "The token is bound to chats, and this answer was made with the memories of all."
            )
        self.record_read(object_type="turn", object_id=turn.turn_id, chat_id=turn.chat_id)
        return Response(TurnSerializer(TurnReplay.of(turn)).data)


# Feedback of programs on an answer, which staff see beside their own ratings.


class FeedbackBody(Strict):
    rating = Choice(["good", "bad"])
    comment = Text(required=False, allow_blank=True, max_length=MAX_NOTE_LENGTH)


class FeedbackSerializer(serializers.Serializer[Any]):
    turn_id = serializers.UUIDField()
    rating = serializers.ChoiceField(["good", "bad"])
    comment = serializers.CharField()
    rated_at = Moment()


class FeedbackView(views.ApiView):
    scopes = {"POST": "write"}
    staff_rights = {"POST": ["sessions_app.view_turn", "sessions_app.review_chat"]}
    answers = {"POST": [conflicting("There is no answer yet.", "The turn has no answer yet.")]}
    raises = {move_markers.ReviewError: errors.invalid}

    @described(operation_id="turns_feedback", request=FeedbackBody, responses=FeedbackSerializer)
    @idempotency.idempotent(atomic=True)
    def post(self, request: Request, turn_id: UUID) -> Response:
        """Store the caller's rating of the answer, in place of an earlier one."""
        body = self.body(FeedbackBody)
        turns = Turn.objects.filter(self.caller.reach(), turn_id=turn_id)
        turn = self.one_of(turns, f"turn {turn_id}")
        if turn.state in (TurnState.PENDING, TurnState.RUNNING):
            raise errors.Conflict("The turn has no answer yet: rate it when it has ended.")
        who: dict[str, Any] = {
            "user": request.user if self.caller.is_staff else None,
            "actor": self.caller.actor,
        }
        with transaction.atomic():
            if comment := body.get("comment", "").strip():
                message_id = turn.reply_id or turn.message_id
                notes.note_write(chat_id=turn.chat_id, message_id=message_id, text=comment, **who)
            is_good = body["rating"] == "good"
            rating = answer_review.answer_rate(turn_id=turn.pk, is_good=is_good, reason="", **who)
        stored = {"turn_id": turn_id, "rating": body["rating"], "comment": comment}
        return Response(FeedbackSerializer({**stored, "rated_at": rating.rated_at}).data)
