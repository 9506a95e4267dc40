"""Chats and their addresses."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import path

from memoryproject.audit.events import Actor
from memoryproject.audit.staff import staff_edit_record
from memoryproject.lib.admin_display import shown_link, shown_state
from memoryproject.lib.read_only_admin import ReadOnlyAdmin
from sessions_app.admin.conversation import conversation_address, conversation_page
from sessions_app.admin.forget import ForgetAction
from sessions_app.admin.links import chat_links
from sessions_app.admin.reading import ConversationAdmin
from sessions_app.models import Chat, ChatAddress, ForgetReceipt
from sessions_app.services.forget.carry_out import ForgetTools
from sessions_app.services.forget.kinds import chat_forget


class AddressInline(admin.TabularInline):  # type: ignore[type-arg]
    model = ChatAddress
    extra = 0
    can_delete = False
    readonly_fields = ("provider", "address", "left_at", "created_at")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class MemorySwitch(forms.NullBooleanSelect):
    """Says what each choice means, and what the setting is."""

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        default = "on" if settings.ENABLE_MEMORY_SYSTEM else "off"
        choices = (
            ("unknown", f"as ENABLE_MEMORY_SYSTEM says ({default})"),
            ("true", "on for this chat"),
            ("false", "off for this chat"),
        )
        forms.Select.__init__(self, attrs, choices)


class ChatForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Chat
        fields = ("memory_enabled",)
        labels: ClassVar = {"memory_enabled": "Memory"}
        help_texts: ClassVar = {
            "memory_enabled": "Off: the assistant answers from the message alone and keeps "
            "nothing of what is said from then on."
        }
        widgets: ClassVar = {"memory_enabled": MemorySwitch}


@admin.register(Chat)
class ChatAdmin(ForgetAction, ConversationAdmin):
    """Staff read the whole conversation, and switch memory on and off for a chat; its addresses
    come from the provider."""

    actions = ("forget_selected",)
    forget_note = "The person is erased: everything said, and all memories that came from it."

    form = ChatForm
    read_as = "chat"
    list_display = (
        "whatsapp_chat",
        "client_name",
        "conversation_link",
        "kind",
        "provider",
        "memory",
        "updated_at",
    )
    list_filter = ("provider", "is_group", "memory_enabled")
    search_fields = ("whatsapp_chat", "client_name", "client_phone", "addresses__address")
    inlines: ClassVar = [AddressInline]
    readonly_fields = (
        "id",
        "whatsapp_chat",
        "client_name",
        "client_phone",
        "links",
        "provider",
        "number_id",
        "is_group",
        "language",
        "created_at",
        "updated_at",
    )
    fields = (*readonly_fields[1:5], "memory_enabled", *readonly_fields[5:], "id")

    def get_urls(self) -> list[Any]:
        page = self.admin_site.admin_view(self.conversation)
        own = path("<uuid:chat_id>/conversation/", page, name="sessions_app_chat_conversation")
        return [own, *super().get_urls()]

    def conversation(self, request: HttpRequest, chat_id: UUID) -> HttpResponse:
        return conversation_page(request, chat_id, self.admin_site.each_context(request))

    @admin.display(description="conversation")
    def conversation_link(self, chat: Chat) -> str:
        return shown_link(conversation_address(chat.pk), "read")

    def forget(self, key: UUID, tools: ForgetTools, actor: Actor) -> ForgetReceipt:
        return chat_forget(chat_id=key, tools=tools, actor=actor)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_change_permission(self, request, obj)

    def save_model(self, request: HttpRequest, obj: Chat, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        staff_edit_record(
            request,
            action="chat.update",
            object_type="chat",
            object_id=obj.pk,
            fields=form.changed_data,
        )

    @admin.display(description="kind", ordering="is_group")
    def kind(self, chat: Chat) -> str:
        return "group" if chat.is_group else "person"

    @admin.display(description="memory", ordering="memory_enabled")
    def memory(self, chat: Chat) -> str:
        if chat.memory_enabled is None:
            return "on" if settings.ENABLE_MEMORY_SYSTEM else "off"
        own = "on for this chat" if chat.memory_enabled else "off for this chat"
        return shown_state(own, good=["on for this chat"], bad=["off for this chat"])

    @admin.display(description="to read")
    def links(self, chat: Chat) -> str:
        return chat_links(chat)


@admin.register(ChatAddress)
class ChatAddressAdmin(ReadOnlyAdmin):
    list_display = ("address", "provider", "chat", "left_at", "created_at")
    list_filter = ("provider",)
    search_fields = ("address", "chat__whatsapp_chat", "chat__client_name")
    list_select_related = ("chat",)
