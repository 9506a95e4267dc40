"""The pages of memories and proposals, with the parts that need the embedder and the chats."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories_app.errors import MemoryOperationError
from memories_app.models import Memory, MergeProposal, Visibility
from memories_app.review.presentation import MemoryPages, ProposalPages
from memoryproject.foundation.admin_kit.display import shown_link
from memoryproject.foundation.integrations.embedders.base import Embedder
from sessions_app.conversations.facade import ChatGoneError, chats_keep
from sessions_app.embedding.facade import embedder
from sessions_app.forgetting.presentation import ForgetAction
from sessions_app.memories.admin.memory_search import search_memories
from sessions_app.memories.admin.provenance import (
    answers_that_recalled,
    chat_short_names,
    chat_titles,
    chats_called,
    message_places,
)
from sessions_app.memories.admin.table_pages import TableImportPages
from sessions_app.memories.admin.transfer_pages import MemoryTransfer
from sessions_app.models import Chat
from sessions_app.presentation.chat_page import chat_gone_text, contact_typed
from sessions_app.presentation.links import contact_address


@admin.register(Memory)
class MemoryAdmin(ForgetAction, TableImportPages, MemoryTransfer, MemoryPages):
    actions = (*MemoryPages.actions, "export_selected", "forget_selected")
    unbounded_actions = ("export_selected", "forget_selected")
    search_help_text = gettext_lazy("By meaning and words; or an id, or a chat's address")

    def get_urls(self) -> list[URLPattern]:
        return [*self.table_urls(), *self.transfer_urls(), *super().get_urls()]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Sort by relevance unless another order is requested."""
        found, note = search_memories(request, queryset, search_term, self.embedder())
        page: Any = request
        page.memory_search = note
        return found.order_by(*queryset.query.order_by) if "o" in request.GET else found, False

    def get_list_display(self, request: HttpRequest) -> Any:
        """Show the score of search results."""
        first, *others = super().get_list_display(request)
        if not request.GET.get("q"):
            return (first, *others)
        return (first, "shown_score", *others)

    @admin.display(description=gettext_lazy("score, similarity"))
    def shown_score(self, memory: Any) -> str:
        """Mark memories that would be recalled for a turn."""
        if memory.score is None:
            return "–"
        relevant = memory.score >= settings.RECALL_MIN_SIMILARITY
        label = _("would be recalled") if relevant else _("too weak to be recalled")
        similarity = "–" if memory.similarity is None else f"{memory.similarity:.2f}"
        return format_html(
            '<span class="score{}">{}</span> <span class="quiet">{}</span>'
            '<span class="{}"> {}</span>',
            " relevant" if relevant else "",
            f"{memory.score:.2f}",
            similarity,
            "sr-only" if relevant else "quiet too-weak",
            label,
        )

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        context = {"can_export": self.has_export_permission(request)}
        return super().changelist_view(request, {**context, **(extra_context or {})})

    def embedder(self) -> Embedder:
        return embedder()

    def find_chat(self, named: str) -> UUID | None:
        chat = contact_typed(named)
        return None if chat is None else chat.pk

    def keep_chat(self, chat_id: UUID) -> None:
        try:
            chats_keep([chat_id])
        except ChatGoneError:
            raise MemoryOperationError(chat_gone_text()) from None

    def find_chats(self, text: str) -> list[UUID]:
        return chats_called(text)

    def chat_link(self, chat_id: UUID) -> str:
        chat = Chat.objects.filter(pk=chat_id).first()
        if chat is None:
            return str(chat_id)
        return shown_link(contact_address(chat.pk), str(chat))

    def chat_names(self, chat_ids: set[UUID]) -> dict[UUID, str]:
        return chat_titles(chat_ids)

    def chat_short_names(self, chat_ids: set[UUID]) -> dict[UUID, str]:
        return chat_short_names(chat_ids)

    def source_places(self, request: HttpRequest, message_ids: set[UUID]) -> dict[UUID, str]:
        if not request.user.has_perm("sessions_app.view_message"):
            return {}
        return message_places(message_ids)

    def recalled_lately(self, request: HttpRequest, memory: Memory) -> list[dict[str, Any]]:
        if not request.user.has_perm("sessions_app.view_turn"):
            return []
        of_chat = memory.visibility == str(Visibility.CHAT)
        return answers_that_recalled(memory.pk, memory.chat_id if of_chat else None)


@admin.register(MergeProposal)
class MergeProposalAdmin(ProposalPages):
    def embedder(self) -> Embedder:
        return embedder()
