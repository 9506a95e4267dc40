"""Bulk actions on memories, and changes in the rows of their list: visibility and pin."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, TypeVar
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import BadRequest, PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _, gettext_lazy

from memories_app.errors import ChangedMeanwhileError, MemoryOperationError
from memories_app.models import Memory, MemoryStatus, Visibility
from memories_app.review.filters import VISIBILITIES, mark
from memories_app.review.memory_history import memory_address
from memories_app.review.pending import memory_approve, memory_reject
from memories_app.store.change import memory_patch, memory_pin, memory_set_visibility
from memoryproject.foundation.admin_kit.staff_admin import ReadOnlyAdmin
from memoryproject.foundation.admin_kit.undo import undo_offer
from memoryproject.foundation.audit.audit_events import Actor, staff_actor
from memoryproject.foundation.errors.stored_errors import error_text, translate_error
from memoryproject.foundation.integrations.embedders.base import Embedder, EmbedderError
from memoryproject.foundation.tables import read_table
from memoryproject.foundation.text.uuids import uuid_or_none

DECIDE = "memories_app.decide_mergeproposal"


def decides(request: HttpRequest) -> bool:
    """Return whether this person may decide proposals, duplicates and contradictions."""
    return bool(request.user.has_perm(DECIDE))


Item = TypeVar("Item")


def call_for_each(
    request: HttpRequest,
    items: Iterable[Item],
    service: Callable[[Item], object],
    done: Any,
    *,
    undo: str = "",
) -> None:
    """Call the service for every item, and report how many succeeded and what was refused.

    ``done``: the sentence for a number of successes, as ngettext_lazy makes it. ``undo``: the name
    of the reversal, which gets the list of what the service returned.
    """
    results = []
    refused: Counter[str] = Counter()
    for item in items:
        try:
            results.append(service(item))
        except (MemoryOperationError, EmbedderError) as error:
            refused[translate_error(error_text(error))] += 1
    if results:
        undo_offer(request, done % {"count": len(results)}, undo, results)
    for reason, times in refused.items():
        text = _("%(count)d skipped: %(reason)s") % {"count": times, "reason": reason}
        messages.warning(request, text)


# The sentences for a number of successes.
DONE = read_table(__file__, "words.yaml")["done"]


def bulk_action(
    title: Any, right: str, service: Callable[[Any, Any, Actor], object], done: Any
) -> Any:
    """Return a bulk action for an attribute of an admin.

    ``service`` gets the admin, a row's key and who acts. ``right``: the end of the name of the
    admin's method that says who may. ``done``: see ``call_for_each``.
    """

    @admin.action(description=title, permissions=[right])
    def act(page: Any, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        actor = staff_actor(request)
        call_for_each(request, queryset, lambda row: service(page, row.pk, actor), done)

    return act


def _made_visible(title: Any, visibility: str) -> Any:
    def change(_page: Any, pk: UUID, actor: Actor) -> None:
        memory_set_visibility(memory_id=pk, visibility=visibility, actor=actor)

    return bulk_action(title, "change", change, DONE["made_visible"])


class MemoryActions(ReadOnlyAdmin):
    """The bulk actions of the page of memories."""

    actions: tuple[str, ...] = (
        "pin",
        "unpin",
        "make_public",
        "make_owner",
        "make_chat",
        "approve",
        "reject",
    )
    pin = bulk_action(
        gettext_lazy("Pin"),
        "change",
        lambda _page, pk, actor: memory_pin(memory_id=pk, actor=actor),
        DONE["pinned"],
    )
    unpin = bulk_action(
        gettext_lazy("Unpin"),
        "change",
        lambda _page, pk, actor: memory_pin(memory_id=pk, pinned=False, actor=actor),
        DONE["unpinned"],
    )
    make_public = _made_visible(
        gettext_lazy("Make visible to everyone (public)"), str(Visibility.PUBLIC)
    )
    make_owner = _made_visible(
        gettext_lazy("Make visible to the owner only"), str(Visibility.OWNER)
    )
    make_chat = _made_visible(
        gettext_lazy("Make visible to its own chat only"), str(Visibility.CHAT)
    )
    approve = bulk_action(
        gettext_lazy("Approve suggestions"),
        "decide",
        lambda _page, pk, actor: memory_approve(memory_id=pk, actor=actor),
        DONE["approved"],
    )
    reject = bulk_action(
        gettext_lazy("Reject (deletes)"),
        "decide",
        lambda _page, pk, actor: memory_reject(memory_id=pk, actor=actor),
        DONE["rejected"],
    )

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return decides(request)


# Changes in the rows. One that somebody else changed meanwhile stays, and the page reports it.


class MemoryRows(MemoryActions):
    """The columns of the list that can be edited in place."""

    def embedder(self) -> Embedder:
        """Return the embedder for texts that are written here."""
        raise NotImplementedError

    def rows_view(self, request: HttpRequest) -> HttpResponse:
        """Save the choices in the rows, and pin or unpin the memory whose button was pressed."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        actor, posted = staff_actor(request), request.POST
        saved = 0
        for name, wanted in posted.items():
            key = name.removeprefix("vis-")
            was = str(posted.get(f"was-{key}", ""))
            if key != name and was != wanted:
                saved += self._save(request, memory_id_of(key), was, str(wanted), actor)
        if saved:
            messages.success(request, DONE["made_visible"] % {"count": saved})
        self._pin(request, actor)
        address = reverse("admin:memories_app_memory_changelist")
        query = QueryDict(request.POST.get("list_query", "")).urlencode()
        return HttpResponseRedirect(f"{address}?{query}" if query else address)

    def _save(
        self, request: HttpRequest, memory_id: UUID, was: str, wanted: str, actor: Actor
    ) -> bool:
        """Change who sees a memory, unless somebody else did since the page showed it."""

        def check(memory: Memory) -> None:
            if memory.visibility not in (was, wanted):
                raise ChangedMeanwhileError(["visibility"])

        try:
            memory_patch(
                memory_id=memory_id,
                changes={"visibility": wanted},
                actor=actor,
                embedder=self.embedder(),
                check=check,
            )
        except ChangedMeanwhileError:
            text = _(
                "Somebody else changed who sees this memory meanwhile, so that “%(wanted)s” "
                "wasn't saved. Look, and choose again."
            )
            words = VISIBILITIES.get(wanted, wanted)
            self._notify(request, memory_id, text % {"wanted": words})
        except MemoryOperationError as error:
            self._notify(request, memory_id, str(error))
        else:
            return True
        return False

    def _notify(self, request: HttpRequest, memory_id: UUID, text: str) -> None:
        """Show a warning that links to the memory, without its text."""
        link = format_html('<a href="{}">{}</a>', memory_address(memory_id), _("Open the memory"))
        messages.warning(request, format_html("{} {}", text, link))

    def _pin(self, request: HttpRequest, actor: Actor) -> None:
        for name, is_pinned in (("pin", True), ("unpin", False)):
            if name not in request.POST:
                continue
            memory_id = memory_id_of(request.POST[name])
            try:
                memory_pin(memory_id=memory_id, pinned=is_pinned, actor=actor)
            except MemoryOperationError as error:
                messages.warning(request, str(error))
            else:
                done = (DONE["pinned"] if is_pinned else DONE["unpinned"]) % {"count": 1}
                messages.success(request, done)


def memory_id_of(text: str) -> UUID:
    """Return the id in a form. Raises BadRequest if it is none."""
    key = uuid_or_none(text)
    if key is None:
        raise BadRequest("This is no memory's id.")
    return key


def visibility_input(memory: Memory) -> SafeString:
    """Render the visibility as a choice; for a superseded memory as a word."""
    if memory.status == MemoryStatus.SUPERSEDED:
        return mark(VISIBILITIES, memory.visibility)
    offered = [
        value for value in Visibility.values if value != "chat" or memory.chat_id is not None
    ]
    options = format_html_join(
        "",
        '<option value="{}"{}>{}</option>',
        (
            (value, SafeString(" selected") if value == memory.visibility else "", word)
            for value, word in VISIBILITIES.items()
            if value in offered
        ),
    )
    return format_html(
        '<input type="hidden" name="was-{}" value="{}">'
        '<select class="row-choice" name="vis-{}" aria-label="{}">{}</select>',
        memory.pk,
        memory.visibility,
        memory.pk,
        _("Visible to"),
        options,
    )


def pin_button(memory: Memory) -> SafeString:
    """Render a button that posts the list's form to ``rows_view``."""
    name, text = ("unpin", _("Unpin")) if memory.pinned else ("pin", _("Pin"))
    return format_html(
        '<button class="pin" name="{}" value="{}" formaction="rows/" aria-pressed="{}" title="{}">'
        '<span class="material-symbols-outlined" aria-hidden="true">push_pin</span>'
        '<span class="sr-only">{}</span></button>',
        name,
        memory.pk,
        "true" if memory.pinned else "false",
        text,
        text,
    )
