"""Admin pages of chats and their addresses."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.shortcuts import redirect
from django.urls import path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from memoryproject.foundation.admin_kit.display import shown_state
from memoryproject.foundation.admin_kit.list_csv import PARAMETER as CSV
from memoryproject.foundation.admin_kit.live import is_live
from memoryproject.foundation.admin_kit.staff_admin import ReadOnlyAdmin, StaffTabularInline
from memoryproject.foundation.audit.audit_events import staff_edit_record
from memoryproject.foundation.process.narrowing import instance
from sessions_app.conversation_views.admin.conversation_page import conversation_page
from sessions_app.conversation_views.session_actions import viewer_seen
from sessions_app.forgetting.presentation import ForgetAction
from sessions_app.inbox.presentation import (
    chosen_chats,
    filter_urls,
    inbox_csv,
    inbox_fragment,
    inbox_page,
    review_urls,
)
from sessions_app.limits.presentation import AccessActions, access_urls
from sessions_app.models import Chat, ChatAddress
from sessions_app.presentation.audited_view import ConversationAdmin
from sessions_app.presentation.links import chat_links


class AddressInline(StaffTabularInline):
    model = ChatAddress
    extra = 0
    can_delete = False
    readonly_fields = ("provider", "address", "left_at", "created_at")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class MemorySwitch(forms.NullBooleanSelect):
    """A field for a chat's memory that explains each choice and shows the setting."""

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        default = _("Default (on)") if settings.ENABLE_MEMORY_SYSTEM else _("Default (off)")
        choices = (
            ("unknown", default),
            ("true", _("on for this chat")),
            ("false", _("off for this chat")),
        )
        forms.Select.__init__(self, attrs, choices)


class ChatForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Chat
        fields = ("memory_enabled",)
        labels: ClassVar = {"memory_enabled": gettext_lazy("Memory")}
        help_texts: ClassVar = {
            "memory_enabled": gettext_lazy(
                "Off: the assistant answers from the message alone and keeps nothing of what is "
                "said from then on."
            )
        }
        widgets: ClassVar = {"memory_enabled": MemorySwitch}


@admin.register(Chat)
class ChatAdmin(AccessActions, ForgetAction, ConversationAdmin):
    """Admin pages of chats: staff read conversations, and switch memory on and off.

    The addresses of a chat come from the provider and can't be edited.
    """

    list_title = gettext_lazy("Inbox")
    actions = ("allow_selected", "block_selected", "undecide_selected", "forget_selected")
    form = ChatForm
    read_as = "chat"
    # The list itself is the inbox, with its own file; this one serves its actions.
    has_csv = False
    list_display = ("whatsapp_chat", "client_name", "memory")
    search_fields = (
        "whatsapp_chat",
        "client_name",
        "staff_name",
        "client_phone",
        "addresses__address",
    )
    inlines: ClassVar = [AddressInline]
    readonly_fields = (
        "id",
        "whatsapp_chat",
        "client_name",
        "staff_name",
        "client_phone",
        "links",
        "provider",
        "number_id",
        "kind",
        "language",
        "created_at",
        "updated_at",
        "memory",
    )
    fields = (*readonly_fields[1:6], "memory_enabled", *readonly_fields[6:-1], "id")

    def get_urls(self) -> list[Any]:
        page = self.admin_site.admin_view(self.conversation)
        own = path("<uuid:chat_id>/conversation/", page, name="sessions_app_chat_conversation")
        wrap = self.admin_site.admin_view
        viewers = path(
            "<uuid:chat_id>/viewers/", wrap(viewers_page), name="sessions_app_chat_viewers"
        )
        about_chats = [*review_urls(wrap), *filter_urls(wrap), *access_urls(wrap)]
        return [own, viewers, *about_chats, *super().get_urls()]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the inbox on GET; run the actions on chosen chats as the admin does."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method != "POST" and is_live(request):
            return inbox_fragment(request, self._more(request))
        if request.method != "POST" and CSV in request.GET:
            return inbox_csv(request)
        if request.method != "POST":
            return inbox_page(request, self.admin_site.each_context(request), self._more(request))
        if not chosen_chats(request):
            messages.warning(request, _("Tick the conversations first."))
            return redirect("admin:sessions_app_chat_changelist")
        return super().changelist_view(request, extra_context)

    def _more(self, request: HttpRequest) -> list[tuple[str, str]]:
        """Return the other actions on chosen chats, by name and description."""
        return [
            (name, str(description))
            for name, (_action, _name, description) in self.get_actions(request).items()
        ]

    def conversation(self, request: HttpRequest, chat_id: UUID) -> HttpResponse:
        return conversation_page(request, chat_id, self.admin_site.each_context(request))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Show the memory in words to users who may not switch it."""
        if self.has_change_permission(request, obj):
            return self.fields
        return ["memory" if name == "memory_enabled" else name for name in self.fields]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_change_permission(self, request, obj)

    def get_object(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Return the chat with its reader, whose rights decide which pages are linked."""
        chat: Any = super().get_object(request, *args, **kwargs)
        if chat is not None:
            chat.reader = request.user
        return chat

    def save_model(self, request: HttpRequest, obj: Chat, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        staff_edit_record(
            request,
            action="chat.update",
            object_type="chat",
            object_id=obj.pk,
            fields=form.changed_data,
        )

    @admin.display(description=gettext_lazy("memory"), ordering="memory_enabled")
    def memory(self, chat: Chat) -> str:
        if chat.memory_enabled is None:
            return _("on") if settings.ENABLE_MEMORY_SYSTEM else _("off")
        on, off = _("on for this chat"), _("off for this chat")
        return shown_state(on if chat.memory_enabled else off, good=[on], bad=[off])

    @admin.display(description=gettext_lazy("kind"))
    def kind(self, chat: Chat) -> str:
        return _("A group") if chat.is_group else _("A person")

    @admin.display(description=gettext_lazy("related pages"))
    def links(self, chat: Any) -> str:
        return chat_links(chat, chat.reader)


@admin.register(ChatAddress)
class ChatAddressAdmin(ReadOnlyAdmin):
    list_display = ("address", "provider", "chat", "left_at", "created_at")
    list_filter = ("provider",)
    search_fields = ("address", "chat__whatsapp_chat", "chat__client_name")
    list_select_related = ("chat",)


# Tell the open page of a conversation who else has it open.


def viewers_page(request: HttpRequest, chat_id: UUID) -> HttpResponse:
    """Return ``text``, for people, empty if nobody else is there; no message is read."""
    if not request.user.has_perms(["sessions_app.view_chat", "sessions_app.view_message"]):
        raise PermissionDenied
    if request.method != "GET":
        return HttpResponseNotAllowed(["GET"])
    if not Chat.objects.filter(pk=chat_id).exists():
        raise Http404("There is no such chat, or not any more.")
    names = viewer_seen(chat_id=chat_id, user=instance(request.user, User))
    text = ngettext("%(names)s is viewing", "%(names)s are viewing", len(names))
    return JsonResponse({"text": text % {"names": ", ".join(names)} if names else ""})
