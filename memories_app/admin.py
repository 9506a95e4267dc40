"""Memories in the admin. Their text changes through the services only."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest

from memories_app.models import Memory, MemoryEmbedding
from memoryproject.lib.read_only_admin import ReadOnlyAdmin


@admin.register(Memory)
class MemoryAdmin(ReadOnlyAdmin):
    """Visibility, category and tags are staff's to set; the rest would part the text from
    its vectors and terms."""

    list_display = ("content", "visibility", "type", "category", "source", "created_at")
    list_filter = ("visibility", "type", "source", "created_at")
    search_fields = ("content", "category", "memory_id", "chat_id")
    date_hierarchy = "created_at"
    exclude = ("terms",)
    editable: ClassVar = ("visibility", "category", "tags")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_change_permission(self, request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        names = [field.name for field in self.model._meta.fields if field.name != "terms"]
        return [name for name in names if name not in self.editable]


@admin.register(MemoryEmbedding)
class MemoryEmbeddingAdmin(ReadOnlyAdmin):
    list_display = ("memory", "model")
    list_filter = ("model",)
    search_fields = ("memory__content", "model")
    list_select_related = ("memory",)
    exclude = ("vector",)
