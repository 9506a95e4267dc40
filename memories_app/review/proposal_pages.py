"""The pages of proposals: compare memories and decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import BadRequest, PermissionDenied
from django.db.models import Prefetch, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _, gettext_lazy

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
from memories_app.review import decide_proposals, decisions, filters, memory_history
from memories_app.review.memory_rows import DECIDE, DONE, bulk_action, decides
from memoryproject.foundation.admin_kit import display, list_filters, staff_admin, undo
from memoryproject.foundation.admin_kit.staff_pages import OwnPage, page_back, staff_page
from memoryproject.foundation.audit.audit_events import staff_actor
from memoryproject.foundation.errors.stored_errors import error_text, translate_error
from memoryproject.foundation.integrations.embedders.base import Embedder, EmbedderError

STATE_FILTER = list_filters.choice_filter(
    "state",
    gettext_lazy("state"),
    {
        "": (gettext_lazy("To decide"), Q(state=ProposalState.OPEN)),
        **{
            str(state): (filters.PROPOSAL_STATES[str(state)], Q(state=state))
            for state in (ProposalState.ACCEPTED, ProposalState.DISMISSED)
        },
        "all": (gettext_lazy("All"), Q()),
    },
)


class ProposalPages(staff_admin.ReadOnlyAdmin):
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
    list_filter = (STATE_FILTER, "kind", "created_at")
    sortable_by = ("created_at",)
    actions = ("accept", "dismiss")

    def embedder(self) -> Embedder:
        """Return the embedder for the vector of the text that stays."""
        raise NotImplementedError

    def chat_short_names(self, chat_ids: set[UUID]) -> dict[UUID, str]:
        """Return staff's names of these chats."""
        raise NotImplementedError

    own_pages: ClassVar[Any] = {
        "decide": OwnPage("<int:proposal_id>/decide/", "decide_view", "POST")
    }
    accept = bulk_action(
        gettext_lazy("Accept"),
        "decide",
        lambda page, pk, actor: decide_proposals.proposal_accept(
            proposal_id=pk, actor=actor, embedder=page.embedder()
        ),
        DONE["accepted"],
    )
    dismiss = bulk_action(
        gettext_lazy("Dismiss"),
        "decide",
        lambda _page, pk, actor: decide_proposals.proposal_dismiss(proposal_id=pk, actor=actor),
        DONE["dismissed"],
    )

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return decides(request)

    def get_list_display(self, request: HttpRequest) -> Any:
        shown = tuple(super().get_list_display(request))
        return shown if decides(request) else tuple(name for name in shown if name != "answer")

    def get_queryset(self, request: HttpRequest) -> QuerySet[MergeProposal]:
        return super().get_queryset(request).prefetch_related(_parts())

    def complete_rows(self, request: HttpRequest, rows: Iterable[Any]) -> None:
        proposals_name(list(rows), self.chat_short_names)

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        return {"list_query": request.GET.urlencode()}

    def decide_view(self, request: HttpRequest, proposal_id: int) -> HttpResponse:
        """Decide a proposal from its row in the list."""
        if not decides(request):
            raise PermissionDenied
        self._decide(request, proposal_id, of_row=f"-{proposal_id}")
        query = QueryDict(request.POST.get("list_query", "")).urlencode()
        address = reverse("admin:memories_app_mergeproposal_changelist")
        return HttpResponseRedirect(page_back(request, f"{address}?{query}" if query else address))

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
            raise Http404
        typed = None
        if request.method == "POST":
            if not decides(request):
                raise PermissionDenied
            typed = request.POST.get("content", proposal.content).replace("\r\n", "\n")
            if self._decide(request, proposal.pk, content=typed):
                return HttpResponseRedirect(reverse("admin:memories_app_mergeproposal_changelist"))
            proposal.refresh_from_db()
        return self._page(request, proposal, typed)

    def _page(
        self, request: HttpRequest, proposal: MergeProposal, typed: str | None
    ) -> HttpResponse:
        proposals_name([proposal], self.chat_short_names)
        memories = [part.memory for part in proposal.parts.all()]
        first = memories[0] if memories else None
        context = {
            "proposal": proposal,
            "state": self.shown_state(proposal),
            "reason": dict(DecisionReason.choices).get(proposal.reason, ""),
            "is_open": proposal.state == ProposalState.OPEN,
            "replaces": proposal.kind == ProposalKind.REPLACE,
            "memories": [_side(memory, first) for memory in memories],
            "typed": proposal.content if typed is None else typed,
            "seen": decide_proposals.contents_stamp(memories),
            "reasons": DecisionReason.choices,
            "can_decide": decides(request),
        }
        return staff_page(
            request,
            "admin/memories_app/mergeproposal/page.html",
            filters.PROPOSAL_KINDS.get(proposal.kind, proposal.kind),
            context,
            of=self.model,
        )

    def _decide(
        self,
        request: HttpRequest,
        proposal_id: int,
        *,
        of_row: str = "",
        content: str | None = None,
    ) -> bool:
        """Carry out the posted decision, report it on the page, and return whether it succeeded.

        ``of_row``: how the names of a row's fields end.
        """
        posted, chosen = request.POST, request.POST.get("decision", "")
        reason = decisions.reason_in(posted, f"reason{of_row}")
        seen = decisions.seen_in(posted, f"seen{of_row}")
        given: Any = {"proposal_id": proposal_id, "actor": staff_actor(request), "reason": reason}
        try:
            before = decide_proposals.proposal_before(proposal_id)
            if chosen == "accept":
                decide_proposals.proposal_accept(
                    **given, seen=seen, embedder=self.embedder(), content=content
                )
                done = DONE["accepted"] % {"count": 1}
            elif chosen == "reverse":
                decide_proposals.proposal_reverse(**given, seen=seen)
                done = _("The older memory is kept; it replaced the newer one.")
            elif chosen == "dismiss":
                decide_proposals.proposal_dismiss(**given)
                done = DONE["dismissed"] % {"count": 1}
            else:
                raise BadRequest("There is no such decision.")
        except (MemoryOperationError, EmbedderError) as error:
            self.message_user(request, translate_error(error_text(error)), messages.WARNING)
            return False
        undo.undo_offer(request, done, "proposal.decide" if before else "", before)
        return True

    @admin.display(description=gettext_lazy("state"))
    def shown_state(self, proposal: MergeProposal) -> str:
        return filters.mark(filters.PROPOSAL_STATES, proposal.state)

    @admin.display(description=gettext_lazy("kind"))
    def shown_kind(self, proposal: MergeProposal) -> str:
        return str(filters.PROPOSAL_KINDS.get(proposal.kind, proposal.kind))

    @admin.display(description=gettext_lazy("similarity"))
    def shown_similarity(self, proposal: MergeProposal) -> str:
        """Return the share of common words; texts of a proposal are never quite the same."""
        if proposal.kind == ProposalKind.REPLACE:
            return "–"
        return _("%(percent)s similar") % {"percent": f"{min(proposal.similarity, 0.99):.0%}"}

    @admin.display(description=gettext_lazy("memories (the first is kept)"))
    def side_by_side(self, proposal: Any) -> str:
        texts = ((display.shown_short(part.memory.content, 160),) for part in proposal.parts.all())
        items = format_html_join("", "<li>{}</li>", texts)
        whose = format_html('<span class="quiet"><bdi>{}</bdi></span>', proposal.whose)
        return format_html('{}<ol class="alike">{}</ol>', whose, items)

    @admin.display(description=gettext_lazy("answer"))
    def answer(self, proposal: MergeProposal) -> str:
        if proposal.state != ProposalState.OPEN:
            return proposal.decided_by or "–"
        return _answer_buttons(proposal)


@undo.reverses("proposal.decide", DECIDE, errors=(MemoryOperationError, EmbedderError))
def _reopen(request: HttpRequest, before: Any) -> None:
    page: Any = admin.site.get_model_admin(MergeProposal)
    decide_proposals.proposal_undo(
        before=before, actor=staff_actor(request), embedder=page.embedder()
    )


def _parts() -> Prefetch[str]:
    parts = ProposalMemory.objects.order_by("number").select_related("memory")
    return Prefetch("parts", queryset=parts.defer("memory__terms", "memory__likeness"))


def proposals_name(
    proposals: Iterable[Any], names_of: Callable[[set[UUID]], dict[UUID, str]]
) -> None:
    """Give each proposal, in ``whose``, the names of those whose memories they are.

    ``names_of`` gets the ids of chats. A memory of none is the business's own.
    """
    chats = [[part.memory.chat_id for part in each.parts.all()] for each in proposals]
    names = names_of({chat for each in chats for chat in each if chat})
    for proposal, each in zip(proposals, chats, strict=True):
        of = (names.get(chat, "–") if chat else _("the business") for chat in each)
        proposal.whose = ", ".join(dict.fromkeys(of))


def proposals_waiting(
    limit: int, names_of: Callable[[set[UUID]], dict[UUID, str]]
) -> list[tuple[MergeProposal, str]]:
    """Return the newest proposals that nobody decided, each with its ``contents_stamp``.

    ``names_of``: see ``proposals_name``.
    """
    open_ones = MergeProposal.objects.filter(state=ProposalState.OPEN)
    found = list(open_ones.prefetch_related(_parts())[:limit])
    proposals_name(found, names_of)
    return [
        (each, decide_proposals.contents_stamp(part.memory for part in each.parts.all()))
        for each in found
    ]


def _side(memory: Memory, first: Memory | None) -> dict[str, Any]:
    """Return a memory of a proposal, with its differences from the one that stays."""
    is_first = first is None or memory.pk == first.pk
    return {
        "memory": memory,
        "address": memory_history.memory_address(memory.pk),
        "visibility": filters.mark(filters.VISIBILITIES, memory.visibility),
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
        decide_proposals.contents_stamp(part.memory for part in proposal.parts.all()),
        proposal.pk,
        _("Reason"),
        _("no reason given"),
        reasons,
    )
