"""Changes in the rows of the list of memories: visibility and pin.

A row that somebody else changed meanwhile is not changed, and the page reports it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from memories_app.errors import ChangedMeanwhileError, MemoryOperationError
from memories_app.models import Memory, MemoryStatus, Visibility
from memories_app.review.admin.actions import MemoryActions, made_visible, pinned, unpinned
from memories_app.review.admin.memory_history import memory_address
from memories_app.review.admin.state_labels import VISIBILITIES, mark
from memories_app.store.change import memory_patch, memory_pin
from memoryproject.foundation.audit.audit_events import Actor, staff_actor
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.text.uuids import uuid_or_none


@dataclass(frozen=True)
class RowChange:
    memory_id: UUID
    was: str
    wanted: str


class MemoryRows(MemoryActions):
    """The columns of the list that can be edited in place."""

    def embedder(self) -> Embedder:
        """Return the embedder for texts that are written here."""
        raise NotImplementedError

    def rows_view(self, request: HttpRequest) -> HttpResponse:
        """Save the choices in the rows, and pin or unpin the memory whose button was pressed."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        actor = staff_actor(request)
        saved = 0
        for change in _changes(request.POST):
            saved += self._save(request, change, actor)
        if saved:
            self.message_user(request, made_visible(saved), messages.SUCCESS)
        self._pin(request, actor)
        address = reverse("admin:memories_app_memory_changelist")
        query = QueryDict(request.POST.get("list_query", "")).urlencode()
        return HttpResponseRedirect(f"{address}?{query}" if query else address)

    def _save(self, request: HttpRequest, change: RowChange, actor: Actor) -> bool:
        def check(memory: Memory) -> None:
            if memory.visibility not in (change.was, change.wanted):
                raise ChangedMeanwhileError(["visibility"])

        try:
            memory_patch(
                memory_id=change.memory_id,
                changes={"visibility": change.wanted},
                actor=actor,
                embedder=self.embedder(),
                check=check,
            )
        except ChangedMeanwhileError:
            text = _(
                "Somebody else changed who sees this memory meanwhile, so that “%(wanted)s” "
                "wasn't saved. Look, and choose again."
            )
            words = VISIBILITIES.get(change.wanted, change.wanted)
            self._notify(request, change.memory_id, text % {"wanted": words})
        except MemoryOperationError as error:
            self._notify(request, change.memory_id, str(error))
        else:
            return True
        return False

    def _notify(self, request: HttpRequest, memory_id: UUID, text: str) -> None:
        """Show a warning that links to the memory, without its text."""
        link = format_html('<a href="{}">{}</a>', memory_address(memory_id), _("Open the memory"))
        self.message_user(request, format_html("{} {}", text, link), messages.WARNING)

    def _pin(self, request: HttpRequest, actor: Actor) -> None:
        for name, is_pinned in (("pin", True), ("unpin", False)):
            if name not in request.POST:
                continue
            memory_id = memory_id_of(request.POST[name])
            try:
                memory_pin(memory_id=memory_id, pinned=is_pinned, actor=actor)
            except MemoryOperationError as error:
                self.message_user(request, str(error), messages.WARNING)
            else:
                done = pinned(1) if is_pinned else unpinned(1)
                self.message_user(request, done, messages.SUCCESS)


def _changes(posted: Mapping[str, Any]) -> Iterator[RowChange]:
    """Yield the rows whose choice differs from the shown value."""
    for name, wanted in posted.items():
        if name.startswith("vis-"):
            key = name.removeprefix("vis-")
            was = str(posted.get(f"was-{key}", ""))
            if was != wanted:
                yield RowChange(memory_id_of(key), was, str(wanted))


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
