"""The pages of memories and proposals, with what only this app knows: embedder and chats."""

from __future__ import annotations

from uuid import UUID

from django.contrib import admin
from django.urls import reverse

from memories_app.admin.memories import MemoryPages
from memories_app.admin.proposals import ProposalPages
from memories_app.models import Memory, MergeProposal
from memoryproject.audit.events import Actor
from memoryproject.integrations.embedders.base import Embedder
from memoryproject.lib.admin_display import shown_link
from sessions_app import wiring
from sessions_app.admin.forget import ForgetAction
from sessions_app.chat_selectors import chat_at
from sessions_app.models import Chat, ForgetReceipt
from sessions_app.services.forget.carry_out import ForgetTools
from sessions_app.services.forget.kinds import memory_forget


@admin.register(Memory)
class MemoryAdmin(ForgetAction, MemoryPages):
    actions = (*MemoryPages.actions, "forget_selected")
    forget_note = "What a memory had superseded goes along, and the message that told it."

    def forget(self, key: UUID, tools: ForgetTools, actor: Actor) -> ForgetReceipt:
        return memory_forget(memory_id=key, tools=tools, actor=actor)

    def embedder(self) -> Embedder:
        return wiring.embedder()

    def find_chat(self, whatsapp_chat: str) -> UUID | None:
        chat = chat_at(whatsapp_chat)
        return None if chat is None else chat.pk

    def chat_link(self, chat_id: UUID) -> str:
        chat = Chat.objects.filter(pk=chat_id).first()
        if chat is None:
            return str(chat_id)
        return shown_link(reverse("admin:sessions_app_chat_change", args=[chat.pk]), str(chat))


@admin.register(MergeProposal)
class MergeProposalAdmin(ProposalPages):
    def embedder(self) -> Embedder:
        return wiring.embedder()
