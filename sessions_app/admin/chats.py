"""Chats and their addresses."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest

from memoryproject.lib.read_only_admin import ReadOnlyAdmin
from sessions_app.models import Chat, ChatAddress


class AddressInline(admin.TabularInline):  # type: ignore[type-arg]
    model = ChatAddress
    extra = 0
    can_delete = False
    readonly_fields = ("provider", "address", "left_at", "created_at")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Chat)
class ChatAdmin(ReadOnlyAdmin):
    """Staff switch memory on and off for a chat; its addresses come from the provider."""

    list_display = (
        "whatsapp_chat",
        "client_name",
        "provider",
        "is_group",
        "memory_enabled",
        "updated_at",
    )
    list_filter = ("provider", "is_group", "memory_enabled", "language")
    search_fields = ("whatsapp_chat", "client_name", "client_phone", "addresses__address")
    inlines: ClassVar = [AddressInline]
    readonly_fields = (
        "id",
        "whatsapp_chat",
        "client_name",
        "client_phone",
        "provider",
        "number_id",
        "is_group",
        "language",
        "created_at",
        "updated_at",
    )
    fields = (*readonly_fields[:4], "memory_enabled", *readonly_fields[4:])

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_change_permission(self, request, obj)


@admin.register(ChatAddress)
class ChatAddressAdmin(ReadOnlyAdmin):
    list_display = ("address", "provider", "chat", "left_at", "created_at")
    list_filter = ("provider",)
    search_fields = ("address", "chat__whatsapp_chat", "chat__client_name")
    list_select_related = ("chat",)
