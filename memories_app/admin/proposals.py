"""The pages of proposals: the memories side by side, and staff's answer."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import AdminTextareaWidget
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from memories_app.admin.actions import each, staff_actor
from memories_app.admin.history import memory_link
from memories_app.errors import MemoryOperationError
from memories_app.models import MergeProposal, ProposalState
from memories_app.services.proposals import proposal_accept, proposal_dismiss
from memoryproject.audit.events import Actor
from memoryproject.integrations.embedders.base import Embedder, EmbedderError
from memoryproject.lib.admin_display import shown_short, shown_state, shown_table, shown_text
from memoryproject.lib.read_only_admin import ReadOnlyAdmin


class ProposalForm(forms.ModelForm):  # type: ignore[type-arg]
    """Saving accepts, with the text as it stands here."""

    embedder: Embedder
    actor: Actor

    class Meta:
        model = MergeProposal
        fields = ("content",)
        labels: ClassVar = {"content": "What stays"}
        help_texts: ClassVar = {
            "content": "“Save” accepts the proposal with this text. To leave the memories as they "
            "are, choose “Dismiss” in the list."
        }
        widgets: ClassVar = {"content": AdminTextareaWidget(attrs={"dir": "auto", "rows": 4})}

    def full_clean(self) -> None:
        super().full_clean()
        if not self.is_bound or self.errors:
            return
        try:
            proposal_accept(
                proposal_id=self.instance.pk,
                actor=self.actor,
                embedder=self.embedder,
                content=self.cleaned_data["content"],
            )
        except (MemoryOperationError, EmbedderError) as error:
            self.add_error(None, str(error))


class ProposalPages(ReadOnlyAdmin):
    form = ProposalForm
    list_display = ("shown_state", "kind", "side_by_side", "similarity", "created_at")
    list_display_links = ("shown_state", "kind")
    list_filter = ("state", "kind")
    actions = ("accept", "dismiss")
    readonly_fields = (
        "kind",
        "shown_state",
        "shown_memories",
        "similarity",
        "created_at",
        "decided_at",
        "decided_by",
    )
    fields = ("kind", "shown_state", "shown_memories", "content", *readonly_fields[3:])

    def embedder(self) -> Embedder:
        """Makes the vector of the text that stays."""
        raise NotImplementedError

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        if obj is not None and obj.state != ProposalState.OPEN:
            return False
        return admin.ModelAdmin.has_change_permission(self, request, obj)

    def get_queryset(self, request: HttpRequest) -> QuerySet[MergeProposal]:
        return super().get_queryset(request).prefetch_related("parts__memory")

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.embedder = self.embedder()
        form.actor = staff_actor(request)
        return form

    def changeform_view(self, *args: Any, **kwargs: Any) -> HttpResponse:
        # As in MemoryPages: no transaction around the making of a vector.
        page: Any = self
        return page._changeform_view(*args, **kwargs)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """The form's service did it."""

    @admin.display(description="state", ordering="state")
    def shown_state(self, proposal: MergeProposal) -> str:
        return shown_state(
            proposal.state, good=[ProposalState.ACCEPTED], bad=[ProposalState.DISMISSED]
        )

    @admin.display(description="memories, the one that stays first")
    def side_by_side(self, proposal: MergeProposal) -> str:
        texts = [shown_short(part.memory.content, 160) for part in proposal.parts.all()]
        return shown_table(("stays", *[""] * (len(texts) - 1)), [texts])

    @admin.display(description="memories")
    def shown_memories(self, proposal: MergeProposal) -> str:
        rows = (
            (
                "stays" if part.number == 1 else "is superseded",
                shown_text(part.memory.content),
                part.memory.visibility,
                str(part.memory.told_count),
                memory_link(part.memory),
            )
            for part in proposal.parts.all()
        )
        return shown_table(("", "content", "visible to", "told", "memory"), rows)

    @admin.action(description="Accept", permissions=["change"])
    def accept(self, request: HttpRequest, queryset: QuerySet[MergeProposal]) -> None:
        actor, embedder = staff_actor(request), self.embedder()
        each(
            self,
            request,
            queryset,
            lambda proposal: proposal_accept(
                proposal_id=proposal.pk, actor=actor, embedder=embedder
            ),
            "accepted",
        )

    @admin.action(description="Dismiss", permissions=["change"])
    def dismiss(self, request: HttpRequest, queryset: QuerySet[MergeProposal]) -> None:
        actor = staff_actor(request)
        each(
            self,
            request,
            queryset,
            lambda proposal: proposal_dismiss(proposal_id=proposal.pk, actor=actor),
            "dismissed",
        )
