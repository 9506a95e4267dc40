"""The pages of memories."""

from collections.abc import Iterable
from typing import Any, ClassVar
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _, gettext_lazy

from memories_app.models import Memory, MemoryStatus, Visibility
from memories_app.review import decisions, filters, forms, memory_history, memory_rows
from memories_app.review.filters import (
    STATUSES,
    VISIBILITIES,
    doubt_labels,
    mark,
    source_label,
    type_label,
)
from memoryproject.foundation.admin_kit.display import column, shown_json, shown_link, shown_short
from memoryproject.foundation.admin_kit.list_filters import period_filter
from memoryproject.foundation.admin_kit.staff_pages import OwnPage
from memoryproject.foundation.audit.audit_events import staff_actor

SAID = {
    "duplicate": gettext_lazy("This was known already: it counts as one more mention."),
    "superseding": gettext_lazy("It took the place of what said otherwise."),
}


SEE_PROPOSALS = "memories_app.view_mergeproposal"
SEE_ANSWERS = "sessions_app.view_turn"
SEE_AUDIT = "audit.view_auditevent"
SEE_CHATS = "sessions_app.view_chat"


class MemoryPages(decisions.MemoryDecisions):
    """The pages where staff write, change, pin and approve memories, each through its service."""

    list_display = (
        "short_content",
        "shown_person",
        "visible_to",
        "shown_pin",
        "shown_status",
        "shown_kind",
        "shown_source",
        "created_at",
    )
    csv_columns: ClassVar[Any] = {"short_content": "content", "visible_to": "shown_visibility"}
    list_filter = (
        filters.STATE_FILTER,
        filters.AsOfFilter,
        filters.PENDING_FILTER,
        "visibility",
        "pinned",
        filters.TYPE_FILTER,
        filters.CATEGORY_FILTER,
        filters.TAG_FILTER,
        filters.SOURCE_FILTER,
        filters.VECTOR_FILTER,
        filters.ChatFilter,
        period_filter("created_at"),
    )
    search_fields = ("content",)
    ordering = ("-pinned", "-created_at", "memory_id")
    sortable_by = ("created_at",)
    # Each row has form fields, which take half of the page's time.
    list_per_page = 25
    editable: ClassVar = forms.ChangeForm.Meta.fields
    add_fieldsets: ClassVar[Any] = ((None, {"fields": (*editable, "whatsapp_chat")}),)
    fieldsets: ClassVar[Any] = (
        (None, {"fields": ("shown_status", *editable)}),
        (gettext_lazy("Stored by key"), {"fields": ("namespace", "key", "shown_value")}),
        (
            gettext_lazy("Where it comes from"),
            {"fields": ("shown_chat", "shown_origin", "confidence", "shown_metadata")},
        ),
        (
            gettext_lazy("Record"),
            {
                "classes": ("collapse",),
                "fields": (
                    "memory_id",
                    "content_hash",
                    "told_count",
                    "last_told_at",
                    "created_at",
                    "updated_at",
                ),
            },
        ),
    )
    change_form_template = "admin/memories_app/memory/change_form.html"

    def find_chat(self, named: str) -> UUID | None:
        """Return the id of the chat of this name, number or id; None if nothing was typed.

        Raises ValidationError.
        """
        raise NotImplementedError

    def keep_chat(self, chat_id: UUID) -> None:
        """Keep a chat from being erased until the transaction ends.

        Raises MemoryOperationError if it isn't there any more.
        """
        raise NotImplementedError

    def find_chats(self, text: str) -> list[UUID]:
        """Return the ids of the chats of this name, number or address."""
        raise NotImplementedError

    def chat_link(self, chat_id: UUID) -> str:
        """Return the link to a chat."""
        raise NotImplementedError

    def recalled_lately(self, request: HttpRequest, memory: Memory) -> list[dict[str, Any]]:
        """Return the newest answers that recalled the memory."""
        raise NotImplementedError

    own_pages: ClassVar[Any] = {
        "rows": OwnPage("rows/", "rows_view", "POST"),
        "waiting": OwnPage("waiting/", "waiting_view"),
        "answer_many": OwnPage("waiting/answer/", "answer_many_view", "POST"),
        "decide": OwnPage("<uuid:memory_id>/decide/", "decide_view", "POST"),
        "answer": OwnPage("<uuid:memory_id>/answer/", "answer_view", "POST"),
    }
    allowed = ("add", "change")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse changes of superseded memories: they are history."""
        if obj is not None and obj.status == MemoryStatus.SUPERSEDED:
            return False
        return super().has_change_permission(request, obj)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Memory]:
        return super().get_queryset(request).defer("terms", "likeness", "value")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        found = super().get_fieldsets(request, obj)
        is_keyed = obj is not None and obj.key is not None
        return [each for each in found if is_keyed or "shown_value" not in each[1]["fields"]]

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Use the API's defaults: visible to its chat if one is named, else to the owner."""
        initial: dict[str, Any] = super().get_changeform_initial_data(request)
        named = initial.get("whatsapp_chat")
        return {"visibility": "chat" if named else str(Visibility.OWNER), **initial}

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        kwargs["form"] = forms.ChangeForm if obj is not None else forms.AddForm
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.edge = self
        form.actor = staff_actor(request)
        return form

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        return {
            **super().list_context(request),
            "can_change": self.has_change_permission(request),
            "list_query": request.GET.urlencode(),
            "waiting": Memory.objects.filter(status=MemoryStatus.PROPOSED)[:100].count(),
        }

    def complete_rows(self, request: HttpRequest, rows: Iterable[Any]) -> None:
        """Give each row its person and the place of its message."""
        sources = {row.source_message_id for row in rows if row.source_message_id}
        places = self.source_places(request, sources)
        names = self.chat_short_names({row.chat_id for row in rows if row.chat_id})
        for row in rows:
            row.place = places.get(row.source_message_id)
            row.person = names.get(row.chat_id, "")

    def get_list_display(self, request: HttpRequest) -> Any:
        """Show words instead of choices to users who may only view.

        Hide the status if all shown memories are recalled.
        """
        shown = tuple(super().get_list_display(request))
        if not request.GET.get("state"):
            shown = tuple(name for name in shown if name != "shown_status")
        if self.has_change_permission(request):
            return shown
        words = {"visible_to": "shown_visibility", "shown_pin": "is_pinned"}
        return tuple(words.get(str(name), name) for name in shown)

    def changeform_view(self, *args: Any, **kwargs: Any) -> HttpResponse:
        # Skip the transaction that Django wraps around the view: the services have their own, and
        # none may be open while a provider makes a vector.
        page: Any = self
        return page._changeform_view(*args, **kwargs)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        memory = kwargs.get("obj")
        if memory is not None:
            context.update(self._beside(request, memory))
        return super().render_change_form(request, context, *args, **kwargs)

    def _beside(self, request: HttpRequest, memory: Memory) -> dict[str, Any]:
        """Return the context of the sections below the form."""
        places = self.source_places(request, memory_history.mentioning_messages(memory))
        return {
            "changes": memory_history.changes_of(memory),
            "tellings": memory_history.sources_of(memory, places),
            "near": memory_history.similar_rows(memory),
            "contradictions": memory_history.contradictions_of(memory),
            "proposals": memory_history.open_proposals(memory)
            if request.user.has_perm(SEE_PROPOSALS)
            else [],
            "recalled": self.recalled_lately(request, memory),
            "sees_answers": request.user.has_perm(SEE_ANSWERS),
            "events": memory_history.events_of(memory, with_names=request.user.has_perm(SEE_CHATS))
            if request.user.has_perm(SEE_AUDIT)
            else None,
            "events_address": f"{reverse('admin:audit_auditevent_changelist')}?q={memory.pk}",
            "can_decide": memory_rows.decides(request),
            # The page shows the memory's own revisions below.
            "show_history": False,
            "waits": memory.status == MemoryStatus.PROPOSED,
            "doubts": doubt_labels(memory),
        }

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Do nothing: the form's service has saved the memory."""
        warning = SAID.get(getattr(form, "outcome", ""))
        if warning:
            messages.warning(request, str(warning))

    short_content = column(
        gettext_lazy("content"), lambda memory: shown_short(memory.content or str(memory))
    )

    @admin.display(description=gettext_lazy("whose"))
    def shown_person(self, memory: Memory) -> str:
        """Name the person whose memory it is; the name leads to all of that person's memories."""
        name = getattr(memory, "person", "")
        if name:
            address = reverse("admin:memories_app_memory_changelist")
            return shown_link(f"{address}?{urlencode({'chat': memory.chat_id})}", name)
        if memory.visibility == str(Visibility.PUBLIC):
            return _("everyone")
        return _("the owner") if memory.chat_id is None else _("somebody who was erased")

    visible_to = column(gettext_lazy("visible to"), memory_rows.visibility_input)

    @admin.display(description=gettext_lazy("visible to"))
    def shown_visibility(self, memory: Memory) -> str:
        return mark(VISIBILITIES, memory.visibility)

    shown_pin = column(gettext_lazy("pin"), memory_rows.pin_button)
    is_pinned = column(gettext_lazy("pin"), lambda memory: _("pinned") if memory.pinned else "–")
    shown_status = column(gettext_lazy("status"), lambda memory: mark(STATUSES, memory.status))

    @admin.display(description=gettext_lazy("kind, tags"))
    def shown_kind(self, memory: Memory) -> str:
        """Show the category, or the type where there is none, with the tags."""
        kind = memory.category or type_label(memory.type)
        if not memory.tags:
            return format_html('<bdi dir="auto">{}</bdi>', kind)
        tags = ", ".join(memory.tags)
        return format_html(
            '<bdi>{}</bdi> <span class="quiet tags" dir="auto">{}</span>', kind, tags
        )

    @admin.display(description=gettext_lazy("source"))
    def shown_source(self, memory: Memory) -> str:
        """Link to the memory's message, for a list."""
        place, source = getattr(memory, "place", None), source_label(memory.source)
        return shown_link(place, source) if place else source

    # Show the source on the memory's page, which lists its messages below.
    shown_origin = column(gettext_lazy("source"), lambda memory: source_label(memory.source))

    @admin.display(description=gettext_lazy("chat"))
    def shown_chat(self, memory: Memory) -> str:
        return self.chat_link(memory.chat_id) if memory.chat_id else _("no chat")

    shown_value = column(gettext_lazy("value"), lambda memory: shown_json(memory.value))
    shown_metadata = column(gettext_lazy("metadata"), lambda memory: shown_json(memory.metadata))
