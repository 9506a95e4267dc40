"""The assistant's profile: one row, always there."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.widgets import AdminTextareaWidget
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from memoryproject.audit.staff import staff_edit_record
from sessions_app.models import AssistantProfile


@admin.register(AssistantProfile)
class AssistantProfileAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """The list leads straight to the one profile, made on the way."""

    fields = ("name", "persona", "business_facts", "opening_hours", "languages", "updated_at")
    # Hebrew is written from the right as soon as it begins.
    formfield_overrides: ClassVar = {
        models.TextField: {"widget": AdminTextareaWidget(attrs={"dir": "auto", "rows": 6})}
    }
    readonly_fields = ("updated_at",)
    search_fields = ("name",)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        profile, _ = AssistantProfile.objects.get_or_create(pk=1)
        return redirect("admin:sessions_app_assistantprofile_change", profile.pk)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(
        self, request: HttpRequest, obj: AssistantProfile, form: Any, change: bool
    ) -> None:
        super().save_model(request, obj, form, change)
        staff_edit_record(
            request,
            action="profile.update",
            object_type="profile",
            object_id=obj.pk,
            fields=form.changed_data,
        )
