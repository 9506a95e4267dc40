"""Recall over HTTP."""

from typing import Any, TypeVar

from django.conf import settings
from django.db.models import Q
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memories_app.facts.validation import MAX_LABEL
from memories_app.visibility import memories_visible
from memoryproject.foundation.rest_kit import fields, serializers as kit
from memoryproject.foundation.rest_kit.authentication import Caller
from memoryproject.foundation.rest_kit.errors import refuse
from memoryproject.foundation.rest_kit.operations import described
from memoryproject.foundation.rest_kit.views import ApiView
from memoryproject.foundation.rest_kit.where import Condition
from sessions_app.conversations.message_store import own_metadata
from sessions_app.embedding.facade import embedder
from sessions_app.history.dependencies import build_chat_memory
from sessions_app.memories.api.filters import recall_filters
from sessions_app.memories.api.serializers import EqualMetadata, PlacePart, tags_field
from sessions_app.models import Chat, Message
from sessions_app.models.chats import user_role
from sessions_app.presentation.access import chat_in_reach, own_chat, require_longterm
from sessions_app.presentation.serializers import WhatsAppChat
from sessions_app.recall.facade import MEMORIES, MESSAGES, Hit, Viewer, memories_shown, recall

MAX_QUERY_LENGTH = 8_192
MAX_RESULTS = 100
STAFF = "staff"


class RecallSerializer(kit.Strict):
    query = kit.Text(max_length=MAX_QUERY_LENGTH)
    top_k = kit.Whole(required=False, min_value=1, max_value=MAX_RESULTS)
    min_similarity = kit.Number(required=False, min_value=0, max_value=1)
    whatsapp_chat = WhatsAppChat(required=False, allow_null=True)
    as_of = kit.StoredMoment(required=False)
    type = kit.Text(required=False, max_length=MAX_LABEL)
    tags = tags_field(required=False)
    namespace = PlacePart(required=False)
    metadata = EqualMetadata(required=False)
    where = Condition()
    sources = kit.Items(child=kit.Choice([MEMORIES, MESSAGES]), required=False, min_length=1)


F = TypeVar("F", bound=serializers.Field[Any, Any, Any, Any])


nullable: dict[str, Any] = {"required": False, "allow_null": True}


class RecalledSerializer(serializers.Serializer[Any]):
    """A memory, or a message of the chat."""

    source = serializers.ChoiceField(["memory", "message"])  # type: ignore[assignment]
    memory_id = serializers.UUIDField(required=False)
    message_id = serializers.UUIDField(required=False)
    session_id = serializers.UUIDField(required=False)
    order_num = serializers.IntegerField(required=False)
    role = serializers.CharField(required=False)
    content = serializers.CharField()
    score = serializers.FloatField()
    similarity = serializers.FloatField(allow_null=True)
    created_at = kit.Moment()
    type = serializers.CharField(required=False)
    category = serializers.CharField(required=False)
    tags = fields.texts(required=False)
    visibility = serializers.CharField(required=False)
    whatsapp_chat = serializers.CharField(**nullable)
    client_name = serializers.CharField(**nullable)
    said_by = serializers.CharField(**nullable)
    said_at = kit.Moment(required=False)
    valid_from = kit.Moment(**nullable)
    valid_until = kit.Moment(**nullable)
    sender_name = serializers.CharField(required=False)
    namespace = serializers.CharField(**nullable)
    key = serializers.CharField(**nullable)
    value = fields.json_object(**nullable)
    metadata = fields.json_object()
    before = serializers.DictField(**nullable)
    after = serializers.DictField(**nullable)

    def to_representation(self, instance: dict[str, Any]) -> dict[str, Any]:
        """Leave out what memories have and messages don't, or the other way round."""
        shown = super().to_representation(instance)
        return {name: value for name, value in shown.items() if name in instance}


class RecallAnswerSerializer(serializers.Serializer[Any]):
    results = RecalledSerializer(many=True)
    degraded = serializers.BooleanField()


class RecallView(ApiView):
    scopes = {"POST": "read"}
    kinds = {"POST": "read"}

    @described(
        operation_id="memories_recall", request=RecallSerializer, responses=RecallAnswerSerializer
    )
    def post(self, request: Request) -> Response:
        body = self.body(RecallSerializer)
        require_longterm()
        name = body.get("whatsapp_chat") or own_chat(self.caller)
        chat = chat_in_reach(self.caller, name) if name else None
        wheres = recall_filters(body, _sources(body, has_chat=bool(name)), self.caller)
        viewer = _viewer(name, chat)
        found = recall(
            query=body["query"],
            viewer=viewer,
            embedder=embedder(),
            top_k=body.get("top_k", settings.RECALL_TOP_K),
            min_similarity=body.get("min_similarity", settings.RECALL_MIN_SIMILARITY),
            sources=list(wheres),
            as_of=body.get("as_of"),
            repeats="namespace" in body,
            memories_where=wheres.get(MEMORIES),
            messages_where=wheres.get(MESSAGES),
        )
        if chat is not None and any(hit.source == "message" for hit in found.hits):
            self.record_read(object_type="chat", object_id=chat.pk, chat_id=chat.pk)
        results = _recalled(found.hits, self.caller)
        degraded = found.degraded or _vectors_wait(viewer, wheres.get(MEMORIES))
        answer = {"results": results, "degraded": degraded}
        return Response(RecallAnswerSerializer(answer).data)


def _viewer(name: str | None, chat: Chat | None) -> Viewer:
    """Return the viewer of the named chat, which may be new; staff if none is named."""
    memory = build_chat_memory()
    if chat is not None:
        return Viewer(memory.role_in(chat), chat.pk)
    if not name:
        return Viewer(STAFF)
    is_group = name.endswith("@g.us")
    return Viewer(user_role(addresses=[name], is_group=is_group, godfather=memory.godfather))


def _vectors_wait(viewer: Viewer, within: Q | None) -> bool:
    """Return whether memories that are searched are found by their words only, for now."""
    if within is None:
        return False
    waiting = memories_visible(**viewer.rights()).filter(within, vector_due_at__isnull=False)
    return waiting.exists()


def _sources(body: dict[str, Any], *, has_chat: bool) -> list[str]:
    """Return the sources. Filters by what messages don't have exclude them."""
    sources: list[str] = body.get("sources", [MEMORIES, MESSAGES])
    if MEMORIES not in sources and not has_chat:
        raise refuse("Messages are searched within one chat: name it.", attr="whatsapp_chat")
    if body.get("type") or body.get("tags") or body.get("namespace"):
        return [source for source in sources if source == MEMORIES]
    return sources


def _recalled(hits: list[Hit], caller: Caller) -> list[dict[str, Any]]:
    """Return the hits with the data of their rows, without hits that were deleted meanwhile."""
    memories = memories_shown([hit.id for hit in hits if hit.source == "memory"])
    messages = Message.objects.only("metadata").in_bulk(
        [hit.id for hit in hits if hit.source == "message"]
    )
    found = []
    for hit in hits:
        if hit.id in memories:
            own = _of_memory(memories[hit.id], caller)
        elif hit.id in messages:
            own = _of_message(hit, messages[hit.id].metadata)
        else:
            continue
        similarity = None if hit.similarity is None else round(hit.similarity, 4)
        shared = {"score": round(hit.score, 4), "similarity": similarity}
        found.append({**vars(hit), **own, **shared, f"{hit.source}_id": hit.id})
    return found


def _of_memory(memory: dict[str, Any], caller: Caller) -> dict[str, Any]:
    """Hide the source chat of a public memory from tokens that can't access that chat."""
    said_by = memory["client_name"] or memory["whatsapp_chat"] or memory["source"]
    shown = {**memory, "source": "memory", "said_by": said_by}
    if not caller.may_see(memory["chat_id"]):
        shown |= dict.fromkeys(("whatsapp_chat", "client_name", "said_by"))
    return shown


def _of_message(hit: Hit, metadata: dict[str, Any]) -> dict[str, Any]:
    return {
        "before": None,
        "after": None,
        **hit.metadata,
        "metadata": own_metadata(metadata),
        "sender_name": str(metadata.get("sender_name") or ""),
    }
