"""Search messages of all sessions and chats that the caller may see."""

from typing import Any

from django.db.models import Q
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memoryproject.foundation.rest_kit.operations import described
from memoryproject.foundation.rest_kit.serializers import (
    Choice,
    Moment,
    Number,
    Strict,
    Text,
    Whole,
)
from memoryproject.foundation.rest_kit.views import ApiView
from memoryproject.foundation.rest_kit.where import Condition, where
from sessions_app.embedding.facade import embedder
from sessions_app.models import Message
from sessions_app.models.messages import Role
from sessions_app.presentation import access
from sessions_app.presentation.serializers import MessageSerializer, WhatsAppChat
from sessions_app.recall.facade import BOTH, NEAREST_SIMILARITY, WAYS, MessageHit, messages_found

MAX_QUERY_LENGTH = 8_192
DEFAULT_LIMIT, MAX_LIMIT = 20, 100


class SearchSerializer(Strict):
    query = Text(max_length=MAX_QUERY_LENGTH)
    by = Choice(WAYS, default=BOTH)
    whatsapp_chat = WhatsAppChat(required=False)
    session_id = serializers.UUIDField(required=False)
    role = Choice(Role.choices, required=False)
    since = Moment(required=False)
    until = Moment(required=False)
    where = Condition()
    min_similarity = Number(default=NEAREST_SIMILARITY, min_value=0, max_value=1)
    limit = Whole(default=DEFAULT_LIMIT, min_value=1, max_value=MAX_LIMIT)
    offset = Whole(default=0, min_value=0)


class FoundMessageSerializer(MessageSerializer):
    whatsapp_chat = serializers.CharField()
    score = serializers.FloatField()
    similarity = serializers.FloatField(allow_null=True)

    def to_representation(self, instance: tuple[Message, MessageHit]) -> dict[str, Any]:
        message, hit = instance
        similarity = None if hit.similarity is None else round(hit.similarity, 4)
        own = {"whatsapp_chat": message.chat.whatsapp_chat, "score": hit.score}
        return {**super().to_representation(message), **own, "similarity": similarity}


class FoundMessagesSerializer(serializers.Serializer[Any]):
    results = FoundMessageSerializer(many=True)
    next_offset = serializers.IntegerField(allow_null=True)
    degraded = serializers.BooleanField()


class MessageSearchView(ApiView):
    scopes = {"POST": "read"}
    staff_rights = {"POST": ["sessions_app.view_chat", "sessions_app.view_message"]}
    kinds = {"POST": "read"}

    @described(
        operation_id="messages_search", request=SearchSerializer, responses=FoundMessagesSerializer
    )
    def post(self, request: Request) -> Response:
        """Return what people and the assistant said that fits, the best first.

        A bound token searches its chats. Commands and system texts are left out, as in a recall.
        """
        body = self.body(SearchSerializer)
        access.require_longterm()
        hits, degraded = messages_found(
            query=body["query"],
            within=self._within(body),
            embedder=embedder(),
            by=body["by"],
            min_similarity=body["min_similarity"],
        )
        end = body["offset"] + body["limit"]
        page = hits[body["offset"] : end]
        rows = Message.objects.select_related("chat").defer("terms")
        found = rows.in_bulk([hit.id for hit in page])
        for chat_id in {message.chat_id for message in found.values()}:
            self.record_read(object_type="chat", object_id=chat_id, chat_id=chat_id)
        document = {
            "results": [(found[hit.id], hit) for hit in page if hit.id in found],
            "next_offset": end if end < len(hits) else None,
            "degraded": degraded,
        }
        return Response(FoundMessagesSerializer(document).data)

    def _within(self, body: dict[str, Any]) -> Q:
        """Return the messages that are searched. Raises NotFound for what is out of reach."""
        found = self.caller.reach() & where(body["where"], access.MESSAGE_FIELDS)
        if "whatsapp_chat" in body:
            chat = access.chat_in_reach(self.caller, body["whatsapp_chat"])
            found &= Q(chat_id=chat and chat.pk)
        if "session_id" in body:
            found &= Q(session_id=access.session_within(self.caller, body["session_id"]).pk)
        named = {"role": "role", "since": "timestamp__gte", "until": "timestamp__lt"}
        given = {lookup: body[name] for name, lookup in named.items() if name in body}
        return found & Q(**given)
