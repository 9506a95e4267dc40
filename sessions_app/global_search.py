"""The search over people, messages and memories, which stands in the head of every page."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import PermissionDenied
from django.db.models import F, Value
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _, gettext_lazy

from memories_app.models import Memory, MemoryStatus
from memories_app.visibility import memories_for_staff
from memoryproject.foundation.admin_kit.staff_pages import OwnPage, staff_page
from memoryproject.foundation.audit.audit_events import staff_read_record
from memoryproject.foundation.process.narrowing import instance
from memoryproject.foundation.replica import TooSlowError, time_limit
from memoryproject.foundation.retrieval.query import with_words
from memoryproject.foundation.text.phone_numbers import number_shown
from sessions_app.conversations.chat_queries import number_searched, with_name
from sessions_app.inbox.filters_page import MAX_QUERY_LENGTH
from sessions_app.models import Chat
from sessions_app.presentation.links import contact_address, conversation_address, list_address
from sessions_app.recall.facade import Snippet, messages_searched, snippet_of

CONTACTS, MESSAGES, MEMORIES = "contacts", "messages", "memories"
TITLES = {
    CONTACTS: gettext_lazy("Contacts"),
    MESSAGES: gettext_lazy("Messages"),
    MEMORIES: gettext_lazy("Memories"),
}
RIGHTS = {
    CONTACTS: ("sessions_app.view_chat",),
    MESSAGES: ("sessions_app.view_chat", "sessions_app.view_message"),
    MEMORIES: ("memories_app.view_memory",),
}
# For each kind. Words that are in very many texts take longest.
MAX_SECONDS = 2

# The newest first, in an order that no index has: see recall.staff_search.MAX_UNINDEXED_ROWS.
_NEWEST = (F("created_at") + Value(timedelta())).desc()


@dataclass(frozen=True)
class Hit:
    """One result: two lines, and the address of its page.

    ``number`` is a person's, ``is_number`` where the words are in it. ``contact`` is the address
    of the page about the person.
    """

    address: str
    name: Snippet
    text: Snippet | None = None
    when: datetime | None = None
    number: str = ""
    is_number: bool = False
    contact: str = ""
    state: str = ""


@dataclass(frozen=True)
class Group:
    """The hits of one kind. ``more``: where all of them are, if there are more."""

    kind: str
    hits: Sequence[Hit] = ()
    more: str = ""
    is_part: bool = False
    is_slow: bool = False

    @property
    def title(self) -> str:
        return str(TITLES[self.kind])


def kinds_allowed(user: User | AnonymousUser) -> list[str]:
    """Return the kinds that this person may find."""
    return [kind for kind, rights in RIGHTS.items() if user.has_perms(rights)]


def everything_found(text: str, user: User, *, most: int) -> list[Group]:
    """Return what has these words, at most ``most`` of each kind that the person may see."""
    searches: dict[str, Callable[[str, int, bool], Group]] = {
        CONTACTS: _contacts,
        MESSAGES: _messages,
        MEMORIES: _memories,
    }
    kinds = kinds_allowed(user)
    return [_in_time(kind, searches[kind], text, most, MESSAGES in kinds) for kind in kinds]


def _in_time(
    kind: str, search: Callable[[str, int, bool], Group], text: str, most: int, reads: bool
) -> Group:
    try:
        with time_limit(MAX_SECONDS):
            return search(text, most, reads)
    except TooSlowError:
        return Group(kind, is_slow=True)


def _contacts(text: str, most: int, reads: bool) -> Group:
    chats = Chat.objects.filter(with_name(text), activity__isnull=False).select_related("activity")
    found = list(chats.order_by("-activity__last_at", "-activity__chat_id")[: most + 1])
    hits = [_contact(chat, text, reads) for chat in found[:most]]
    more = list_address("sessions_app_chat", q=text)
    return Group(CONTACTS, hits, more if len(found) > most else "")


def _contact(chat: Chat, text: str, reads: bool) -> Hit:
    address = contact_address(chat.pk)
    number = number_shown(chat.whatsapp_chat)
    return Hit(
        address=conversation_address(chat.pk) if reads else address,
        name=_marked(chat.staff_name or chat.client_name or number, text),
        when=chat.activity.last_at,
        number=number if chat.staff_name or chat.client_name else "",
        is_number=number_searched(text) != "" and number_searched(text) in chat.whatsapp_chat,
        contact=address if reads else "",
    )


def _messages(text: str, most: int, reads: bool) -> Group:
    found, is_part = messages_searched(text, 0, most + 1)
    hits = [
        Hit(
            address=conversation_address(message.chat_id, message.pk, query=text),
            name=Snippet(message.chat.shown_name, "", ""),
            text=snippet_of(message.content, text),
            when=message.timestamp,
        )
        for message in found[:most]
    ]
    more = f"{list_address('sessions_app_chat', q=text)}#hits"
    return Group(MESSAGES, hits, more if len(found) > most else "", is_part)


def _memories(text: str, most: int, reads: bool) -> Group:
    current = memories_for_staff().exclude(status=MemoryStatus.SUPERSEDED)
    memories = with_words(current, text).defer("terms", "likeness")
    found = list(memories.order_by(_NEWEST, "memory_id")[: most + 1])
    chats = Chat.objects.in_bulk({memory.chat_id for memory in found[:most] if memory.chat_id})
    hits = [
        _memory(memory, chats.get(memory.chat_id) if memory.chat_id else None, text)
        for memory in found[:most]
    ]
    more = list_address("memories_app_memory", q=text)
    return Group(MEMORIES, hits, more if len(found) > most else "")


def _memory(memory: Memory, chat: Chat | None, text: str) -> Hit:
    whose = chat.shown_name if chat else memory.get_visibility_display()
    is_active = memory.status == MemoryStatus.ACTIVE
    return Hit(
        address=reverse("admin:memories_app_memory_change", args=[memory.pk]),
        name=Snippet(str(whose), "", ""),
        text=snippet_of(memory.content, text),
        when=memory.created_at,
        state="" if is_active else str(memory.get_status_display()),
    )


def _marked(name: str, text: str) -> Snippet:
    """Return the whole name, divided at the words that were searched for."""
    found = re.search(re.escape(text), name, re.IGNORECASE)
    if found is None:
        return Snippet(name, "", "")
    return Snippet(name[: found.start()], found[0], name[found.end() :])


# The page, and the box in the head of every page.


TEMPLATE = "admin/global_search/page.html"
HITS = "admin/global_search/hits.html"
# Of each kind.
AS_TYPED, ON_THE_PAGE = 5, 20


def search_page(request: HttpRequest) -> HttpResponse:
    """Show what has the words of ``?words=``.

    With the header ``X-Search`` the response is the first hits alone, for the box in the head of
    a page, which sends that request while somebody types.
    """
    user = instance(request.user, User)
    kinds = kinds_allowed(user)
    if not kinds:
        raise PermissionDenied
    words = request.GET.get("words", "").replace("\x00", "").strip()[:MAX_QUERY_LENGTH]
    typed = "X-Search" in request.headers
    most = AS_TYPED if typed else ON_THE_PAGE
    groups = everything_found(words, user, most=most) if words else []
    if words and MESSAGES in kinds:
        staff_read_record(request, list="global search", searched=True)
    context = {
        "words": words,
        "groups": groups,
        "found": sum(len(group.hits) for group in groups),
        "longest": MAX_QUERY_LENGTH,
        "typed": typed,
    }
    if typed:
        return HttpResponse(render_to_string(HITS, context, request))
    return staff_page(request, TEMPLATE, _("Search"), context)


def search_address(user: User | AnonymousUser) -> str:
    """Return the address of the search; "" for those who may find nothing."""
    return reverse("admin:global_search") if kinds_allowed(user) else ""


SEARCH_PAGES = {"global_search": OwnPage("search/", search_page, "GET HEAD")}
