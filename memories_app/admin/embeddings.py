"""Which memories have a vector, and by which model."""

from __future__ import annotations

from django.contrib import admin

from memories_app.models import MemoryEmbedding
from memoryproject.lib.read_only_admin import ReadOnlyAdmin


@admin.register(MemoryEmbedding)
class MemoryEmbeddingAdmin(ReadOnlyAdmin):
    list_display = ("memory", "model")
    list_filter = ("model",)
    search_fields = ("memory__content", "model")
    list_select_related = ("memory",)
    exclude = ("vector",)
