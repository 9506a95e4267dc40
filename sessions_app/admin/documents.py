"""Documents: staff upload them, see what became of them, and forget them. They stand here
because they are read by this app's workers and belong to its chats."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.utils.html import format_html

from memories_app.models import DocumentState, SourceDocument, Visibility
from memories_app.services.document_files import file_remove
from memoryproject.audit.events import Actor
from memoryproject.lib.admin_display import shown_link, shown_short, shown_state, shown_table
from memoryproject.lib.read_only_admin import ReadOnlyAdmin
from sessions_app import wiring
from sessions_app.admin.forget import ForgetAction
from sessions_app.admin.links import list_address
from sessions_app.models import Chat, ForgetReceipt
from sessions_app.services.addresses import chat_find
from sessions_app.services.document_upload import document_upload
from sessions_app.services.forget.carry_out import ForgetTools
from sessions_app.services.forget.kinds import document_forget_with_proof

SHOWN_PASSAGES = 20


class UploadForm(forms.ModelForm):  # type: ignore[type-arg]
    """What staff say of a file; its text is read by a worker."""

    file = forms.FileField(help_text="PDF, Word (.docx), text or Markdown.", allow_empty_file=True)
    whatsapp_chat = forms.CharField(
        required=False, help_text="Whose document it is, such as 15550100123@c.us; or empty."
    )

    class Meta:
        model = SourceDocument
        fields: ClassVar = ["visibility"]

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        most = wiring.document_limits().size
        if file.size > most:
            raise forms.ValidationError(f"The file is larger than {filesizeformat(most)}.")
        return file

    def clean_whatsapp_chat(self) -> Chat | None:
        address = self.cleaned_data["whatsapp_chat"].strip()
        chat = chat_find(address) if address else None
        if address and chat is None:
            raise forms.ValidationError("There is no such chat.")
        return chat

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        needs_chat = cleaned.get("visibility") == str(Visibility.CHAT)
        if needs_chat and not cleaned.get("whatsapp_chat") and not self.errors:
            self.add_error("whatsapp_chat", "A document that is visible in one chat needs it.")
        return cleaned


@admin.register(SourceDocument)
class SourceDocumentAdmin(ForgetAction, ReadOnlyAdmin):
    forget_note = "All memories that were read of a document go along."
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
    date_hierarchy = "created_at"
    actions = ("forget_selected",)
    fieldsets = (
        (None, {"fields": ("name", "title", "shown_state", "error", "shown_warnings")}),
        ("What was read", {"fields": ("pages", "characters", "all_passages", "first_passages")}),
        (
            "Where it comes from",
            {"fields": ("visibility", "chat_id", "source_message_id", "uploaded_by")},
        ),
        (
            "Record",
            {"fields": ("document_id", "media_type", "shown_size", "sha256", "created_at")},
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[SourceDocument]:
        return super().get_queryset(request).annotate(passage_count=Count("memories"))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return admin.ModelAdmin.has_add_permission(self, request)

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        if obj is None:
            return UploadForm
        return super().get_form(request, obj, change, **kwargs)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return [(None, {"fields": ("file", "visibility", "whatsapp_chat")})]
        return self.fieldsets

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        initial: dict[str, Any] = super().get_changeform_initial_data(request)
        return {"visibility": str(Visibility.OWNER), **initial}

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Take the upload in and leave it to a worker."""
        received = document_upload(
            blocks=form.cleaned_data["file"].chunks(),
            name=form.cleaned_data["file"].name,
            folder=wiring.documents_folder(),
            most_bytes=wiring.document_limits().size,
            chat=form.cleaned_data["whatsapp_chat"],
            visibility=form.cleaned_data["visibility"],
            actor=_staff(request),
        )
        # The form's own record is none: the one that is stored stands for it.
        obj.__dict__.update(received.document.__dict__)
        if received.duplicate:
            self.message_user(request, "This file was read before.", messages.WARNING)
        else:
            document_id = received.document.document_id
            transaction.on_commit(lambda: wiring.enqueue_document(document_id))

    def forget(self, key: UUID, tools: ForgetTools, actor: Actor) -> ForgetReceipt:
        receipt = document_forget_with_proof(document_id=key, tools=tools, actor=actor)
        file_remove(wiring.documents_folder(), key)
        return receipt

    @admin.display(description="state", ordering="state")
    def shown_state(self, document: SourceDocument) -> str:
        return shown_state(
            document.state, good=[str(DocumentState.READY)], bad=[str(DocumentState.FAILED)]
        )

    @admin.display(description="passages", ordering="passage_count")
    def passages(self, document: Any) -> int:
        count: int = document.passage_count
        return count

    @admin.display(description="size", ordering="size")
    def shown_size(self, document: SourceDocument) -> str:
        return filesizeformat(document.size)

    @admin.display(description="warnings")
    def shown_warnings(self, document: SourceDocument) -> str:
        return " ".join(document.warnings) or "–"

    @admin.display(description="passages")
    def all_passages(self, document: Any) -> str:
        address = list_address("memories_app_memory", document__document_id__exact=document.pk)
        return format_html("{} · {}", document.passage_count, shown_link(address, "all of them"))

    @admin.display(description="the first of them")
    def first_passages(self, document: SourceDocument) -> str:
        first = document.memories.order_by("position")[:SHOWN_PASSAGES]
        rows = (
            (each.position, each.metadata.get("page", "–"), shown_short(each.content))
            for each in first
        )
        return shown_table(("no.", "page", "text"), rows)


def _staff(request: HttpRequest) -> Actor:
    return Actor("staff", name=request.user.get_username())
