"""Admin pages of embedding models, and a filter of memories by vector."""

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from memories_app.models import EmbeddingModel, EmbeddingState, MemoryEmbedding
from memoryproject.foundation.admin_kit import display, list_filters, staff_admin
from memoryproject.foundation.audit.audit_events import staff_edit_record

# Short, for lists; the choices of the field explain them.
STATES = {
    str(EmbeddingState.BUILDING): gettext_lazy("building"),
    str(EmbeddingState.ACTIVE): gettext_lazy("active"),
    str(EmbeddingState.RETIRED): gettext_lazy("retired"),
}


@admin.register(EmbeddingModel)
class EmbeddingModelAdmin(staff_admin.ReadOnlyAdmin):
    """The embedding models that made vectors here.

    Staff may correct the calibration. memories_reembed creates and switches models.
    """

    list_display = ("model_id", "shown_state", "dimensions", "vectors", "activated_at")
    list_filter = ("state",)
    allowed = ("change",)
    editable: ClassVar = ("calibration_midpoint", "calibration_slope")
    fieldsets: ClassVar[Any] = (
        (None, {"fields": ("model_id", "shown_state", "vectors")}),
        (gettext_lazy("Calibration"), {"fields": editable}),
        (gettext_lazy("The model"), {"fields": ("kind", "name", "dimensions", "distance")}),
        (
            gettext_lazy("Times"),
            {"fields": ("created_at", "activated_at", "retired_at", "cleared_at")},
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[EmbeddingModel]:
        made = MemoryEmbedding.objects.filter(model=OuterRef("model_id")).order_by()
        count = made.values("model").annotate(made=Count("pk")).values("made")
        found = super().get_queryset(request)
        return found.annotate(made=Subquery(count, output_field=IntegerField()))

    def save_model(
        self, request: HttpRequest, obj: EmbeddingModel, form: Any, change: bool
    ) -> None:
        super().save_model(request, obj, form, change)
        staff_edit_record(
            request, "setting.change", "embedding_model", obj.model_id, form.changed_data
        )

    @admin.display(description=gettext_lazy("state"), ordering="state")
    def shown_state(self, model: EmbeddingModel) -> str:
        tone = "good" if model.state == EmbeddingState.ACTIVE else ""
        return display.shown_mark(str(STATES.get(model.state, model.state)), tone)

    vectors = display.column(gettext_lazy("vectors of memories"), lambda model: model.made or 0)


# The choices come from the few models, not from the vectors.
MODEL_FILTER = list_filters.value_filter(
    "model",
    gettext_lazy("model"),
    lambda _request: [(m, m) for m in EmbeddingModel.objects.values_list("model_id", flat=True)],
)


@admin.register(MemoryEmbedding)
class MemoryEmbeddingAdmin(staff_admin.ReadOnlyAdmin):
    list_display = ("memory", "model")
    list_filter = (MODEL_FILTER,)
    search_fields = ("=memory__memory_id",)
    search_help_text = gettext_lazy("The id of a memory")
    # Any other order would sort all rows.
    sortable_by = ()
    list_select_related = ("memory",)
    exclude = ("vector",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[MemoryEmbedding]:
        rows: QuerySet[MemoryEmbedding] = super().get_queryset(request)
        return rows.defer("vector", "memory__terms", "memory__likeness")
