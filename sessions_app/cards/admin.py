"""Admin of memory cards; it is in this app because cards are made of its sessions."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from cards_app.models import MemoryCard
from memoryproject.foundation.admin_kit.display import (
    column,
    shown_labelled,
    shown_link,
    shown_short,
    shown_text,
)
from memoryproject.foundation.admin_kit.list_filters import choice_filter
from memoryproject.foundation.admin_kit.staff_admin import sections
from memoryproject.foundation.retrieval.query import with_words
from memoryproject.foundation.text.phone_numbers import number_shown
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.cards.dependencies import card_maker
from sessions_app.cards.make_cards import cards_make
from sessions_app.conversations.chat_queries import chat_at
from sessions_app.conversations.session_lifecycle import cards_request
from sessions_app.models import CardWork, ChatSession
from sessions_app.models.messages import Role
from sessions_app.presentation.audited_view import ConversationAdmin
from sessions_app.presentation.links import chat_name_query, contact_address, messages_address

# The workers make the cards of a larger selection.
MADE_AT_ONCE = 20
# The parts of a card, and their labels on the pages.
HELD = {
    "decisions": gettext_lazy("decisions"),
    "todos": gettext_lazy("tasks"),
    "entities": gettext_lazy("names"),
    "notable_quotes": gettext_lazy("questions"),
}


HOLDS_FILTER = choice_filter(
    "holds",
    gettext_lazy("what it holds"),
    {name: (label, ~Q(**{name: []})) for name, label in HELD.items()},
)


class MakeCards(ConversationAdmin):
    """Mixin for a page that makes the cards of selected sessions."""

    def has_make_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may change cards; read-only users may not."""
        return bool(request.user.has_perm("sessions_app.review_chat"))

    def make_cards(self, request: HttpRequest, session_ids: list[Any]) -> None:
        """Make a few cards at once; mark a larger number as due."""
        if len(session_ids) > MADE_AT_ONCE:
            cards_request(session_ids=session_ids)
            count = len(session_ids)
            message = ngettext(
                "%(count)d card is being made.", "%(count)d cards are being made.", count
            )
        else:
            count = cards_make(session_ids=session_ids, make=card_maker())
            message = ngettext(
                "%(count)d card is as the messages are now.",
                "%(count)d cards are as the messages are now.",
                count,
            )
        text = message % {"count": count}
        messages.success(request, text)


def _cards_found(queryset: QuerySet[MemoryCard], search_term: str) -> QuerySet[MemoryCard]:
    """Search by words as recall does, or by a whole id or address."""
    term = search_term.replace("\x00", " ").strip()
    if not term:
        return queryset
    if (key := uuid_or_none(term)) is not None:
        return queryset.filter(Q(session_id=key) | Q(chat_id=key))
    if "@" in term:
        chat = chat_at(term)
        return queryset.filter(chat_id=chat.pk) if chat else queryset.none()
    return with_words(queryset, term)


@admin.register(MemoryCard)
class MemoryCardAdmin(MakeCards):
    read_as = "card"
    list_is_read = True
    list_display = ("short_title", "chat", "ended", "counted", "session_started_at", "extracted_at")
    list_filter = (HOLDS_FILTER, "session_started_at")
    sortable_by = ("session_started_at",)
    find_rows = staticmethod(_cards_found)
    search_fields = ("title",)
    search_help_text = gettext_lazy(
        "Words of a card in any of their forms, a session's or a chat's id"
    )
    actions = ("make_again",)
    fieldsets = sections(
        (None, "shown_title chat_link session_link shown_due"),
        (gettext_lazy("How it ended"), "shown_last_decision shown_open shown_acts"),
        (gettext_lazy("What was said"), "bullets shown_quotes"),
        (gettext_lazy("What follows from it"), "shown_decisions shown_todos"),
        (gettext_lazy("What it was about"), "shown_entities shown_keywords"),
        (gettext_lazy("As YAML"), "shown_yaml", {"classes": ("collapse",)}),
        (gettext_lazy("Record"), "session_id session_started_at extracted_at algorithm_version"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[MemoryCard]:
        named = chat_name_query("chat_id")
        return super().get_queryset(request).defer("terms").annotate(chat_name=named)

    @admin.action(description=gettext_lazy("Make the card again"), permissions=["make"])
    def make_again(self, request: HttpRequest, queryset: QuerySet[MemoryCard]) -> None:
        self.make_cards(request, list(queryset.values_list("pk", flat=True)))

    short_title = column(gettext_lazy("title"), lambda card: shown_short(card.title))

    @admin.display(description=gettext_lazy("chat"))
    def chat(self, card: Any) -> str:
        return format_html("<bdi>{}</bdi>", number_shown(card.chat_name or "–"))

    @admin.display(description=gettext_lazy("decisions, tasks"))
    def counted(self, card: MemoryCard) -> str:
        if not card.decisions and not card.todos:
            return "–"
        return f"{len(card.decisions)}, {len(card.todos)}"

    @admin.display(description=gettext_lazy("how it ended"))
    def ended(self, card: MemoryCard) -> str:
        """Render what was settled last, and what is open since."""
        ended = card.outcome or {}
        lines = [("", ended["settled"])] if ended.get("settled") else []
        lines += [(f"{_('open')}: ", text) for text in ended.get("open", [])[-1:]]
        shown = ((label, shown_short(text)) for label, text in lines)
        return format_html_join("", "<div>{}{}</div>", shown) or "–"

    @admin.display(description=gettext_lazy("settled last"))
    def shown_last_decision(self, card: MemoryCard) -> str:
        if not card.card.language_covered:
            return _("The rules do not know this language: decisions and tasks may be missing.")
        return shown_text((card.outcome or {}).get("settled", ""))

    @admin.display(description=gettext_lazy("open"))
    def shown_open(self, card: MemoryCard) -> str:
        return _shown_list((card.outcome or {}).get("open", []))

    @admin.display(description=gettext_lazy("has to act"))
    def shown_acts(self, card: MemoryCard) -> str:
        acts = (card.outcome or {}).get("acts", "")
        return _role_name(acts) if acts else "–"

    shown_title = column(gettext_lazy("title"), lambda card: shown_text(card.title))

    @admin.display(description=gettext_lazy("chat"))
    def chat_link(self, card: Any) -> str:
        address = contact_address(card.chat_id)
        return shown_link(address, number_shown(card.chat_name or str(card.chat_id)))

    @admin.display(description=gettext_lazy("session"))
    def session_link(self, card: MemoryCard) -> str:
        session = ChatSession.objects.filter(pk=card.session_id).first()
        if session is None:
            return "–"
        address = reverse("admin:sessions_app_chatsession_change", args=[session.pk])
        own = shown_link(
            address, _("%(status)s session") % {"status": session.get_status_display()}
        )
        read = shown_link(messages_address(session), _("read the whole conversation"))
        return format_html("{} · {}", own, read)

    @admin.display(description=gettext_lazy("up to date"))
    def shown_due(self, card: MemoryCard) -> str:
        due = CardWork.objects.filter(pk=card.session_id).exists()
        return _("it is being made again") if due else _("yes")

    @admin.display(description=gettext_lazy("first messages"))
    def bullets(self, card: MemoryCard) -> str:
        """Render the role apart from the text, which has its own direction."""
        parts = (bullet.removeprefix("[").partition("] ") for bullet in card.summary_bullets)
        shown = ((shown_labelled(_role_name(role), text),) for role, _, text in parts)
        return format_html_join("", "<div>{}</div>", shown) or "–"

    @admin.display(description=gettext_lazy("questions and exclamations"))
    def shown_quotes(self, card: MemoryCard) -> str:
        return _shown_list(card.notable_quotes)

    shown_decisions = column(gettext_lazy("decisions"), lambda card: _shown_list(card.decisions))
    shown_todos = column(gettext_lazy("tasks"), lambda card: _shown_list(card.todos))

    @admin.display(description=gettext_lazy("names"))
    def shown_entities(self, card: MemoryCard) -> str:
        return shown_text(", ".join(card.entities))

    @admin.display(description=gettext_lazy("keywords"))
    def shown_keywords(self, card: MemoryCard) -> str:
        return shown_text(", ".join(card.keywords))

    @admin.display(description=gettext_lazy("YAML"))
    def shown_yaml(self, card: MemoryCard) -> str:
        return format_html('<pre class="data">{}</pre>', card.card.to_yaml())


def card_link(session: ChatSession) -> str:
    """Return a link to a session's card."""
    card = MemoryCard.objects.filter(pk=session.pk).only("title").first()
    if card is None:
        return _("none yet: it is made when the session ends, or by the list's action")
    return shown_link(reverse("admin:cards_app_memorycard_change", args=[card.pk]), card.title)


def _role_name(role: str) -> str:
    return str(dict(Role.choices).get(role, role))


def _shown_list(items: list[str]) -> str:
    if not items:
        return "–"
    return format_html_join("", "<div>{}</div>", ((shown_text(item),) for item in items))
