"""The pages of proposals: compare memories and decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import BadRequest, PermissionDenied
from django.db.models import Prefetch, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST

from memories_app.errors import MemoryOperationError
from memories_app.facts.text_diff import word_diff
from memories_app.models import (
    DecisionReason,
    Memory,
    MergeProposal,
    ProposalKind,
    ProposalMemory,
    ProposalState,
)
from memories_app.review.admin.actions import call_for_each, decides
from memories_app.review.admin.decisions import reason_in, seen_in
from memories_app.review.admin.memory_history import memory_address
from memories_app.review.admin.state_labels import (
    PROPOSAL_KINDS,
    PROPOSAL_STATES,
    VISIBILITIES,
    mark,
)
from memories_app.review.decide_proposals import (
    contents_stamp,
    proposal_accept,
    proposal_dismiss,
    proposal_reverse,
)
from memoryproject.foundation.admin_kit.display import shown_short
from memoryproject.foundation.admin_kit.staff_admin import ReadOnlyAdmin
from memoryproject.foundation.audit.audit_events import Actor, staff_actor
from memoryproject.foundation.errors.stored_errors import error_text, translate_error
from memoryproject.foundation.integrations.embedders.base import Embedder, EmbedderError


def accepted(count: int) -> str:
    text = ngettext("%(count)d proposal is accepted.", "%(count)d proposals are accepted.", count)
    return text % {"count": count}


def dismissed(count: int) -> str:
    text = ngettext("%(count)d proposal is dismissed.", "%(count)d proposals are dismissed.", count)
    return text % {"count": count}


@dataclass(frozen=True)
class Decision:
    """The posted decision about one proposal."""

    proposal_id: int
    chosen: str
    reason: str
    seen: str
    content: str | None = None

    def execute(self, actor: Actor, embedder: Embedder) -> str:
        """Carry it out and return the message. Raises BadRequest and the services' errors."""
        if self.chosen == "accept":
            proposal_accept(
                proposal_id=self.proposal_id,
                actor=actor,
                embedder=embedder,
                content=self.content,
                reason=self.reason,
                seen=self.seen,
            )
            return accepted(1)
        if self.chosen == "reverse":
            proposal_reverse(
                proposal_id=self.proposal_id, actor=actor, reason=self.reason, seen=self.seen
            )
            return _("The older memory is kept; it replaced the newer one.")
        if self.chosen == "dismiss":
            proposal_dismiss(proposal_id=self.proposal_id, actor=actor, reason=self.reason)
            return dismissed(1)
        raise BadRequest("There is no such decision.")


class StateFilter(admin.SimpleListFilter):
    """Show open proposals unless another state is selected."""

    title = gettext_lazy("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        decided = [str(ProposalState.ACCEPTED), str(ProposalState.DISMISSED)]
        return [
            *((state, PROPOSAL_STATES[state]) for state in decided),
            ("all", gettext_lazy("All")),
        ]

    def choices(self, changelist: Any) -> Any:
        first, *others = super().choices(changelist)
        return [{**first, "display": _("To decide")}, *others]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[MergeProposal]
    ) -> QuerySet[MergeProposal]:
        if self.value() == "all":
            return queryset
        return queryset.filter(state=self.value() or ProposalState.OPEN)


class ProposalPages(ReadOnlyAdmin):
    """The list of merge proposals, and the page on which staff decide one.

    A subclass, which is registered, gives it the embedder.
    """

    list_display = (
        "side_by_side",
        "shown_kind",
        "shown_similarity",
        "shown_state",
        "created_at",
        "answer",
    )
    list_display_links = ("shown_kind",)
    list_filter = (StateFilter, "kind", "created_at")
    sortable_by = ("created_at",)
    actions = ("accept", "dismiss")

    def embedder(self) -> Embedder:
        """Return the embedder for the vector of the text that stays."""
        raise NotImplementedError

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(require_POST(self.decide_view))
        name = "memories_app_mergeproposal_decide"
        return [path("<int:proposal_id>/decide/", view, name=name), *super().get_urls()]

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return decides(request)

    def get_list_display(self, request: HttpRequest) -> Any:
        shown = tuple(super().get_list_display(request))
        return shown if decides(request) else tuple(name for name in shown if name != "answer")

    def get_queryset(self, request: HttpRequest) -> QuerySet[MergeProposal]:
        parts = ProposalMemory.objects.order_by("number").select_related("memory")
        parts = parts.defer("memory__terms", "memory__likeness")
        return super().get_queryset(request).prefetch_related(Prefetch("parts", queryset=parts))

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        context = {"list_query": request.GET.urlencode(), **(extra_context or {})}
        return super().changelist_view(request, context)

    def decide_view(self, request: HttpRequest, proposal_id: int) -> HttpResponse:
        """Decide a proposal from its row in the list."""
        if not decides(request):
            raise PermissionDenied
        posted = request.POST
        decision = Decision(
            proposal_id,
            posted.get("decision", ""),
            reason_in(posted, f"reason-{proposal_id}"),
            seen_in(posted, f"seen-{proposal_id}"),
        )
        self._decide(request, decision)
        query = QueryDict(posted.get("list_query", "")).urlencode()
        address = reverse("admin:memories_app_mergeproposal_changelist")
        return HttpResponseRedirect(f"{address}?{query}" if query else address)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show one proposal with its memories, and accept the decision about it."""
        if object_id is None or not self.has_view_permission(request):
            raise PermissionDenied
        proposal = self.get_object(request, object_id)
        if proposal is None:
            raise Http404(_("There is no such proposal."))
        typed = None
        if request.method == "POST":
            if not decides(request):
                raise PermissionDenied
            typed = request.POST.get("content", proposal.content).replace("\r\n", "\n")
            decision = Decision(
                proposal.pk,
                request.POST.get("decision", ""),
                reason_in(request.POST),
                seen_in(request.POST),
                typed,
            )
            if self._decide(request, decision):
                return HttpResponseRedirect(reverse("admin:memories_app_mergeproposal_changelist"))
            proposal.refresh_from_db()
        return self._page(request, proposal, typed)

    def _page(
        self, request: HttpRequest, proposal: MergeProposal, typed: str | None
    ) -> HttpResponse:
        memories = [part.memory for part in proposal.parts.all()]
        first = memories[0] if memories else None
        context = {
            **self.admin_site.each_context(request),
            "title": PROPOSAL_KINDS.get(proposal.kind, proposal.kind),
            "opts": self.opts,
            "proposal": proposal,
            "state": self.shown_state(proposal),
            "reason": dict(DecisionReason.choices).get(proposal.reason, ""),
            "is_open": proposal.state == ProposalState.OPEN,
            "replaces": proposal.kind == ProposalKind.REPLACE,
            "memories": [_side(memory, first) for memory in memories],
            "typed": proposal.content if typed is None else typed,
            "seen": contents_stamp(memories),
            "reasons": DecisionReason.choices,
            "can_decide": decides(request),
        }
        return TemplateResponse(request, "admin/memories_app/mergeproposal/page.html", context)

    def _decide(self, request: HttpRequest, decision: Decision) -> bool:
        """Carry out the decision, report it on the page, and return whether it succeeded."""
        try:
            done = decision.execute(staff_actor(request), self.embedder())
        except (MemoryOperationError, EmbedderError) as error:
            self.message_user(request, translate_error(error_text(error)), messages.WARNING)
            return False
        self.message_user(request, done, messages.SUCCESS)
        return True

    @admin.display(description=gettext_lazy("state"))
    def shown_state(self, proposal: MergeProposal) -> str:
        return mark(PROPOSAL_STATES, proposal.state)

    @admin.display(description=gettext_lazy("kind"))
    def shown_kind(self, proposal: MergeProposal) -> str:
        return str(PROPOSAL_KINDS.get(proposal.kind, proposal.kind))

    @admin.display(description=gettext_lazy("similarity"))
    def shown_similarity(self, proposal: MergeProposal) -> str:
        return _("%(percent)s similar") % {"percent": f"{proposal.similarity:.0%}"}

    @admin.display(description=gettext_lazy("memories (the first is kept)"))
    def side_by_side(self, proposal: MergeProposal) -> str:
        texts = ((shown_short(part.memory.content, 160),) for part in proposal.parts.all())
        items = format_html_join("", "<li>{}</li>", texts)
        return format_html('<ol class="alike">{}</ol>', items)

    @admin.display(description=gettext_lazy("answer"))
    def answer(self, proposal: MergeProposal) -> str:
        if proposal.state != ProposalState.OPEN:
            return proposal.decided_by or "–"
        return _answer_buttons(proposal)

    @admin.action(description=gettext_lazy("Accept"), permissions=["decide"])
    def accept(self, request: HttpRequest, queryset: QuerySet[MergeProposal]) -> None:
        actor, embedder = staff_actor(request), self.embedder()
        call_for_each(
            self,
            request,
            queryset,
            lambda proposal: proposal_accept(
                proposal_id=proposal.pk, actor=actor, embedder=embedder
            ),
            accepted,
        )

    @admin.action(description=gettext_lazy("Dismiss"), permissions=["decide"])
    def dismiss(self, request: HttpRequest, queryset: QuerySet[MergeProposal]) -> None:
        actor = staff_actor(request)
        call_for_each(
            self,
            request,
            queryset,
            lambda proposal: proposal_dismiss(proposal_id=proposal.pk, actor=actor),
            dismissed,
        )


def _side(memory: Memory, first: Memory | None) -> dict[str, Any]:
    """Return a memory of a proposal, with its differences from the one that stays."""
    is_first = first is None or memory.pk == first.pk
    return {
        "memory": memory,
        "address": memory_address(memory.pk),
        "visibility": mark(VISIBILITIES, memory.visibility),
        "stays": is_first,
        "pieces": [] if is_first or first is None else word_diff(memory.content, first.content),
    }


def _answer_buttons(proposal: MergeProposal) -> SafeString:
    """Return buttons that post the list's form to ``decide_view``."""
    if proposal.kind == ProposalKind.REPLACE:
        buttons = [
            ("accept", _("Keep the newer")),
            ("reverse", _("Keep the older")),
            ("dismiss", _("Keep both")),
        ]
    else:
        buttons = [("accept", _("Merge")), ("dismiss", _("Keep both"))]
    shown = format_html_join(
        " ",
        '<button class="button" name="decision" value="{}" formaction="{}/decide/">{}</button>',
        ((value, proposal.pk, text) for value, text in buttons),
    )
    reasons = format_html_join("", '<option value="{}">{}</option>', DecisionReason.choices)
    return format_html(
        '<span class="answer">{}<input type="hidden" name="seen-{}" value="{}">'
        '<select class="row-choice" name="reason-{}" aria-label="{}">'
        '<option value="">{}</option>{}</select></span>',
        shown,
        proposal.pk,
        contents_stamp(part.memory for part in proposal.parts.all()),
        proposal.pk,
        _("Reason"),
        _("no reason given"),
        reasons,
    )
