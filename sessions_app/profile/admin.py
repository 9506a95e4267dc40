"""The page of the assistant's profile: one row that always exists, with a prompt preview."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path
from django.utils import timezone
from django.utils.translation import gettext as _

from memoryproject.foundation.admin_kit.staff_admin import StaffAdmin
from memoryproject.foundation.audit.audit_events import staff_edit_record
from sessions_app.conversations.facade import profile_locked
from sessions_app.models import AssistantProfile
from sessions_app.profile.form import KINDS, LANGUAGES, Preview, ProfileForm, prompt_preview

PAGE = "admin/sessions_app/assistantprofile/profile.html"
PART = "admin/sessions_app/assistantprofile/preview.html"
STALE = 409


@admin.register(AssistantProfile)
class AssistantProfileAdmin(StaffAdmin):
    """The list redirects to the only profile, which is created if it is missing."""

    search_fields = ("name",)
    has_csv = False

    def get_urls(self) -> list[Any]:
        page = self.admin_site.admin_view(self.preview)
        name = "sessions_app_assistantprofile_preview"
        return [path("preview/", page, name=name), *super().get_urls()]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        profile, _made = AssistantProfile.objects.get_or_create(pk=1)
        return redirect("admin:sessions_app_assistantprofile_change", profile.pk)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the form on GET, save it on POST.

        A form that was based on an older profile is shown again, with the typed and the stored
        values.
        """
        if object_id != "1":
            return redirect("admin:sessions_app_assistantprofile_changelist")
        if request.method == "POST":
            if not self.has_change_permission(request):
                raise PermissionDenied
            return self._save(request)
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        profile, _made = AssistantProfile.objects.get_or_create(pk=1)
        return self._page(request, ProfileForm(instance=profile))

    def preview(self, request: HttpRequest) -> HttpResponse:
        """Return the page with the typed values and the prompt that they produce, without saving.

        POST the form with ``kind`` and ``language``. With the header ``X-Part``, return only the
        prompt.
        """
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_change_permission(request):
            raise PermissionDenied
        profile = AssistantProfile.objects.filter(pk=1).first() or AssistantProfile(pk=1)
        form = ProfileForm(request.POST, instance=profile)
        if not form.is_valid():
            if "X-Part" in request.headers:
                return TemplateResponse(request, PART, {"problems": _words(form)}, status=422)
            return self._page(request, form, status=422)
        # The form has put the typed values into its own, unsaved copy.
        shown = prompt_preview(
            form.instance,
            kind=request.POST.get("kind", ""),
            language=request.POST.get("language", ""),
            now=timezone.now(),
            time_zone=settings.BUSINESS_TIME_ZONE,
            max_context_tokens=settings.MAX_CONTEXT_TOKENS,
        )
        if "X-Part" in request.headers:
            return TemplateResponse(request, PART, {"preview": shown})
        return self._page(request, form, preview=shown)

    @transaction.atomic
    def _save(self, request: HttpRequest) -> HttpResponse:
        profile = profile_locked()
        form = ProfileForm(request.POST, instance=profile)
        if not form.is_valid():
            return self._page(request, form, status=422)
        # Created under the lock, it has the stored values.
        if form.refuse_unseen(now=form):
            return self._page(request, form, status=STALE)
        if form.changed_data:
            form.save()
            self.log_change(request, profile, self.construct_change_message(request, form, []))
            staff_edit_record(
                request,
                action="profile.update",
                object_type="profile",
                object_id=profile.pk,
                fields=form.changed_data,
            )
        messages.success(request, _("The assistant's profile was changed successfully."))
        return redirect("admin:sessions_app_assistantprofile_change", profile.pk)

    def _page(
        self,
        request: HttpRequest,
        form: ProfileForm,
        *,
        preview: Preview | None = None,
        status: int = 200,
    ) -> HttpResponse:
        may_change = self.has_change_permission(request)
        if not may_change:
            for field in form.fields.values():
                field.disabled = True
        context = {
            **self.admin_site.each_context(request),
            "title": _("The assistant's profile"),
            "opts": self.opts,
            "list_title": _("The assistant's profile"),
            "form": form,
            "profile": form.instance,
            "may_change": may_change,
            "preview": preview,
            "kinds": KINDS.items(),
            "languages": LANGUAGES.items(),
            "kind": preview.kind if preview else next(iter(KINDS)),
            "language": preview.language if preview else "en",
        }
        return TemplateResponse(request, PAGE, context, status=status)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


def _words(form: ProfileForm) -> list[tuple[str, str]]:
    """Return the problems with the fields' names as staff see them."""
    return [
        (str(form.fields[name].label), " ".join(str(error) for error in errors))
        for name, errors in form.errors.items()
        if name in form.fields
    ]
