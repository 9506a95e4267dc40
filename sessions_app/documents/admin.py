"""Pages of documents: staff upload them, see their state, and forget them.

They are in this app because its workers read documents, and because documents belong to chats.
"""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.shortcuts import redirect
from django.template.defaultfilters import filesizeformat
from django.utils.html import format_html
from django.utils.translation import gettext as _, gettext_lazy
from unfold.widgets import UnfoldAdminTextInputWidget

from memories_app.documents.dependencies import build_document_limits, documents_folder
from memories_app.models import DocumentState, SourceDocument, Visibility
from memories_app.review.presentation import mark
from memoryproject.foundation.admin_kit.display import column, shown_link, shown_short, shown_table
from memoryproject.foundation.admin_kit.staff_admin import ReadOnlyAdmin, sections
from memoryproject.foundation.audit.audit_events import staff_actor
from memoryproject.foundation.errors.stored_errors import translate_error
from sessions_app.conversations.epochs import ChatGoneError
from sessions_app.documents.upload import document_upload, enqueue_document, with_passages
from sessions_app.forgetting.presentation import ForgetAction
from sessions_app.models import Chat
from sessions_app.presentation.links import chat_gone_text, contact_typed, list_address

SHOWN_PASSAGES = 20
STATES = {
    str(DocumentState.RECEIVED): gettext_lazy("received"),
    str(DocumentState.EXTRACTING): gettext_lazy("is being read"),
    str(DocumentState.READY): gettext_lazy("ready"),
    str(DocumentState.FAILED): gettext_lazy("failed"),
}


class UploadForm(forms.ModelForm):  # type: ignore[type-arg]
    """The properties of a file that staff enter; a worker reads its text."""

    file = forms.FileField(
        label=gettext_lazy("File"),
        help_text=gettext_lazy("PDF, Word (.docx), text or Markdown."),
        allow_empty_file=True,
        widget=forms.FileInput(attrs={"class": "field-input"}),
    )
    whatsapp_chat = forms.CharField(
        label=gettext_lazy("Client"),
        required=False,
        help_text=gettext_lazy("The name or number of the client whose document it is; or empty."),
        widget=UnfoldAdminTextInputWidget(attrs={"dir": "auto"}),
    )

    class Meta:
        model = SourceDocument
        fields: ClassVar = ["visibility"]

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        most = build_document_limits().size
        if file.size > most:
            raise forms.ValidationError(
                _("The file is larger than %(most)s.") % {"most": filesizeformat(most)}
            )
        return file

    def clean_whatsapp_chat(self) -> Chat | None:
        return contact_typed(self.cleaned_data["whatsapp_chat"])

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        needs_chat = cleaned.get("visibility") == str(Visibility.CHAT)
        if needs_chat and not cleaned.get("whatsapp_chat") and not self.errors:
            self.add_error("whatsapp_chat", _("A document that is visible in one chat needs it."))
        return cleaned


@admin.register(SourceDocument)
class SourceDocumentAdmin(ForgetAction, ReadOnlyAdmin):
    list_display = (
        "name",
        "shown_state",
        "pages",
        "passages",
        "visibility",
        "uploaded_by",
        "created_at",
    )
    list_filter = ("state", "visibility", "media_type", "created_at")
    search_fields = ("name", "title", "document_id", "sha256", "chat_id")
    sortable_by = ("name", "pages", "created_at")
    actions = ("forget_selected",)
    allowed = ("add",)
    add_fieldsets = ((None, {"fields": ("file", "visibility", "whatsapp_chat")}),)
    fieldsets = sections(
        (None, "name title shown_state shown_error shown_warnings"),
        (gettext_lazy("What was read"), "pages characters all_passages first_passages"),
        (gettext_lazy("Where it comes from"), "visibility chat_id source_message_id uploaded_by"),
        (gettext_lazy("Record"), "document_id media_type shown_size sha256 created_at"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[SourceDocument]:
        return with_passages(super().get_queryset(request))

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        if obj is None:
            return UploadForm
        return super().get_form(request, obj, change, **kwargs)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        initial: dict[str, Any] = super().get_changeform_initial_data(request)
        return {"visibility": str(Visibility.OWNER), **initial}

    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().add_view(request, *args, **kwargs)
        except ChatGoneError:
            messages.error(request, chat_gone_text())
            return redirect("admin:memories_app_sourcedocument_changelist")

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Receive the upload and queue it for a worker."""
        received = document_upload(
            blocks=form.cleaned_data["file"].chunks(),
            name=form.cleaned_data["file"].name,
            folder=documents_folder(),
            max_bytes=build_document_limits().size,
            chat=form.cleaned_data["whatsapp_chat"],
            visibility=form.cleaned_data["visibility"],
            actor=staff_actor(request),
        )
        # The stored document replaces the form's own unsaved record.
        obj.__dict__.update(received.document.__dict__)
        if received.duplicate:
            messages.warning(request, _("This file was read before."))
        else:
            document_id = received.document.document_id
            transaction.on_commit(lambda: enqueue_document(document_id))

    shown_state = column(gettext_lazy("state"), lambda document: mark(STATES, document.state))

    @admin.display(description=gettext_lazy("passages"))
    def passages(self, document: Any) -> int:
        count: int = document.passage_count
        return count

    shown_size = column(gettext_lazy("size"), lambda document: filesizeformat(document.size))

    @admin.display(description=gettext_lazy("warnings"))
    def shown_warnings(self, document: SourceDocument) -> str:
        return " ".join(map(translate_error, document.warnings)) or "–"

    @admin.display(description=gettext_lazy("error"))
    def shown_error(self, document: SourceDocument) -> str:
        return translate_error(document.error) or "–"

    @admin.display(description=gettext_lazy("passages"))
    def all_passages(self, document: Any) -> str:
        address = list_address(
            "memories_app_memory", document__document_id__exact=document.pk, state="all"
        )
        return format_html("{} · {}", document.passage_count, shown_link(address, _("all of them")))

    @admin.display(description=gettext_lazy("first passages"))
    def first_passages(self, document: SourceDocument) -> str:
        first = document.memories.order_by("position")[:SHOWN_PASSAGES]
        rows = (
            (each.position, each.metadata.get("page", "–"), shown_short(each.content))
            for each in first
        )
        return shown_table((_("no."), _("page"), _("text")), rows)
