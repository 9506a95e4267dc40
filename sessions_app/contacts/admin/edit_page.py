"""Let staff give a person a name of their own choice; WhatsApp's name stays beside it."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from memoryproject.foundation.admin_kit.stamped_form import ConflictCheckedForm
from memoryproject.foundation.audit.audit_events import staff_edit_record
from sessions_app.contacts.admin.contact_page import REVIEW, contact_name
from sessions_app.contacts.admin.list_page import SEE
from sessions_app.models import Chat
from sessions_app.presentation.chat_page import chat_or_404
from sessions_app.presentation.links import contact_address

TEMPLATE = "admin/contacts/edit.html"


class ContactForm(ConflictCheckedForm):
    class Meta:
        model = Chat
        fields = ("staff_name",)
        labels: ClassVar = {"staff_name": gettext_lazy("Name")}
        help_texts: ClassVar = {
            "staff_name": gettext_lazy(
                "Shown to staff instead of the name on WhatsApp. Leave empty to show that one."
            )
        }
        widgets: ClassVar = {"staff_name": forms.TextInput(attrs={"dir": "auto", "size": 40})}


@require_http_methods(["GET", "HEAD", "POST"])
def edit_page(request: HttpRequest, chat_id: UUID, site: dict[str, Any]) -> HttpResponse:
    """Show the form, and save it unless somebody else changed the same meanwhile."""
    if not request.user.has_perms((SEE, REVIEW)):
        raise PermissionDenied
    chat = chat_or_404(chat_id)
    form = ContactForm(request.POST if request.method == "POST" else None, instance=chat)
    if request.method == "POST" and _saved(request, form):
        messages.success(request, _("The contact was saved."))
        return redirect(contact_address(chat.pk))
    stored = chat_or_404(chat_id)
    context = {
        **site,
        "title": _("Edit a contact"),
        "opts": Chat._meta,
        "chat": stored,
        "name": contact_name(stored),
        "form": form,
    }
    return TemplateResponse(request, TEMPLATE, context)


def _saved(request: HttpRequest, form: ContactForm) -> bool:
    """Save under the lock that the form takes to look for changes by others."""
    with transaction.atomic():
        if not form.is_valid():
            return False
        chat = form.save(commit=False)
        chat.save(update_fields=["staff_name", "updated_at"])
        staff_edit_record(
            request,
            action="chat.update",
            object_type="chat",
            object_id=chat.pk,
            fields=form.changed_data,
            chat_id=chat.pk,
        )
    return True
