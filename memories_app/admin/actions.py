"""What staff do with many memories at once: one service call each, and a line about all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from memories_app.errors import MemoryOperationError
from memories_app.models import Memory, Visibility
from memories_app.services.change import memory_pin, memory_set_visibility
from memories_app.services.waiting import memory_approve, memory_reject
from memoryproject.audit.events import Actor
from memoryproject.integrations.embedders.base import EmbedderError
from memoryproject.lib.read_only_admin import ReadOnlyAdmin


def staff_actor(request: HttpRequest) -> Actor:
    return Actor("staff", request.user.get_username())


def each(
    page: Any,
    request: HttpRequest,
    items: Iterable[Any],
    service: Callable[[Any], object],
    done: str,
) -> None:
    """Call the service for every item, and tell how many it was and what was refused."""
    count = 0
    refused: dict[str, int] = {}
    for item in items:
        try:
            service(item)
            count += 1
        except (MemoryOperationError, EmbedderError) as error:
            refused[str(error)] = refused.get(str(error), 0) + 1
    if count:
        page.message_user(request, f"{count} {done}.", messages.SUCCESS)
    for reason, times in refused.items():
        page.message_user(request, f"{times} left alone: {reason}", messages.WARNING)


class MemoryActions(ReadOnlyAdmin):
    """The part of the page of memories that acts on many."""

    actions: tuple[str, ...] = (
        "pin",
        "unpin",
        "make_public",
        "make_owner",
        "make_chat",
        "approve",
        "reject",
    )

    def _visibility(
        self, request: HttpRequest, queryset: QuerySet[Memory], visibility: str
    ) -> None:
        actor = staff_actor(request)
        each(
            self,
            request,
            queryset,
            lambda memory: memory_set_visibility(
                memory_id=memory.pk, visibility=visibility, actor=actor
            ),
            f"now visible to: {visibility}",
        )

    @admin.action(description="Pin", permissions=["change"])
    def pin(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        actor = staff_actor(request)
        each(
            self,
            request,
            queryset,
            lambda memory: memory_pin(memory_id=memory.pk, actor=actor),
            "pinned",
        )

    @admin.action(description="Take the pin off", permissions=["change"])
    def unpin(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        actor = staff_actor(request)
        each(
            self,
            request,
            queryset,
            lambda memory: memory_pin(memory_id=memory.pk, pinned=False, actor=actor),
            "not pinned any more",
        )

    @admin.action(description="Make visible to everyone (public)", permissions=["change"])
    def make_public(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        self._visibility(request, queryset, str(Visibility.PUBLIC))

    @admin.action(description="Make visible to the godfather only", permissions=["change"])
    def make_owner(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        self._visibility(request, queryset, str(Visibility.OWNER))

    @admin.action(description="Make visible to its own chat only", permissions=["change"])
    def make_chat(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        self._visibility(request, queryset, str(Visibility.CHAT))

    @admin.action(description="Approve what waits", permissions=["change"])
    def approve(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        actor = staff_actor(request)
        each(
            self,
            request,
            queryset,
            lambda memory: memory_approve(memory_id=memory.pk, actor=actor),
            "approved",
        )

    @admin.action(description="Reject what waits (deletes it)", permissions=["change"])
    def reject(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        actor = staff_actor(request)
        each(
            self,
            request,
            queryset,
            lambda memory: memory_reject(memory_id=memory.pk, actor=actor),
            "rejected",
        )
