"""Memories: listed, stored alone or in batches; one of them read, changed, forgotten."""

from typing import Any
from uuid import UUID

from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from memories_app.errors import MemoryValidationError
from memories_app.models import Memory
from memories_app.store.change import memory_patch
from memories_app.store.deduplicate import CREATED
from memoryproject.foundation.rest_kit import operations, views
from memoryproject.foundation.rest_kit.authentication import Caller, require_reading
from memoryproject.foundation.rest_kit.idempotency import idempotent
from sessions_app.embedding.facade import embedder
from sessions_app.forgetting.presentation import forget_once, forgets
from sessions_app.memories.api import writing
from sessions_app.memories.api.filters import MEMORY_FIELDS, MemoryFilters
from sessions_app.memories.api.serializers import (
    ChangeMemorySerializer,
    MemoryBatchResultSerializer,
    MemoryBatchSerializer,
    MemoryDetailSerializer,
    MemorySerializer,
    NewMemorySerializer,
    PatchedMemoriesSerializer,
    PatchMemoriesSerializer,
    StoredMemorySerializer,
)
from sessions_app.models import Chat
from sessions_app.presentation import access
from sessions_app.recall.facade import memories_named


def memory_etag(memory: Any) -> str:
    """Return the ETag of a memory with its chat's name; it covers all shown fields."""
    version = memory.updated_at.isoformat()
    return views.etag_of(memory.pk, version, memory.whatsapp_chat, memory.superseded_by_id)


def memory_within(caller: Caller, memory_id: UUID, missing: str) -> Any:
    """Return the memory with its chat's name; raise NotFound also for an inaccessible one."""
    memory = memories_named(access.memories_in_reach(caller)).filter(pk=memory_id).first()
    if memory is None:
        raise NotFound(missing)
    return memory


FORGOTTEN_SINCE = "It was stored, and forgotten since."
SAYS_THE_SAME = operations.conflicting(
    "Another memory says the same already.",
    "Another memory says the same already.",
    code="duplicate",
)
SUPERSEDED = operations.conflicting(
    "It was superseded.", "The memory was superseded: change the newer one."
)


class MemoriesView(views.ListView):
    scopes = {"GET": "read", "POST": "write", "PATCH": "write"}
    staff_rights = {
        "GET": ["memories_app.view_memory"],
        "POST": ["memories_app.add_memory"],
        "PATCH": ["memories_app.change_memory"],
    }
    kinds = {"PATCH": "bulk"}
    raises = writing.RAISES
    answers = {
        "POST": [
            operations.conflicting(
                "The known memory is being changed, or the chat was erased.",
                "It was changed meanwhile.",
            )
        ],
        "PATCH": [SAYS_THE_SAME, SUPERSEDED],
    }
    repeatable = frozenset({"tags", "type", "status"})
    serializer_class = MemorySerializer
    filterset_class = MemoryFilters
    where_fields = MEMORY_FIELDS
    sortable = ("created_at", "updated_at")
    ordering = ("-created_at", "-memory_id")

    def get_queryset(self) -> Any:
        return memories_named()

    @operations.described(operation_id="memories_list")
    def get(self, request: Request) -> Response:
        """Return active memories that haven't expired, or those with a `status`."""
        return self.page_of(self.get_queryset().filter(access.memories_in_reach(self.caller)))

    @operations.described(
        operation_id="memories_remember",
        parameters=[operations.etag(200, 201), operations.location(201)],
        request=NewMemorySerializer,
        responses={201: StoredMemorySerializer, 200: StoredMemorySerializer},
    )
    # A retry finds its own memory.
    @idempotent(atomic=False)
    def post(self, request: Request) -> Response:
        body = self.body(NewMemorySerializer)
        new = writing.memories_to_store([body], self.caller)
        (remembered,) = writing.memories_add(new, self.caller)
        memory = memory_within(self.caller, remembered.memory.pk, FORGOTTEN_SINCE)
        outcome = writing.outcome_of(remembered)
        done = {"outcome": outcome, **writing.done_by(remembered, body)}
        headers = {"ETag": memory_etag(memory)}
        if outcome == CREATED:
            headers["Location"] = reverse("api-memory", args=[memory.pk])
        return Response(
            {**MemorySerializer(memory).data, **done},
            status=201 if outcome == CREATED else 200,
            headers=headers,
        )

    @operations.described(
        operation_id="memories_change_batch",
        request=PatchMemoriesSerializer,
        responses=PatchedMemoriesSerializer,
    )
    @idempotent(atomic=False)
    def patch(self, request: Request) -> Response:
        bodies = self.body(PatchMemoriesSerializer)["memories"]
        require_reading(self.caller)
        ids = writing.memories_change(bodies, self.caller)
        found = memories_named(access.memories_in_reach(self.caller)).in_bulk(ids)
        memories = [found[key] for key in ids if key in found]
        return Response(PatchedMemoriesSerializer({"memories": memories}).data)


class MemoryBatchView(views.ApiView):
    scopes = {"POST": "write"}
    staff_rights = {"POST": ["memories_app.add_memory"]}
    kinds = {"POST": "bulk"}
    raises = {**writing.RAISES, MemoryValidationError: writing.invalid_batch}

    @operations.described(
        operation_id="memories_remember_batch",
        request=MemoryBatchSerializer,
        responses={201: MemoryBatchResultSerializer, 200: MemoryBatchResultSerializer},
    )
    @idempotent(atomic=False)
    def post(self, request: Request) -> Response:
        bodies = self.body(MemoryBatchSerializer)["memories"]
        new = writing.memories_to_store(bodies, self.caller)
        stored = writing.memories_add(new, self.caller)
        memories = [
            {
                "memory_id": str(one.memory.pk),
                "status": writing.outcome_of(one),
                **writing.done_by(one, body),
            }
            for one, body in zip(stored, bodies, strict=True)
        ]
        created = any(each["status"] == CREATED for each in memories)
        return Response({"memories": memories}, status=201 if created else 200)


class MemoryView(views.ApiView):
    serializer_class = MemoryDetailSerializer
    scopes = {"GET": "read", "PATCH": "write", "DELETE": "forget"}
    staff_rights = {"GET": ["memories_app.view_memory"], "PATCH": ["memories_app.change_memory"]}
    answers = {
        "PATCH": [SAYS_THE_SAME, SUPERSEDED, operations.CHANGED_MEANWHILE],
        "DELETE": [operations.CHANGED_MEANWHILE],
    }
    raises = writing.RAISES

    def memory(self, memory_id: UUID) -> Any:
        return memory_within(self.caller, memory_id, f"There is no memory {memory_id}.")

    @operations.described(
        operation_id="memories_get", **operations.versioned(MemoryDetailSerializer)
    )
    def get(self, request: Request, memory_id: UUID) -> Response:
        """Return the memory, whatever its status. Send its `ETag` as `If-Match` with a change."""
        memory = self.memory(memory_id)
        return views.etagged(request, MemoryDetailSerializer(memory).data, etag=memory_etag(memory))

    @operations.described(
        operation_id="memories_change",
        parameters=[operations.IF_MATCH, operations.etag(200)],
        request=ChangeMemorySerializer,
        responses=MemoryDetailSerializer,
    )
    @idempotent(atomic=False)
    def patch(self, request: Request, memory_id: UUID) -> Response:
        changes = self.body(ChangeMemorySerializer)
        memory = self.memory(memory_id)
        require_reading(self.caller)
        access.require_longterm()
        access.require_memory(Chat.objects.filter(pk=memory.chat_id).first())
        access.refuse_beyond_chats(self.caller, changes.get("visibility", memory.visibility))
        memory_patch(
            memory_id=memory_id,
            changes=changes,
            actor=self.caller.actor,
            embedder=embedder(),
            check=self._check,
        )
        changed = self.memory(memory_id)
        return Response(
            MemoryDetailSerializer(changed).data, headers={"ETag": memory_etag(changed)}
        )

    def _check(self, locked: Memory) -> None:
        memory = self.memory(locked.pk)
        access.refuse_beyond_chats(self.caller, memory.visibility)
        views.require_match(self.request, memory_etag(memory))

    @forgets(operation_id="memories_forget")
    def delete(self, request: Request, memory_id: UUID) -> Response:
        return forget_once(self, "memory", lambda: self.memory(memory_id), memory_etag)
