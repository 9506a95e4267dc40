"""REST view of replays."""

from __future__ import annotations

from uuid import UUID

from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from memoryproject.foundation.rest_kit.operations import described, response_example
from memoryproject.foundation.rest_kit.views import ApiView
from sessions_app.models import Turn, TurnReplay
from sessions_app.models.roles import GODFATHER, reading_role
from sessions_app.presentation import examples
from sessions_app.turns.api.turn_serializers import TurnSerializer


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
