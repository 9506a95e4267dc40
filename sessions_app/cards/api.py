"""The memory card of a session."""

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cards_app.memory_card import Card
from cards_app.models import MemoryCard
from cards_app.rules.outcome import ACTORS
from memoryproject.foundation.rest_kit import fields
from memoryproject.foundation.rest_kit.authentication import require_reading
from memoryproject.foundation.rest_kit.bodies import Json
from memoryproject.foundation.rest_kit.errors import conflict, not_found
from memoryproject.foundation.rest_kit.idempotency import idempotent
from memoryproject.foundation.rest_kit.operations import conflicting, described
from memoryproject.foundation.rest_kit.serializers import Moment, Nothing
from memoryproject.foundation.rest_kit.views import ApiView
from sessions_app.cards.dependencies import card_maker
from sessions_app.cards.make_cards import SessionBusyError, SessionNotFoundError
from sessions_app.models import ChatSession
from sessions_app.presentation.access import session_within

BUSY = conflicting("The session changes all the time.", "The session is being written.")


class CardYamlSerializer(serializers.Serializer[Any]):
    """A card as YAML; a comment above it names its session and the time it was made."""

    title = serializers.CharField()
    summary_bullets = fields.texts()
    decisions = fields.texts()
    todos = fields.texts()
    entities = fields.texts()
    keywords = fields.texts()
    notable_quotes = fields.texts()


class OutcomeSerializer(serializers.Serializer[Any]):
    """How the session ended."""

    settled = serializers.CharField()
    open = fields.texts()
    acts = serializers.ChoiceField(ACTORS)


class CardSerializer(CardYamlSerializer):
    """The content of a session, made by rules alone; known forms of personal data are redacted."""

    session_id = serializers.UUIDField()
    algorithm_version = serializers.CharField()
    extracted_at = Moment()
    outcome = OutcomeSerializer(allow_null=True)
    language_covered = serializers.BooleanField()


def answers_of(status: int) -> dict[tuple[int, str], type[serializers.Serializer[Any]]]:
    return {
        (status, "application/json"): CardSerializer,
        (status, "application/yaml"): CardYamlSerializer,
    }


class CardData(dict[str, Any]):
    """A card's data as JSON, with the card as YAML."""

    def __init__(self, card: Card) -> None:
        super().__init__(card.to_dict())
        self.yaml = card.to_yaml()


class CardYaml(Json):
    media_type = "application/yaml"
    format = "yaml"

    def render(self, data: Any, *args: Any) -> bytes:
        if isinstance(data, CardData):
            return data.yaml.encode()
        return bytes(super().render(data, *args))


class CardView(ApiView):
    scopes = {"GET": "read", "POST": "write"}
    staff_rights = {
        "GET": ["cards_app.view_memorycard"],
        "POST": ["cards_app.view_memorycard", "sessions_app.review_chat"],
    }
    answers = {"GET": [BUSY], "POST": [BUSY]}
    raises = {SessionNotFoundError: not_found, SessionBusyError: conflict}
    renderer_classes = [Json, CardYaml]

    @described(operation_id="sessions_card", responses=answers_of(200))
    def get(self, request: Request, session_id: UUID) -> Response:
        """Return the card as it was last made: at the session's end, by POST, or now.

        A session without a card gets its first one. YAML by `?format=yaml` or
        `Accept: application/yaml`.
        """
        session = session_within(self.caller, session_id)
        stored = MemoryCard.objects.defer("terms").filter(pk=session.pk).first()
        return self._answer(session, (stored or card_maker()(session_id=session.pk)).card)

    @described(
        operation_id="sessions_card_make",
        request=None,
        responses={**answers_of(201), **answers_of(200)},
    )
    @idempotent(atomic=False)
    def post(self, request: Request, session_id: UUID) -> Response:
        """Make the card.

        201 for the session's first card; 200 for one that is still current, or was made again
        because the session went on. 409 for a session that changes all the time.
        """
        self.body(Nothing)
        session = session_within(self.caller, session_id)
        require_reading(self.caller)
        is_there = MemoryCard.objects.filter(pk=session.pk).exists()
        stored = card_maker()(session_id=session.pk)
        return self._answer(session, stored.card, status=200 if is_there else 201)

    def _answer(self, session: ChatSession, card: Card, *, status: int = 200) -> Response:
        self.record_read(object_type="card", object_id=session.pk, chat_id=session.chat_id)
        return Response(CardData(card), status=status)
