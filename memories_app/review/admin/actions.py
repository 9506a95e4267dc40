"""Bulk actions on memories: one service call for each memory, and one message about all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from memories_app.errors import MemoryOperationError
from memories_app.models import Memory, Visibility
from memories_app.review.pending import memory_approve, memory_reject
from memories_app.store.change import memory_pin, memory_set_visibility
from memoryproject.foundation.admin_kit.staff_admin import ReadOnlyAdmin
from memoryproject.foundation.audit.audit_events import staff_actor
from memoryproject.foundation.errors.stored_errors import error_text, translate_error
from memoryproject.foundation.integrations.embedders.base import EmbedderError

DECIDE = "memories_app.decide_mergeproposal"


def decides(request: HttpRequest) -> bool:
    """Return whether this person may decide proposals, duplicates and contradictions."""
    return bool(request.user.has_perm(DECIDE))


def call_for_each(
    page: Any,
    request: HttpRequest,
    items: Iterable[Any],
    service: Callable[[Any], object],
    done: Callable[[int], str],
) -> None:
    """Call the service for every item, and report how many succeeded and what was refused.

    ``done`` builds the sentence for a number of successes.
    """
    count = 0
    refused: dict[str, int] = {}
    for item in items:
        try:
            service(item)
            count += 1
        except (MemoryOperationError, EmbedderError) as error:
            reason = translate_error(error_text(error))
            refused[reason] = refused.get(reason, 0) + 1
    if count:
        page.message_user(request, done(count), messages.SUCCESS)
    for reason, times in refused.items():
        text = _("%(count)d skipped: %(reason)s") % {"count": times, "reason": reason}
        page.message_user(request, text, messages.WARNING)


def pinned(count: int) -> str:
    text = ngettext("%(count)d memory is pinned.", "%(count)d memories are pinned.", count)
    return text % {"count": count}


def unpinned(count: int) -> str:
    text = ngettext(
        "%(count)d memory isn't pinned any more.",
        "%(count)d memories aren't pinned any more.",
        count,
    )
    return text % {"count": count}


def made_visible(count: int) -> str:
    text = ngettext(
        "The visibility of %(count)d memory was changed.",
        "The visibility of %(count)d memories was changed.",
        count,
    )
    return text % {"count": count}


def approved(count: int) -> str:
    text = ngettext("%(count)d memory is approved.", "%(count)d memories are approved.", count)
    return text % {"count": count}


def rejected(count: int) -> str:
    text = ngettext("%(count)d memory is rejected.", "%(count)d memories are rejected.", count)
    return text % {"count": count}


class MemoryActions(ReadOnlyAdmin):
    """The bulk actions of the page of memories."""

    actions: tuple[str, ...] = (
        "pin",
        "unpin",
        "make_public",
        "make_owner",
        "make_chat",
        "approve",
        "reject",
    )

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return decides(request)

    def _visibility(
        self, request: HttpRequest, queryset: QuerySet[Memory], visibility: str
    ) -> None:
        actor = staff_actor(request)
        call_for_each(
            self,
            request,
            queryset,
            lambda memory: memory_set_visibility(
                memory_id=memory.pk, visibility=visibility, actor=actor
            ),
            made_visible,
        )

    @admin.action(description=gettext_lazy("Pin"), permissions=["change"])
    def pin(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        actor = staff_actor(request)
        call_for_each(
            self,
            request,
            queryset,
            lambda memory: memory_pin(memory_id=memory.pk, actor=actor),
            pinned,
        )

    @admin.action(description=gettext_lazy("Unpin"), permissions=["change"])
    def unpin(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        actor = staff_actor(request)
        call_for_each(
            self,
            request,
            queryset,
            lambda memory: memory_pin(memory_id=memory.pk, pinned=False, actor=actor),
            unpinned,
        )

    @admin.action(
        description=gettext_lazy("Make visible to everyone (public)"), permissions=["change"]
    )
    def make_public(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        self._visibility(request, queryset, str(Visibility.PUBLIC))

    @admin.action(
        description=gettext_lazy("Make visible to the owner only"), permissions=["change"]
    )
    def make_owner(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        self._visibility(request, queryset, str(Visibility.OWNER))

    @admin.action(
        description=gettext_lazy("Make visible to its own chat only"), permissions=["change"]
    )
    def make_chat(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        self._visibility(request, queryset, str(Visibility.CHAT))

    @admin.action(description=gettext_lazy("Approve suggestions"), permissions=["decide"])
    def approve(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        actor = staff_actor(request)
        call_for_each(
            self,
            request,
            queryset,
            lambda memory: memory_approve(memory_id=memory.pk, actor=actor),
            approved,
        )

    @admin.action(description=gettext_lazy("Reject (deletes)"), permissions=["decide"])
    def reject(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        actor = staff_actor(request)
        call_for_each(
            self,
            request,
            queryset,
            lambda memory: memory_reject(memory_id=memory.pk, actor=actor),
            rejected,
        )
