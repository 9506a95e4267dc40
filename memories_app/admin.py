"""Memories in the admin. Their text changes through the services only."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets
from django.http import HttpRequest

from memories_app.models import (
    EmbeddingModel,
    EmbeddingState,
    Memory,
    MemoryEmbedding,
    Visibility,
)
from memoryproject.lib.admin_display import shown_json, shown_short, shown_state, shown_text
from memoryproject.lib.read_only_admin import ReadOnlyAdmin


class MemoryForm(forms.ModelForm):  # type: ignore[type-arg]
    def clean_visibility(self) -> str:
        """The database refuses what is checked here; a form says it in words."""
        visibility: str = self.cleaned_data["visibility"]
        if visibility == str(Visibility.CHAT) and self.instance.chat_id is None:
            raise forms.ValidationError("This memory came from no chat: choose owner or public.")
        return visibility


@admin.register(Memory)
class MemoryAdmin(ReadOnlyAdmin):
    """Visibility, category and tags are staff's to set; the rest would part the text from
    its vectors and terms."""

    form = MemoryForm
    list_display = ("short_content", "visible_to", "type", "category", "source", "created_at")
    list_filter = ("visibility", "type", "source", "created_at")
    search_fields = ("content", "category", "memory_id", "chat_id")
    date_hierarchy = "created_at"
    editable: ClassVar = ("visibility", "category", "tags")
    fieldsets = (
        (None, {"fields": ("whole_content", *editable)}),
        (
            "Where it comes from",
            {"fields": ("type", "source", "chat_id", "source_message_id", "shown_metadata")},
        ),
        ("Record", {"fields": ("memory_id", "content_hash", "created_at", "updated_at")}),
    )

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_change_permission(self, request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        shown = flatten_fieldsets(self.fieldsets)
        return [str(name) for name in shown if name not in self.editable]

    @admin.display(description="content", ordering="content")
    def short_content(self, memory: Memory) -> str:
        return shown_short(memory.content)

    @admin.display(description="content")
    def whole_content(self, memory: Memory) -> str:
        return shown_text(memory.content)

    @admin.display(description="visible to", ordering="visibility")
    def visible_to(self, memory: Memory) -> str:
        return shown_state(memory.visibility, good=[str(Visibility.PUBLIC)])

    @admin.display(description="metadata")
    def shown_metadata(self, memory: Memory) -> str:
        return shown_json(memory.metadata)


@admin.register(EmbeddingModel)
class EmbeddingModelAdmin(ReadOnlyAdmin):
    """Which models made vectors here. The calibration is staff's to correct; models are made
    and switched by memories_reembed."""

    list_display = ("model_id", "shown_state", "dimensions", "vectors", "activated_at")
    list_filter = ("state",)
    editable: ClassVar = ("calibration_midpoint", "calibration_slope")
    fieldsets = (
        (None, {"fields": ("model_id", "shown_state", "vectors")}),
        ("Calibration", {"fields": editable}),
        ("The model", {"fields": ("kind", "name", "dimensions", "distance")}),
        ("Times", {"fields": ("created_at", "activated_at", "retired_at", "cleared_at")}),
    )

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_change_permission(self, request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        shown = flatten_fieldsets(self.fieldsets)
        return [str(name) for name in shown if name not in self.editable]

    @admin.display(description="state", ordering="state")
    def shown_state(self, model: EmbeddingModel) -> str:
        return shown_state(model.state, good=[str(EmbeddingState.ACTIVE)])

    @admin.display(description="vectors of memories")
    def vectors(self, model: EmbeddingModel) -> int:
        return MemoryEmbedding.objects.filter(model=model.model_id).count()


@admin.register(MemoryEmbedding)
class MemoryEmbeddingAdmin(ReadOnlyAdmin):
    list_display = ("memory", "model")
    list_filter = ("model",)
    search_fields = ("memory__content", "model")
    list_select_related = ("memory",)
    exclude = ("vector",)
