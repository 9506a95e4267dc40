"""The pages of memories."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.utils import flatten_fieldsets
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from memories_app.admin.actions import MemoryActions, staff_actor
from memories_app.admin.filters import StateFilter, TagFilter
from memories_app.admin.forms import AddForm, ChangeForm
from memories_app.admin.history import (
    memory_link,
    revisions_table,
    superseded_list,
    tellings_table,
)
from memories_app.models import Memory, MemoryStatus, Visibility
from memoryproject.integrations.embedders.base import Embedder
from memoryproject.lib.admin_display import shown_json, shown_short, shown_state, shown_text

SAID = {
    "duplicate": "This was known already: it counts as told again.",
    "superseding": "It took the place of what said otherwise.",
}


class MemoryPages(MemoryActions):
    """Staff write, change, pin, approve; each through its service."""

    list_display = (
        "short_content",
        "visible_to",
        "shown_status",
        "type",
        "category",
        "shown_tags",
        "pinned",
        "told_count",
        "source",
        "created_at",
    )
    list_filter = (
        StateFilter,
        "visibility",
        "pinned",
        "type",
        "category",
        TagFilter,
        "source",
        "created_at",
    )
    search_fields = ("content", "category", "memory_id", "chat_id")
    ordering = ("-pinned", "-created_at", "memory_id")
    date_hierarchy = "created_at"
    editable: ClassVar = (
        "content",
        "visibility",
        "type",
        "category",
        "tags",
        "pinned",
        "expires_at",
    )
    fieldsets = (
        (None, {"fields": ("shown_status", *editable)}),
        (
            "History",
            {
                "fields": (
                    "shown_superseded_by",
                    "shown_superseded",
                    "shown_revisions",
                    "shown_tellings",
                )
            },
        ),
        (
            "Where it comes from",
            {
                "fields": (
                    "shown_chat",
                    "source",
                    "source_message_id",
                    "confidence",
                    "shown_metadata",
                )
            },
        ),
        (
            "Record",
            {
                "fields": (
                    "memory_id",
                    "content_hash",
                    "told_count",
                    "last_told_at",
                    "created_at",
                    "updated_at",
                )
            },
        ),
    )

    def embedder(self) -> Embedder:
        """Makes the vectors of what is written here."""
        raise NotImplementedError

    def find_chat(self, whatsapp_chat: str) -> UUID | None:
        """The id of the chat with this address."""
        raise NotImplementedError

    def chat_link(self, chat_id: UUID) -> str:
        """The way to a chat."""
        raise NotImplementedError

    def has_add_permission(self, request: HttpRequest) -> bool:
        return admin.ModelAdmin.has_add_permission(self, request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """What was superseded is history."""
        if obj is not None and obj.status == MemoryStatus.SUPERSEDED:
            return False
        return admin.ModelAdmin.has_change_permission(self, request, obj)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Memory]:
        return super().get_queryset(request).defer("terms", "likeness")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return ((None, {"fields": (*self.editable, "whatsapp_chat")}),)
        return self.fieldsets

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        if obj is None:
            return []
        shown = flatten_fieldsets(self.fieldsets)
        return [str(name) for name in shown if name not in self.editable]

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        kwargs["form"] = ChangeForm if obj is not None else AddForm
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.edge = self
        form.actor = staff_actor(request)
        return form

    def changeform_view(self, *args: Any, **kwargs: Any) -> HttpResponse:
        # Without the transaction that Django wraps around it: the services have their own, and
        # none may be open while a provider makes a vector.
        page: Any = self
        return page._changeform_view(*args, **kwargs)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """The form's service did it."""
        said = SAID.get(getattr(form, "outcome", ""))
        if said:
            self.message_user(request, said, messages.WARNING)

    @admin.display(description="content", ordering="content")
    def short_content(self, memory: Memory) -> str:
        return shown_short(memory.content)

    @admin.display(description="content")
    def whole_content(self, memory: Memory) -> str:
        return shown_text(memory.content)

    @admin.display(description="visible to", ordering="visibility")
    def visible_to(self, memory: Memory) -> str:
        return shown_state(memory.visibility, good=[str(Visibility.PUBLIC)])

    @admin.display(description="status", ordering="status")
    def shown_status(self, memory: Memory) -> str:
        return shown_state(memory.status, good=[MemoryStatus.ACTIVE], bad=[MemoryStatus.SUPERSEDED])

    @admin.display(description="tags")
    def shown_tags(self, memory: Memory) -> str:
        return ", ".join(memory.tags)

    @admin.display(description="chat")
    def shown_chat(self, memory: Memory) -> str:
        return self.chat_link(memory.chat_id) if memory.chat_id else "–"

    @admin.display(description="superseded by")
    def shown_superseded_by(self, memory: Memory) -> str:
        return memory_link(memory.superseded_by)

    @admin.display(description="supersedes")
    def shown_superseded(self, memory: Memory) -> str:
        return superseded_list(memory)

    @admin.display(description="revisions")
    def shown_revisions(self, memory: Memory) -> str:
        return revisions_table(memory)

    @admin.display(description="tellings")
    def shown_tellings(self, memory: Memory) -> str:
        return tellings_table(memory)

    @admin.display(description="metadata")
    def shown_metadata(self, memory: Memory) -> str:
        return shown_json(memory.metadata)
