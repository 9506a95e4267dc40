"""Staff's list of what the business promised, with buttons that close a promise."""

from datetime import date, timedelta
from typing import Any, ClassVar
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import BadRequest, PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Case, F, QuerySet, Value, When
from django.db.models.fields.json import KT
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.dateparse import parse_date
from django.utils.translation import gettext as _, gettext_lazy, ngettext_lazy, pgettext_lazy

from memories_app.facts.validation import DROPPED, KEPT, OPEN, PROMISE_STATES
from memories_app.models import Memory
from memories_app.review.presentation import call_for_each
from memoryproject.foundation.admin_kit.list_csv import BoundedPaginator
from memoryproject.foundation.admin_kit.staff_admin import ReadOnlyAdmin
from memoryproject.foundation.admin_kit.staff_pages import OwnPage, staff_page
from memoryproject.foundation.audit.audit_events import staff_actor, staff_read_record
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.models import Message
from sessions_app.presentation.links import contact_address
from sessions_app.promises.store import (
    due_until,
    open_promises,
    promise_mark,
    promise_of,
    promises,
    today,
)

AT_ONCE = 25
# Counting goes no further.
MAX_COUNTED = 100
STATES = {
    OPEN: pgettext_lazy("promises", "Open"),
    "overdue": gettext_lazy("Overdue"),
    "due": gettext_lazy("Overdue or due today"),
    KEPT: pgettext_lazy("promises", "Kept"),
    DROPPED: pgettext_lazy("promises", "Dropped"),
    "all": gettext_lazy("All"),
}
MARKED = ngettext_lazy("%(count)d promise is changed.", "%(count)d promises are changed.", "count")


def promises_due(_request: HttpRequest | None = None) -> int:
    """Return how many promises are overdue or due today, at most MAX_COUNTED."""
    return due_until(open_promises(promises()), today())[:MAX_COUNTED].count()


class PromisePages(ReadOnlyAdmin):
    """The page of promises beside the list of memories, with the same rights."""

    own_pages: ClassVar[Any] = {
        "promises": OwnPage("promises/", "promises_view", "GET HEAD"),
        "promises_mark": OwnPage("promises/mark/", "promises_mark_view", "POST"),
    }

    def promises_view(self, request: HttpRequest) -> HttpResponse:
        """Show promises, the next ones first."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        shown = request.GET.get("state", OPEN)
        shown = shown if shown in STATES else OPEN
        pages: Paginator[Any] = BoundedPaginator(_listed(shown), AT_ONCE)
        page = pages.get_page(request.GET.get("p"))
        rows = list(page.object_list)
        pages_of: Any = self
        sources = {row.source_message_id for row in rows if row.source_message_id}
        places = pages_of.source_places(request, sources)
        # Only for who may read messages: for others there are no places.
        answered = Message.objects.filter(pk__in=places, answers__revoked_at=None)
        questions = dict(answered.values_list("pk", "answers__content"))
        if questions:
            staff_read_record(request, list="message", searched=False)
        names = pages_of.chat_short_names({row.chat_id for row in rows if row.chat_id})
        sees_contacts = request.user.has_perm("sessions_app.view_chat")
        context = {
            "page": page,
            "rows": [
                {
                    **_described(row),
                    "memory": row,
                    "place": places.get(row.source_message_id),
                    "question": questions.get(row.source_message_id),
                    "name": names.get(row.chat_id, ""),
                    "contact": contact_address(row.chat_id)
                    if sees_contacts and row.chat_id in names
                    else "",
                }
                for row in rows
            ],
            "states": STATES.items(),
            "shown": shown,
            "can_change": self.has_change_permission(request),
        }
        template = "admin/memories_app/memory/promises.html"
        return staff_page(request, template, _("Promises"), context, of=Memory)

    def promises_mark_view(self, request: HttpRequest) -> HttpResponse:
        """Set the state of one promise, or of those that were ticked."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        one, _space, state = request.POST.get("one", "").partition(" ")
        keys = [one] if one else request.POST.getlist("ticked")
        state = state or request.POST.get("state", "")
        ids = [uuid_or_none(key) for key in keys]
        if state not in PROMISE_STATES or None in ids or len(ids) > AT_ONCE:
            raise BadRequest("There is no such decision.")
        actor = staff_actor(request)

        def mark(memory_id: UUID | None) -> None:
            if memory_id is not None:
                promise_mark(memory_id=memory_id, state=state, actor=actor)

        call_for_each(request, ids, mark, MARKED)
        if not ids:
            messages.warning(request, _("No promise was ticked."))
        address = reverse("admin:memories_app_memory_promises")
        return HttpResponseRedirect(f"{address}?{request.GET.urlencode()}")


def _listed(shown: str) -> QuerySet[Memory]:
    """Return the promises of a filter: open ones first, by their day, those without one last."""
    found = promises().defer("terms", "likeness")
    if shown == OPEN:
        found = open_promises(found)
    elif shown in ("overdue", "due"):
        last = today() if shown == "due" else today() - timedelta(days=1)
        found = due_until(open_promises(found), last)
    elif shown != "all":
        found = found.filter(metadata__promise__state=shown)
    is_closed = Case(
        When(metadata__promise__state__in=[KEPT, DROPPED], then=Value(1)), default=Value(0)
    )
    due = KT("metadata__promise__due")
    return found.order_by(is_closed, due.asc(nulls_last=True), F("said_at").desc(), "memory_id")


def _described(memory: Memory) -> dict[str, Any]:
    """Return the words of a promise's state, its day, and whether that has passed."""
    promise = promise_of(memory)
    due = promise["due"] and parse_date(str(promise["due"])[:10])
    return {
        "state": promise["state"],
        "words": STATES.get(promise["state"], STATES[OPEN]),
        "due": due,
        "is_overdue": promise["state"] == OPEN and isinstance(due, date) and due < today(),
        "is_today": promise["state"] == OPEN and due == today(),
    }
