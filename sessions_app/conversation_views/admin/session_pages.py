"""Admin pages of sessions, with links to their messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memoryproject.foundation.admin_kit.display import shown_link, shown_mark
from memoryproject.foundation.errors.stored_errors import translate_error
from sessions_app.cards.presentation import MakeCards, card_link
from sessions_app.forgetting.presentation import ForgetAction
from sessions_app.models import ChatSession, SummaryWork
from sessions_app.models.sessions import SessionStatus
from sessions_app.presentation.links import list_address, messages_address


class StatusFilter(admin.SimpleListFilter):
    """Filter by status; archived sessions are shown only on request."""

    title = gettext_lazy("status")
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [*SessionStatus.choices, ("all", _("All"))]

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Name the first choice, which has no value and is the default."""
        first, *others = super().choices(changelist)
        yield {**first, "display": _("Not archived")}
        yield from others

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[ChatSession]
    ) -> QuerySet[ChatSession]:
        if self.value() == "all":
            return queryset
        if self.value() in SessionStatus.values:
            return queryset.filter(status=self.value())
        return queryset.exclude(status=SessionStatus.ARCHIVED)


@admin.register(ChatSession)
class ChatSessionAdmin(ForgetAction, MakeCards):
    actions = ("make_selected_cards", "forget_selected")
    read_as = "session"
    list_display = ("chat", "messages_link", "shown_status", "last_active", "created_at")
    list_filter = (StatusFilter, "last_active")
    search_fields = ("session_id", "chat__whatsapp_chat", "chat__client_name")
    list_select_related = ("chat",)
    date_hierarchy = "last_active"
    fields = (
        "session_id",
        "chat",
        "messages_link",
        "turns_link",
        "summaries_link",
        "card",
        "status",
        "created_at",
        "last_active",
        "expired_at",
        "message_counter",
        "total_tokens",
        "window_start",
        "summarized_until",
    )
    readonly_fields = fields

    @admin.display(description=gettext_lazy("messages"))
    def messages_link(self, session: ChatSession) -> str:
        return shown_link(
            messages_address(session), _("read %(n)d") % {"n": session.message_counter}
        )

    @admin.display(description=gettext_lazy("answers"))
    def turns_link(self, session: ChatSession) -> str:
        address = list_address("sessions_app_turn", session__session_id__exact=session.pk)
        return shown_link(address, _("how the answers came about"))

    @admin.display(description=gettext_lazy("summaries"))
    def summaries_link(self, session: ChatSession) -> str:
        count = session.summarizations.count()
        work = SummaryWork.objects.filter(session=session, due=True).first()
        if work is not None and work.error:
            text = _("tried again later: %(error)s") % {"error": translate_error(work.error)}
            return shown_mark(text, "bad")
        if not count:
            return _("none yet")
        address = list_address(
            "sessions_app_summarizationmetadata", session__session_id__exact=session.pk
        )
        return shown_link(address, _("read %(n)d") % {"n": count})

    @admin.action(description=gettext_lazy("Make the memory card"), permissions=["make"])
    def make_selected_cards(self, request: HttpRequest, queryset: QuerySet[ChatSession]) -> None:
        self.make_cards(request, list(queryset.values_list("pk", flat=True)))

    @admin.display(description=gettext_lazy("memory card"))
    def card(self, session: ChatSession) -> str:
        return card_link(session)

    @admin.display(description=gettext_lazy("status"), ordering="status")
    def shown_status(self, session: ChatSession) -> str:
        tone = "good" if session.status == SessionStatus.ACTIVE else ""
        return shown_mark(session.get_status_display(), tone)
