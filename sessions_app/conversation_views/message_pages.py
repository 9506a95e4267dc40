"""Admin pages of messages and their vectors."""

from collections.abc import Iterable
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _, gettext_lazy

from memoryproject.foundation.admin_kit.display import (
    column,
    shown_json,
    shown_link,
    shown_mark,
    shown_text,
)
from memoryproject.foundation.admin_kit.list_filters import period_filter
from memoryproject.foundation.admin_kit.staff_admin import ReadOnlyAdmin, sections
from memoryproject.foundation.admin_kit.staff_pages import OwnPage
from sessions_app.forgetting.presentation import ForgetAction
from sessions_app.media.presentation import media_page
from sessions_app.models import Message, MessageEmbedding, SummarizationMetadata
from sessions_app.models.messages import DeliveryStatus
from sessions_app.presentation.audited_view import ConversationAdmin, messages_found, vectors_found
from sessions_app.presentation.message_kinds import author_names, kind_of, shown_message, written_by

ARRIVED = (DeliveryStatus.DELIVERED, DeliveryStatus.READ, DeliveryStatus.PLAYED)


@admin.register(Message)
class MessageAdmin(ForgetAction, ConversationAdmin):
    actions = ("forget_selected",)
    read_as = "message"
    list_is_read = True
    list_display = ("said_at", "author", "short_text", "chat", "shown_delivery")
    row_title = "short_text"
    csv_columns: ClassVar[Any] = {"short_text": "whole_text"}
    list_filter = ("role", "delivery_status", "provider", period_filter("received_at"))
    find_rows = staticmethod(messages_found)
    search_fields = ("content",)
    search_help_text = gettext_lazy(
        "Words in any language and any form, an address or number, or a whole id. A part of a word "
        "is found among the newest messages."
    )
    # Any other order would sort a million rows.
    sortable_by = ("said_at", "order_num")
    list_select_related = ("chat", "session")
    fieldsets = sections(
        (None, "whole_text chat session order_num author shown_kind sums_up"),
        (gettext_lazy("Times"), "timestamp received_at edited_at revoked_at"),
        (
            gettext_lazy("Delivery"),
            "sender recipient delivery_status was_received answers provider number_id "
            "provider_message_id",
        ),
        (gettext_lazy("Details"), "tokens image_path shown_media shown_metadata"),
        (gettext_lazy("Before it was edited"), "shown_history", {"classes": ("collapse",)}),
    )
    own_pages: ClassVar[Any] = {"media": OwnPage("<uuid:message_id>/media/", media_page)}

    def complete_rows(self, request: HttpRequest, rows: Iterable[Message]) -> None:
        names = author_names(rows)
        for message in rows:
            message.authors = names  # type: ignore[attr-defined]

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """Order one session from its beginning, and all other lists by the newest first."""
        return ("order_num",) if _is_one_session(request) else ("-received_at", "-order_num")

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        """Leave out the chat within one session, where it is always the same."""
        if _is_one_session(request):
            return ("order_num", "author", "short_text", "shown_delivery", "said_at")
        return self.list_display

    @admin.display(description=gettext_lazy("received"), ordering="received_at")
    def said_at(self, message: Message) -> object:
        return message.received_at

    @admin.display(description=gettext_lazy("written by"), ordering="role")
    def author(self, message: Message) -> str:
        names: dict[int, str] | None = getattr(message, "authors", None)
        if names is None:
            names = author_names([message])
        return format_html("<bdi>{}</bdi>", written_by(message, message.chat, names))

    @admin.display(description=gettext_lazy("content"))
    def short_text(self, message: Message) -> str:
        return _revoked() if message.revoked_at else shown_message(message)

    @admin.display(description=gettext_lazy("content"))
    def whole_text(self, message: Message) -> str:
        return _revoked() if message.revoked_at else shown_text(message.content)

    @admin.display(description=gettext_lazy("kind"))
    def shown_kind(self, message: Message) -> str:
        kind = kind_of(message.kind)
        return str(kind.name) if kind else _("Text")

    @admin.display(description=gettext_lazy("summary of"))
    def sums_up(self, message: Message) -> str:
        made = SummarizationMetadata.objects.filter(summary_message=message).first()
        if made is None:
            return "–"
        address = reverse("admin:sessions_app_summarizationmetadata_change", args=[made.pk])
        label = _("messages %(first)d to %(last)d")
        return shown_link(address, label % {"first": made.first_order, "last": made.last_order})

    @admin.display(description=gettext_lazy("delivery"), ordering="delivery_status")
    def shown_delivery(self, message: Message) -> str:
        if not message.delivery_status:
            return ""
        tone = "good" if message.delivery_status in ARRIVED else ""
        if message.delivery_status == DeliveryStatus.FAILED:
            tone = "bad"
        return shown_mark(message.get_delivery_status_display(), tone)

    shown_media = column(gettext_lazy("media"), lambda message: shown_json(message.media))
    shown_metadata = column(gettext_lazy("metadata"), lambda message: shown_json(message.metadata))
    shown_history = column(gettext_lazy("history"), lambda message: shown_json(message.history))


def _revoked() -> SafeString:
    return format_html('<em class="quiet">{}</em>', _("deleted by the sender"))


def _is_one_session(request: HttpRequest) -> bool:
    return "session__session_id__exact" in request.GET


@admin.register(MessageEmbedding)
class MessageEmbeddingAdmin(ReadOnlyAdmin):
    list_display = ("message", "model")
    list_filter = ("model",)
    find_rows = staticmethod(vectors_found)
    search_fields = ("message",)
    search_help_text = gettext_lazy("As messages are found; those of the newest 2,000 that fit.")
    sortable_by = ()
    list_select_related = ("message",)
    exclude = ("vector",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[MessageEmbedding]:
        return super().get_queryset(request).defer("vector", "message__terms")
