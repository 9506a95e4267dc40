"""Forget many memories in one call."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from memories_app.models import Memory, MemoryStatus
from memories_app.store.remember import MAX_AT_ONCE
from memoryproject.foundation.rest_kit.authentication import Caller
from memoryproject.foundation.rest_kit.idempotency import idempotent
from memoryproject.foundation.rest_kit.operations import described
from memoryproject.foundation.rest_kit.serializers import Items, Strict
from memoryproject.foundation.rest_kit.views import ApiView
from sessions_app.forgetting.presentation import memories_forget_once
from sessions_app.memories.api.keyed_api import ScopeQuery, scope_named
from sessions_app.memories.api.serializers import PlacePart
from sessions_app.memories.api.writing import RAISES
from sessions_app.presentation.access import memories_in_reach
from sessions_app.presentation.serializers import ReceiptSerializer


class KeyedPlace(ScopeQuery):
    """A keyed memory, by what stands in its address."""

    namespace = PlacePart()
    key = PlacePart()


class Id(serializers.UUIDField):
    """A UUID as a text: a number isn't accepted."""

    def to_internal_value(self, data: Any) -> UUID:
        if not isinstance(data, str):
            self.fail("invalid", value=data)
        return super().to_internal_value(data)


class DeleteSerializer(Strict):
    """At most 1,000 memories, by their ids, by their keys, or by both."""

    memory_ids = Items(child=Id(), required=False, max_length=MAX_AT_ONCE)
    keyed = Items(child=KeyedPlace(), required=False, max_length=MAX_AT_ONCE)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        number = sum(map(len, attrs.values()))
        if not 1 <= number <= MAX_AT_ONCE:
            detail = f"It names {number} memories: name from 1 to {MAX_AT_ONCE}."
            raise serializers.ValidationError({"memory_ids": [detail]})
        return attrs


class ForgottenSerializer(serializers.Serializer[Any]):
    memory_id = serializers.UUIDField()
    receipt_id = serializers.UUIDField()


class NotFoundSerializer(serializers.Serializer[Any]):
    """A memory as it was named."""

    memory_id = serializers.UUIDField(required=False)
    namespace = serializers.CharField(required=False)
    key = serializers.CharField(required=False)
    whatsapp_chat = serializers.CharField(required=False)
    visibility = serializers.CharField(required=False)


class DeletedSerializer(serializers.Serializer[Any]):
    forgotten = ForgottenSerializer(many=True)
    not_found = NotFoundSerializer(many=True)
    receipts = ReceiptSerializer(many=True)


class MemoriesDeleteView(ApiView):
    scopes = {"POST": "forget"}
    kinds = {"POST": "forget"}
    raises = RAISES

    @described(
        operation_id="memories_forget_batch", request=DeleteSerializer, responses=DeletedSerializer
    )
    @idempotent(atomic=False, holds_texts=False)
    def post(self, request: Request) -> Response:
        body = self.body(DeleteSerializer)
        named = [{"memory_id": key} for key in dict.fromkeys(body.get("memory_ids", ()))]
        reach = Memory.objects.filter(memories_in_reach(self.caller))
        known = reach.in_bulk([each["memory_id"] for each in named])
        places = body.get("keyed", ())
        memories = [known.get(each["memory_id"]) for each in named]
        memories += memories_at(places, self.caller)
        there = {each.pk: each for each in memories if each is not None}
        receipts = memories_forget_once(self, list(there.values()))
        pairs = zip(memories, [*named, *places], strict=True)
        answer = {
            "forgotten": [
                {"memory_id": key, "receipt_id": each.receipt_id} for key, each in receipts.items()
            ],
            "not_found": [
                name for memory, name in pairs if memory is None or memory.pk not in receipts
            ],
            "receipts": list({each.receipt_id: each for each in receipts.values()}.values()),
        }
        return Response(DeletedSerializer(answer).data)


def memories_at(places: Sequence[dict[str, Any]], caller: Caller) -> list[Memory | None]:
    """Return the keyed memories that are there; None for one that isn't, or is out of reach."""
    scopes: dict[tuple[str | None, str | None], str] = {}
    wanted = []
    for each in places:
        named = (each.get("whatsapp_chat"), each.get("visibility"))
        if named not in scopes:
            # A chat out of reach is as one that isn't there.
            scopes[named] = ""
            with suppress(NotFound):
                scopes[named] = scope_named(caller, each)
        wanted.append((scopes[named], each["namespace"], each["key"]))
    rows = Memory.objects.filter(
        memories_in_reach(caller),
        status=MemoryStatus.ACTIVE,
        scope__in=scopes.values(),
        namespace__in=[namespace for _, namespace, _ in wanted],
        key__in=[key for _, _, key in wanted],
    )
    found = {(memory.scope, memory.namespace, memory.key): memory for memory in rows}
    return [found.get(each) for each in wanted]
