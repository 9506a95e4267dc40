"""REST view of the prompt that a model would receive."""

from __future__ import annotations

from uuid import UUID

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from memoryproject.foundation.rest_kit.errors import invalid
from memoryproject.foundation.rest_kit.operations import (
    described,
    request_example,
    response_example,
)
from memoryproject.foundation.rest_kit.views import ApiView
from sessions_app.presentation import examples
from sessions_app.presentation.lookup import session_in_chat_within
from sessions_app.turns.api.turn_serializers import ContextQuestionSerializer, ContextSerializer
from sessions_app.turns.dependencies import build_turn_dependencies
from sessions_app.turns.prompt_context import BudgetTooSmallError, context_make


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
