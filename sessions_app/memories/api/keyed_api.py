"""Keyed memories over HTTP, by namespace and key; and many memories that are forgotten at once."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import quote
from uuid import UUID

import django_filters
from django.db.models import Q, QuerySet
from django.urls import register_converter
from django.urls.converters import StringConverter
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from memories_app.facts.validation import MAX_CONTENT, MAX_PLACE, MAX_VALUE_BYTES
from memories_app.models import Memory, MemoryStatus, Visibility
from memories_app.store.keyed import keyed_in, keyed_put, value_text, within_namespace
from memories_app.store.remember import MAX_AT_ONCE
from memories_app.visibility import is_current, scope_of
from memoryproject.foundation.rest_kit import operations
from memoryproject.foundation.rest_kit.authentication import Caller
from memoryproject.foundation.rest_kit.errors import refuse
from memoryproject.foundation.rest_kit.idempotency import idempotent
from memoryproject.foundation.rest_kit.serializers import Choice, Items, Strict, Whole
from memoryproject.foundation.rest_kit.views import ApiView, ListView, etagged, require_precondition
from sessions_app.conversations.epochs import chats_keep
from sessions_app.embedding.facade import embedder
from sessions_app.forgetting.presentation import forget_once, forgets, memories_forget_once
from sessions_app.memories.api import serializers as bodies
from sessions_app.memories.api.filters import MetadataFilter
from sessions_app.memories.api.memory_api import FORGOTTEN_SINCE, memory_etag, memory_within
from sessions_app.memories.api.writing import RAISES, memories_to_store
from sessions_app.presentation.access import chat_in_reach, memories_in_reach, own_chat
from sessions_app.presentation.serializers import ReceiptSerializer, WhatsAppChat
from sessions_app.recall.facade import memories_named

MAX_TTL_SECONDS = 100 * 366 * 24 * 3_600
TEXT = {"type": "string", "minLength": 1, "maxLength": MAX_PLACE}
NAMESPACE = operations.path_parameter(
    "namespace",
    "Levels, separated by dots, such as users.42.prefs.",
    {**TEXT, "pattern": "^[^/]+$"},
)
KEY = operations.path_parameter("key", "Any text, percent-encoded, such as theme.", TEXT)


class KeyConverter(StringConverter):
    """A key: any text. A slash in it arrives as one, also if the address had %2F."""

    regex = r"(?s:.+)"


register_converter(KeyConverter, "key")


class ScopeQuery(Strict):
    """Names the memories among which a namespace and a key are unique."""

    whatsapp_chat = WhatsAppChat(required=False)
    visibility = Choice(Visibility.choices, required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        shared = attrs.get("visibility", Visibility.CHAT) != Visibility.CHAT
        if shared and "whatsapp_chat" in attrs:
            detail = "The keyed memories of a chat are visible to that chat: leave out one of both."
            raise serializers.ValidationError({"visibility": [detail]})
        return attrs


NAMES = {"type": "array", "items": {"type": "string"}}
NO_NAMES = {"type": "boolean", "enum": [False]}


@extend_schema_field({"oneOf": [NAMES, NO_NAMES]})
class IndexField(serializers.Field[Any, Any, Any, Any]):
    """The names of fields, or false for none."""

    default_error_messages = {
        "form": 'It must be false, or a list of at most 100 names such as ["title", "body.text"].'
    }

    def to_internal_value(self, data: Any) -> list[str]:
        names = [] if data is False else data
        is_list = isinstance(names, list) and len(names) <= 100
        if not is_list or not all(isinstance(each, str) and each for each in names):
            self.fail("form")
        return list(names)


class KeyedSerializer(Strict):
    """Replaces the whole value, with its text, its metadata and its end."""

    value = bodies.Metadata(help_text=f"Any JSON object, at most {MAX_VALUE_BYTES} bytes.")
    text = bodies.Words(required=False, max_length=MAX_CONTENT)
    index = IndexField(required=False)
    metadata = bodies.Metadata(required=False)
    ttl_seconds = Whole(required=False, min_value=1, max_value=MAX_TTL_SECONDS)
    expires_at = bodies.LaterMoment(required=False, allow_null=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        for one, other in (("text", "index"), ("ttl_seconds", "expires_at")):
            if one in attrs and other in attrs:
                detail = f"It stands in place of {one}: leave out one of the two."
                raise serializers.ValidationError({other: [detail]})
        return attrs


def scope_named(caller: Caller, given: Mapping[str, Any]) -> str:
    """Return the scope that a caller names; "" for a chat that doesn't exist.

    Raises NotFound for a chat out of reach of a bound token, ValidationError for a missing one.
    """
    name = given.get("whatsapp_chat") or own_chat(caller)
    visibility = given.get("visibility", str(Visibility.CHAT if name else Visibility.OWNER))
    if visibility != Visibility.CHAT:
        return scope_of(visibility, None)
    if not name:
        raise refuse("Name the chat whose memories are meant.", attr="whatsapp_chat")
    chat = chat_in_reach(caller, name)
    return "" if chat is None else scope_of(visibility, chat.pk)


class KeyedView(ApiView):
    serializer_class = bodies.MemorySerializer
    scopes = {"GET": "read", "PUT": "write", "DELETE": "forget"}
    staff_rights = {
        "GET": ["memories_app.view_memory"],
        "PUT": ["memories_app.add_memory", "memories_app.change_memory"],
    }
    answers = {"PUT": [operations.CHANGED_MEANWHILE], "DELETE": [operations.CHANGED_MEANWHILE]}
    raises = RAISES
    query_serializer_class = ScopeQuery

    def memory(self, namespace: str, key: str, *also: Q) -> Any:
        """Return the memory with its chat's name. Raises NotFound."""
        scope = scope_named(self.caller, self.query)
        rows = memories_named(memories_in_reach(self.caller))
        there = rows.filter(keyed_in(scope), *also, namespace=namespace, key=key)
        memory = there.first()
        if memory is None:
            place = f"{key[:MAX_PLACE]} in the namespace {namespace[:MAX_PLACE]}"
            raise NotFound(f"There is no memory {place}.")
        return memory

    @operations.described(
        operation_id="memories_keyed_get",
        **operations.versioned(bodies.MemorySerializer, NAMESPACE, KEY),
    )
    def get(self, request: Request, namespace: str, key: str) -> Response:
        """Return the memory. One that has expired is absent."""
        memory = self.memory(namespace, key, is_current(timezone.now()))
        return etagged(request, bodies.MemorySerializer(memory).data, etag=memory_etag(memory))

    @operations.described(
        operation_id="memories_keyed_put",
        parameters=[
            *(NAMESPACE, KEY, ScopeQuery),
            *(
                operations.IF_MATCH,
                operations.only_new("memory"),
                operations.etag(200, 201),
                operations.location(201),
            ),
        ],
        request=KeyedSerializer,
        responses={201: bodies.MemorySerializer, 200: bodies.MemorySerializer},
    )
    def put(self, request: Request, namespace: str, key: str) -> Response:
        body = self.body(KeyedSerializer)
        text = body.get("text") or value_text(body["value"], body.get("index"))
        expires_at = body.get("expires_at")
        if "ttl_seconds" in body:
            expires_at = timezone.now() + timedelta(seconds=body["ttl_seconds"])
        wanted = {
            **self.query,
            "namespace": namespace,
            "key": key,
            "value": body["value"],
            "content": text,
            "metadata": body.get("metadata", {}),
            "expires_at": expires_at,
        }
        (new,) = memories_to_store([wanted], self.caller)
        memory, created = keyed_put(
            new,
            embedder=embedder(),
            actor=self.caller.actor,
            check=self._check,
            before_storing=partial(chats_keep, [new.chat_id] if new.chat_id else []),
        )
        named = memory_within(self.caller, memory.pk, FORGOTTEN_SINCE)
        headers = {"ETag": memory_etag(named)}
        if created:
            listed = reverse("api-keyed-list", args=[namespace])
            query = request.META.get("QUERY_STRING")
            headers["Location"] = f"{listed}{quote(key, safe='')}/" + (f"?{query}" if query else "")
        status = 201 if created else 200
        return Response(bodies.MemorySerializer(named).data, status=status, headers=headers)

    def _check(self, there: Memory | None) -> None:
        """Check the preconditions, with the memory locked. Raises PreconditionFailed."""
        found = memory_etag(memories_named().get(pk=there.pk)) if there else None
        require_precondition(self.request, found, "memory")

    @forgets(NAMESPACE, KEY, ScopeQuery, operation_id="memories_keyed_forget")
    def delete(self, request: Request, namespace: str, key: str) -> Response:
        return forget_once(self, "memory", lambda: self.memory(namespace, key), memory_etag)


class KeyedFilters(django_filters.FilterSet):  # type: ignore[misc]
    value = MetadataFilter(lookup_expr="contains")


class KeyedList(ListView):
    """A list of keyed memories of one scope that haven't expired."""

    scopes = {"GET": "read"}
    staff_rights = {"GET": ["memories_app.view_memory"]}
    query_serializer_class = ScopeQuery
    queryset = Memory.objects.all()

    def rows(self) -> QuerySet[Any]:
        scope = scope_named(self.caller, self.query)
        rows = memories_named(memories_in_reach(self.caller))
        return rows.filter(keyed_in(scope), is_current(timezone.now()))


class NamespaceMemoriesView(KeyedList):
    serializer_class = bodies.MemorySerializer
    filterset_class = KeyedFilters
    ordering = ("namespace", "key")

    @operations.described(operation_id="memories_keyed_list", parameters=[NAMESPACE])
    def get(self, request: Request, namespace: str) -> Response:
        """Return those of the namespace and of the ones below it, by namespace and key."""
        return self.page_of(self.rows().filter(within_namespace(namespace)))


class NamespaceSerializer(serializers.Serializer[Any]):
    namespace = serializers.CharField()


class NamespacesView(KeyedList):
    serializer_class = NamespaceSerializer
    ordering = ("namespace",)

    @operations.described(operation_id="memories_keyed_namespaces")
    def get(self, request: Request) -> Response:
        """Return each namespace that holds a memory, in order."""
        return self.page_of(self.rows().only("namespace").distinct("namespace"))


class KeyedPlace(ScopeQuery):
    """A keyed memory, by what stands in its address."""

    namespace = bodies.PlacePart()
    key = bodies.PlacePart()


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

    @operations.described(
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
