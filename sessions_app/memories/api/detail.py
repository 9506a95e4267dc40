"""One memory: read, change, forget."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from memories_app.models import Memory
from memories_app.store.facade import memory_patch
from memoryproject.foundation.rest_kit.authentication import require_reading
from memoryproject.foundation.rest_kit.etags import is_known, require_match
from memoryproject.foundation.rest_kit.operations import (
    CHANGED_MEANWHILE,
    IF_MATCH,
    conflicting,
    described,
    etag,
    request_example,
    response_example,
    versioned,
)
from memoryproject.foundation.rest_kit.views import ApiView
from sessions_app.embedding.facade import embedder
from sessions_app.forgetting.presentation import forget_once, forgets
from sessions_app.memories.api import examples
from sessions_app.memories.api.listing import memory_etag
from sessions_app.memories.api.serializers import ChangeMemorySerializer, MemoryDetailSerializer
from sessions_app.memories.api.writing import RAISES
from sessions_app.models import Chat
from sessions_app.presentation.access import (
    memories_in_reach,
    refuse_beyond_chats,
    require_longterm,
    require_memory,
)
from sessions_app.presentation.examples import MEMORY_ID, receipt
from sessions_app.recall.facade import memories_named


class MemoryView(ApiView):
    scopes = {"GET": "read", "PATCH": "write", "DELETE": "forget"}
    staff_rights = {"GET": ["memories_app.view_memory"], "PATCH": ["memories_app.change_memory"]}
    answers = {
        "PATCH": [
            conflicting(
                "Another memory says the same already.",
                "Another memory says the same already.",
                code="duplicate",
            ),
            conflicting("It was superseded.", "The memory was superseded: change the newer one."),
            CHANGED_MEANWHILE,
        ],
        "DELETE": [CHANGED_MEANWHILE],
    }
    raises = RAISES

    def memory(self, memory_id: UUID) -> Any:
        """Return the memory with its chat's name. Raises NotFound also for an inaccessible one."""
        found = memories_named(memories_in_reach(self.caller)).prefetch_related("revisions")
        memory = found.filter(pk=memory_id).first()
        if memory is None:
            raise NotFound(f"There is no memory {memory_id}.")
        return memory

    @described(
        operation_id="memories_get",
        summary="One memory, with what it said before",
        **versioned(MemoryDetailSerializer),
        examples=[response_example("A memory", examples.ONE)],
    )
    def get(self, request: Request, memory_id: UUID) -> Response:
        """Return the memory, whatever its status. Send its `ETag` as `If-Match` with a change."""
        memory = self.memory(memory_id)
        headers = {"ETag": memory_etag(memory)}
        if is_known(request, headers["ETag"]):
            return Response(status=304, headers=headers)
        return Response(MemoryDetailSerializer(memory).data, headers=headers)

    @described(
        operation_id="memories_change",
        summary="Change a memory",
        description=(
            "What is given is changed, and what it said before is kept as a revision. With "
            "`If-Match` only the version that you read: else 412. 409 where another memory says "
            "the same already (code duplicate), or where it was superseded."
        ),
        parameters=[IF_MATCH, etag(200)],
        request=ChangeMemorySerializer,
        responses=MemoryDetailSerializer,
        examples=[
            request_example("Another text", {"content": "TestCorp pays in 30 days"}),
            response_example("Changed", examples.ONE),
        ],
    )
    def patch(self, request: Request, memory_id: UUID) -> Response:
        changes = self.body(ChangeMemorySerializer)
        memory = self.memory(memory_id)
        require_reading(self.caller)
        require_longterm()
        require_memory(Chat.objects.filter(pk=memory.chat_id).first())
        refuse_beyond_chats(self.caller, changes.get("visibility", memory.visibility))
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
        refuse_beyond_chats(self.caller, memory.visibility)
        require_match(self.request, memory_etag(memory))

    @forgets(
        receipt("memory", MEMORY_ID, memories_app_memory=1),
        example="Forgotten",
        operation_id="memories_forget",
        summary="Forget a memory",
        description=(
            "Everywhere it was derived, with a receipt. Once more: 404. With `If-Match` only the "
            "version that you read: else 412."
        ),
    )
    def delete(self, request: Request, memory_id: UUID) -> Response:
        return forget_once(
            self,
            kind="memory",
            find=lambda: self.memory(memory_id).pk,
            etag=lambda: memory_etag(self.memory(memory_id)),
        )
