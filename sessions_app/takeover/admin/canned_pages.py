"""Admin of canned replies."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memoryproject.foundation.admin_kit.staff_admin import StaffAdmin
from memoryproject.foundation.audit.audit_events import audit_record, staff_actor, staff_edit_record
from sessions_app.models import CannedReply
from sessions_app.takeover.canned_replies import unknown_placeholders

SHORTCUT = re.compile(r"[\w-]+")


class CannedReplyForm(forms.ModelForm):  # type: ignore[type-arg]
    def clean_shortcut(self) -> str:
        """Return the shortcut without the "/" that people write before it."""
        shortcut: str = self.cleaned_data["shortcut"].removeprefix("/")
        if not SHORTCUT.fullmatch(shortcut):
            raise forms.ValidationError(_("Use letters, digits, - and _ only."))
        return shortcut

    def clean_text(self) -> str:
        text: str = self.cleaned_data["text"].replace("\r\n", "\n")
        unknown = unknown_placeholders(text)
        if unknown:
            raise forms.ValidationError(
                _("Nothing fills %(placeholder)s. Use {name} or {business}."),
                params={"placeholder": unknown[0]},
            )
        return text


@admin.register(CannedReply)
class CannedReplyAdmin(StaffAdmin):
    form = CannedReplyForm
    list_display = ("name", "shown_shortcut", "beginning")
    fields = ("name", "shortcut", "text")
    search_fields = ("name", "shortcut", "text")
    actions = None

    def save_model(self, request: HttpRequest, obj: CannedReply, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        staff_edit_record(
            request,
            action="canned_reply.update" if change else "canned_reply.create",
            object_type="canned_reply",
            object_id=obj.pk,
            fields=form.changed_data,
        )

    def delete_model(self, request: HttpRequest, obj: CannedReply) -> None:
        key = obj.pk
        super().delete_model(request, obj)
        audit_record(
            action="canned_reply.delete",
            actor=staff_actor(request),
            object_type="canned_reply",
            object_id=key,
        )

    @admin.display(description=gettext_lazy("shortcut"), ordering="shortcut")
    def shown_shortcut(self, reply: CannedReply) -> str:
        return format_html("<bdi>/{}</bdi>", reply.shortcut)

    @admin.display(description=gettext_lazy("text"))
    def beginning(self, reply: CannedReply) -> str:
        return format_html('<span dir="auto">{}</span>', Truncator(reply.text).chars(100))
