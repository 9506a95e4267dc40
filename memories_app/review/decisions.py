"""Staff's decisions about duplicates, contradictions and memories that wait for review.

They appear on a memory's page and on the page of waiting memories.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import BadRequest, PermissionDenied
from django.core.paginator import Paginator
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _, gettext_lazy

from memories_app.errors import MemoryOperationError, no_vector_words
from memories_app.models import DecisionReason, Memory, MemoryStatus
from memories_app.review import decide_proposals, filters, memory_history, memory_rows, pending
from memoryproject.foundation.admin_kit import list_csv, staff_pages
from memoryproject.foundation.admin_kit.undo import reverses, rows_kept, rows_of, undo_offer
from memoryproject.foundation.audit.audit_events import staff_actor
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from memoryproject.foundation.tables import read_table

Decision = TypeVar("Decision")
WAITING_AT_ONCE = 20
MERGE, APART = "merge", "apart"
_TABLES = read_table(__file__, "words.yaml")
_ABOUT_TWO, _DONE = _TABLES["about_two"], _TABLES["done"]
# What becomes of a memory that waits, and of several.
_ANSWERS = {
    "approve": (gettext_lazy("It is approved, and counts from now on."), _DONE["approved"]),
    "reject": (gettext_lazy("It is rejected, and gone."), _DONE["rejected"]),
}


class MemoryDecisions(memory_rows.MemoryRows):
    """Every decision is a POST of its own; the page reports if somebody else was faster."""

    def source_places(self, request: HttpRequest, message_ids: set[UUID]) -> memory_history.Places:
        """Return the places of these messages in their chats, if the user may read them."""
        raise NotImplementedError

    def source_texts(
        self, request: HttpRequest, places: memory_history.Places
    ) -> memory_history.Places:
        """Return the texts of the messages that have these places."""
        raise NotImplementedError

    def chat_names(self, chat_ids: set[UUID]) -> dict[UUID, str]:
        """Return staff's names of these chats."""
        raise NotImplementedError

    def chat_short_names(self, chat_ids: set[UUID]) -> dict[UUID, str]:
        """Return these names without the addresses, for the rows of a list."""
        raise NotImplementedError

    def also_waiting(self, request: HttpRequest) -> dict[str, Any]:
        """Return what else waits for a decision, as far as the user sees it; each WAITING_AT_ONCE.

        ``proposals``: see ``proposals_waiting``; ``answers``: those to review.
        """
        raise NotImplementedError

    def decide_view(self, request: HttpRequest, memory_id: UUID) -> HttpResponse:
        """Decide about this memory and another one: see the page's buttons."""
        self._require_decider(request)
        other = memory_rows.memory_id_of(request.POST.get("other", ""))
        kind, swaps, done = _known(_ABOUT_TWO, request.POST.get("decision", ""))
        first, second = (other, memory_id) if swaps else (memory_id, other)
        actor = staff_actor(request)
        # A contradiction is resolved by which memory is the newer one, whatever they say.
        seen = seen_in(request.POST) if kind in (MERGE, APART) else ""

        def decide() -> None:
            if kind == MERGE:
                decide_proposals.memories_merge(
                    kept_id=first, other_id=second, actor=actor, embedder=self.embedder(), seen=seen
                )
            elif kind == APART:
                decide_proposals.memories_keep_both(
                    one_id=first, other_id=second, actor=actor, seen=seen
                )
            else:
                decide_proposals.contradiction_resolve(
                    older_id=first, newer_id=second, keep=kind, actor=actor
                )

        self._execute(request, decide, done)
        return HttpResponseRedirect(memory_history.memory_address(memory_id))

    def answer_view(self, request: HttpRequest, memory_id: UUID) -> HttpResponse:
        """Approve, correct or reject a memory that waits."""
        self._require_decider(request)
        chosen, seen = request.POST.get("decision", ""), seen_in(request.POST)
        if chosen == "correct":
            content = request.POST.get("content", "").replace("\r\n", "\n")
            return self._correct(request, memory_id, content)
        done, _of_many = _known(_ANSWERS, chosen)
        reason = reason_in(request.POST)
        undo = f"memory.{chosen}"
        self._execute(request, lambda: [_answer(request, memory_id, seen, reason)], done, undo=undo)
        return HttpResponseRedirect(_waiting_address(request))

    def answer_many_view(self, request: HttpRequest) -> HttpResponse:
        """Approve or reject the memories that were ticked."""
        self._require_decider(request)
        _of_one, done = _known(_ANSWERS, request.POST.get("decision", ""))
        reason = reason_in(request.POST)
        # Each was ticked with the hash of the text that it was ticked for.
        ticked = [value.partition(" ") for value in request.POST.getlist("ticked")]
        pairs = [(memory_rows.memory_id_of(key), seen) for key, _space, seen in ticked]
        if len(pairs) > WAITING_AT_ONCE:
            raise BadRequest("There is no such decision.")
        undo = f"memory.{request.POST['decision']}"
        memory_rows.call_for_each(
            request, pairs, lambda pair: _answer(request, *pair, reason), done, undo=undo
        )
        if not pairs:
            messages.warning(request, _("No memory was ticked."))
        return HttpResponseRedirect(_waiting_address(request))

    def _correct(self, request: HttpRequest, memory_id: UUID, content: str) -> HttpResponse:
        """Store a correction. If it is invalid, the page shows it again as it was typed."""
        correction = {
            "content": content,
            "actor": staff_actor(request),
            "embedder": self.embedder(),
            "seen": seen_in(request.POST),
        }
        done = self._execute(
            request,
            lambda: [_approved(memory_id, pending.memory_approve_corrected, **correction)],
            _("It is approved as you wrote it, and counts from now on."),
            undo="memory.approve",
        )
        if done:
            return HttpResponseRedirect(_waiting_address(request))
        return self._waiting_page(request, typed=(memory_id, content))

    def waiting_view(self, request: HttpRequest) -> HttpResponse:
        """Show the uncertain memories that were extracted, newest first."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return self._waiting_page(request)

    def _waiting_page(
        self, request: HttpRequest, *, typed: tuple[UUID, str] | None = None
    ) -> HttpResponse:
        """Render the page. ``typed``: a correction that wasn't stored.

        If its memory is no longer among the shown ones, the page shows the text on its own.
        """
        about, text = typed or (None, "")
        found = Memory.objects.filter(status=MemoryStatus.PROPOSED).defer("terms", "likeness")
        pages: Paginator[Any] = list_csv.BoundedPaginator(
            found.order_by("-created_at", "memory_id"), WAITING_AT_ONCE
        )
        page = pages.get_page(request.GET.get("p"))
        rows = list(page.object_list)
        places = self.source_places(
            request, {row.source_message_id for row in rows if row.source_message_id}
        )
        texts = self.source_texts(request, places)
        names = self.chat_names({row.chat_id for row in rows if row.chat_id})
        context = {
            "page": page,
            "rows": [
                {
                    "memory": row,
                    "type": filters.type_label(row.type),
                    "address": memory_history.memory_address(row.pk),
                    "answer": reverse("admin:memories_app_memory_answer", args=[row.pk]),
                    "place": places.get(row.source_message_id),
                    "quoted": texts.get(row.source_message_id),
                    "doubts": filters.doubt_labels(row),
                    "chat": names.get(row.chat_id),
                    "typed": text if row.pk == about else row.content,
                    "open": row.pk == about,
                }
                for row in rows
            ],
            "unstored": text if about not in {row.pk for row in rows} else "",
            "reasons": DecisionReason.choices,
            "can_decide": memory_rows.decides(request),
            "keys": _TABLES["keys"].items(),
            **(self.also_waiting(request) if page.number == 1 else {}),
        }
        return staff_pages.staff_page(
            request,
            "admin/memories_app/memory/waiting.html",
            _("To review"),
            context,
            of=self.model,
        )

    def _require_decider(self, request: HttpRequest) -> None:
        if not (memory_rows.decides(request) and self.has_view_permission(request)):
            raise PermissionDenied

    def _execute(
        self, request: HttpRequest, service: Callable[[], object], done: object, *, undo: str = ""
    ) -> bool:
        """Call the service, report the result on the page, and return whether it succeeded.

        ``undo``: the name of the reversal, which gets what the service returned.
        """
        try:
            result = service()
        except MemoryOperationError as error:
            messages.warning(request, str(error))
            return False
        except EmbedderError as error:
            messages.error(request, no_vector_words(error))
            return False
        undo_offer(request, done, undo, result)
        return True


def _known(decisions: Mapping[str, Decision], chosen: str) -> Decision:
    """Return what a button stands for. Raises BadRequest."""
    if chosen not in decisions:
        raise BadRequest("There is no such decision.")
    return decisions[chosen]


def _answer(request: HttpRequest, memory_id: UUID, seen: str, reason: str) -> object:
    """Approve or reject a memory that waits, as the request says; return what undoes it."""
    given: dict[str, Any] = {"actor": staff_actor(request), "seen": seen}
    if request.POST["decision"] == "approve":
        return _approved(memory_id, pending.memory_approve, **given)
    return rows_kept(pending.memory_reject(memory_id=memory_id, reason=reason, **given))


def _approved(memory_id: UUID, approve: Callable[..., object], **given: Any) -> object:
    """Approve a memory; return what undoes it: its id, and the ends of others before."""
    ended: pending.Ends = {}
    approve(memory_id=memory_id, ended=ended, **given)
    return [str(memory_id), {str(key): end and end.isoformat() for key, end in ended.items()}]


@reverses("memory.approve", memory_rows.DECIDE, errors=(MemoryOperationError,))
def _unapprove(request: HttpRequest, data: Any) -> None:
    with transaction.atomic():
        for key, ends in data:
            ended = {UUID(each): at and datetime.fromisoformat(at) for each, at in ends.items()}
            pending.memory_unapprove(memory_id=UUID(key), ended=ended, actor=staff_actor(request))


@reverses("memory.reject", memory_rows.DECIDE, errors=(MemoryOperationError,))
def _unreject(request: HttpRequest, data: Any) -> None:
    page: Any = admin.site.get_model_admin(Memory)
    with transaction.atomic():
        for rows in map(rows_of, data):
            pending.memory_unreject(rows=rows, actor=staff_actor(request), keep=page.keep_source)


def reason_in(posted: Any, name: str = "reason") -> str:
    """Return the posted DecisionReason, or an empty text."""
    reason = str(posted.get(name, ""))
    if reason and reason not in DecisionReason.values:
        raise BadRequest("There is no such reason.")
    return reason


def seen_in(posted: Any, name: str = "seen") -> str:
    """Return the posted stamp of what the page showed. Raises BadRequest if there is none.

    Without it a decision would apply to texts that nobody has read.
    """
    seen = str(posted.get(name, "")).strip()
    if not seen:
        raise BadRequest(
            "The post doesn't say which texts were seen: open the page, and decide there."
        )
    return seen


def _waiting_address(request: HttpRequest) -> str:
    address = reverse("admin:memories_app_memory_waiting")
    page = request.GET.get("p", "")
    return f"{address}?p={page}" if page.isdigit() else address
