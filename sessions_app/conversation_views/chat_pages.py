"""Admin pages of chats, of their addresses, and of sessions with links to their messages."""

from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from memoryproject.foundation.admin_kit import staff_admin
from memoryproject.foundation.admin_kit.display import column, moment_shown, shown_link, shown_mark
from memoryproject.foundation.admin_kit.list_csv import PARAMETER as CSV
from memoryproject.foundation.admin_kit.list_filters import choice_filter
from memoryproject.foundation.admin_kit.staff_pages import OwnPage, is_live, rights_required
from memoryproject.foundation.audit.audit_events import staff_edit_record
from memoryproject.foundation.errors.stored_errors import translate_error
from memoryproject.foundation.process.narrowing import instance
from sessions_app.cards.admin import MakeCards, card_link
from sessions_app.conversation_views.conversation_page import conversation_page
from sessions_app.conversations.chat_queries import with_address
from sessions_app.forgetting.presentation import ForgetAction
from sessions_app.inbox.filters_page import FILTER_PAGES
from sessions_app.inbox.inbox import chosen_chats, inbox_fragment, inbox_page
from sessions_app.inbox.inbox_list import inbox_csv
from sessions_app.inbox.review_actions import REVIEW_PAGES
from sessions_app.limits.presentation import ACCESS_PAGES, AccessActions
from sessions_app.models import Chat, ChatAddress, ChatSession, SummaryWork
from sessions_app.models.sessions import SessionStatus
from sessions_app.presentation.audited_view import ConversationAdmin
from sessions_app.presentation.links import chat_links, list_address, messages_address


class AddressInline(staff_admin.StaffTabularInline):
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
        fields = ("memory_enabled", "owner_pause_minutes")
        labels: ClassVar = {"memory_enabled": gettext_lazy("Memory")}
        help_texts: ClassVar = {
            "memory_enabled": gettext_lazy(
                "Off: the assistant answers from the message alone and keeps nothing of what is "
                "said from then on."
            )
        }
        widgets: ClassVar = {"memory_enabled": MemorySwitch}


# The staff who have a conversation open, kept in the cache for less than a minute.


# The open page calls every 10 seconds; who hasn't called for longer has left.
LASTS_SECONDS = 25


def viewer_seen(*, chat_id: UUID, user: User) -> list[str]:
    """Record that a user has the chat open; return the names of the others, in order.

    Two users who call at the same moment may miss each other until the next call.
    """
    now = timezone.now().timestamp()
    key = f"viewers:{chat_id}"
    others = {
        number: (name, at)
        for number, (name, at) in cache.get(key, {}).items()
        if number != user.pk and now - at < LASTS_SECONDS
    }
    own = (user.get_full_name() or user.get_username(), now)
    cache.set(key, {**others, user.pk: own}, LASTS_SECONDS)
    return sorted(name for name, _at in others.values())


# Tell the open page of a conversation who else has it open.


def viewers_page(request: HttpRequest, chat_id: UUID) -> HttpResponse:
    """Return ``text``, for people, empty if nobody else is there; no message is read."""
    rights_required(request, "sessions_app.view_chat", "sessions_app.view_message")
    get_object_or_404(Chat.objects.only("pk"), pk=chat_id)
    names = viewer_seen(chat_id=chat_id, user=instance(request.user, User))
    text = ngettext("%(names)s is viewing", "%(names)s are viewing", len(names))
    return JsonResponse({"text": text % {"names": ", ".join(names)} if names else ""})


# Chats.


@admin.register(Chat)
class ChatAdmin(AccessActions, ForgetAction, ConversationAdmin):
    """Admin pages of chats: staff read conversations, and switch memory on and off.

    The addresses of a chat come from the provider and can't be edited.
    """

    list_title = gettext_lazy("Inbox")
    actions = ("allow_selected", "block_selected", "undecide_selected", "forget_selected")
    form = ChatForm
    read_as = "chat"
    allowed = ("change",)
    editable = ("memory_enabled", "owner_pause_minutes")
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
    fieldsets = staff_admin.sections(
        (None, "memory_enabled owner_pause_minutes links"),
        (gettext_lazy("Who it is"), "client_name staff_name client_phone kind language"),
        (
            gettext_lazy("Technical details"),
            "whatsapp_chat provider number_id created_at updated_at id",
            {"classes": ["collapse"]},
        ),
    )

    own_pages: ClassVar[Any] = {
        "conversation": OwnPage("<uuid:chat_id>/conversation/", conversation_page),
        "viewers": OwnPage("<uuid:chat_id>/viewers/", viewers_page, "GET"),
        **REVIEW_PAGES,
        **FILTER_PAGES,
        **ACCESS_PAGES,
    }

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
            return inbox_page(request, self._more(request))
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

    def get_object(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Return the chat with its reader, whose rights decide which pages are linked."""
        chat: Any = super().get_object(request, *args, **kwargs)
        if chat is not None:
            chat.reader = request.user
        return chat

    def save_model(self, request: HttpRequest, obj: Chat, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        staff_edit_record(request, "chat.update", "chat", obj.pk, form.changed_data)

    @admin.display(description=gettext_lazy("memory"), ordering="memory_enabled")
    def memory(self, chat: Chat) -> str:
        if chat.memory_enabled is None:
            return _("on") if settings.ENABLE_MEMORY_SYSTEM else _("off")
        if chat.memory_enabled:
            return shown_mark(_("on for this chat"), "good")
        return shown_mark(_("off for this chat"), "bad")

    @admin.display(description=gettext_lazy("kind"))
    def kind(self, chat: Chat) -> str:
        return _("A group") if chat.is_group else _("A person")

    links = column(gettext_lazy("related pages"), lambda chat: chat_links(chat, chat.reader))


class FoundByNumber(staff_admin.ReadOnlyAdmin):
    """A list of rows of chats, whose search also takes a number as people write it."""

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        found, may_repeat = super().get_search_results(request, queryset, search_term)
        if any(map(str.isdigit, search_term)):
            chats = Chat.objects.filter(with_address(search_term)).order_by()
            found |= queryset.filter(chat__in=chats.values("pk"))
        return found, may_repeat


@admin.register(ChatAddress)
class ChatAddressAdmin(FoundByNumber):
    list_display = ("address", "provider", "chat", "left_at", "created_at")
    list_filter = ("provider",)
    search_fields = ("address", "chat__whatsapp_chat", "chat__client_name")
    list_select_related = ("chat",)


# Sessions.


STATUS_FILTER = choice_filter(
    "status",
    gettext_lazy("status"),
    {
        "": (gettext_lazy("Not archived"), ~Q(status=SessionStatus.ARCHIVED)),
        **{key: (label, Q(status=key)) for key, label in SessionStatus.choices},
        "all": (gettext_lazy("All"), Q()),
    },
)


@admin.register(ChatSession)
class ChatSessionAdmin(FoundByNumber, ForgetAction, MakeCards):
    actions = ("make_selected_cards", "forget_selected")
    read_as = "session"
    list_display = ("chat", "messages_link", "shown_status", "last_active", "created_at")
    list_filter = (STATUS_FILTER, "last_active")
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

    def row_name(self, request: HttpRequest, row: Any) -> str:
        return f"{row.chat}, {moment_shown(row.created_at)}"

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

    card = column(gettext_lazy("memory card"), card_link)

    @admin.display(description=gettext_lazy("status"), ordering="status")
    def shown_status(self, session: ChatSession) -> str:
        tone = "good" if session.status == SessionStatus.ACTIVE else ""
        return shown_mark(session.get_status_display(), tone)
