"""Show how each answer was made, and let staff run failed turns again."""

from typing import Any, ClassVar

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _, gettext_lazy

from memoryproject.foundation.admin_kit import display, list_filters, staff_pages
from memoryproject.foundation.audit.audit_events import staff_read_record
from memoryproject.foundation.errors.stored_errors import translate_error
from memoryproject.foundation.retrieval.fragments import MARK
from sessions_app.models import OutboundPart, Turn, TurnReplay
from sessions_app.models.turns import TurnState, time_taken
from sessions_app.presentation import audited_view, links
from sessions_app.turns.admin import rating_pages, recalled, turn_filters, unknown_pages
from sessions_app.turns.admin.replay import answer_of, question_of, replay_of
from sessions_app.turns.admin.rerun_page import rerun_offer, rerun_page, run_again, say_run_again
from sessions_app.turns.admin.state_labels import STATES, duration, tone_of, turn_crumb
from sessions_app.turns.admin.teach import CHANGE, SEE, TeachPages, Typed, teaching_of

HEAVY_REPLAY = ("prompt", "shown", "left_out", "timings")
MAX_TROUBLE_LENGTH = 120
READS = ("sessions_app.view_chat", "sessions_app.view_message")
# The answer to a command has this instead of a model's name.
COMMAND = "command"
# The person still waits for an answer, which a person may write.
UNANSWERED = (TurnState.MISSED, TurnState.FAILED, TurnState.REFUSED, TurnState.HELD)


class TurnAdmin(TeachPages, rating_pages.RatingPages, unknown_pages.UnknownPages):
    """List the turns with their errors; the page of one turn is its replay."""

    read_as = "turn"
    list_is_read = True
    list_display = ("exchange", "chat_link", "created_at", "shown_state", "took", "cost")
    list_display_links = ("exchange", "created_at")
    list_filter = (
        "state",
        "outcome",
        rating_pages.REVIEW_FILTER,
        list_filters.period_filter("created_at"),
        turn_filters.MODEL_FILTER,
        turn_filters.SLOW_FILTER,
        turn_filters.COST_FILTER,
        turn_filters.CAUSE_FILTER,
        "by_hand",
        "provider",
    )
    find_rows = staticmethod(turn_filters.turns_found)
    search_fields = ("turn_id",)
    search_help_text = gettext_lazy("A chat's address or name, or an answer's whole id.")
    list_select_related = ("chat", "replay")
    list_before_template = "admin/sessions_app/turn/quick_links.html"
    actions = ("send_again",)

    own_pages: ClassVar[Any] = {
        "rerun": staff_pages.OwnPage("<int:turn_id>/rerun/", rerun_page, "GET HEAD POST"),
        "recall": staff_pages.OwnPage("<int:turn_id>/recall/", "recall_page", "GET HEAD"),
        "near": staff_pages.OwnPage("<int:turn_id>/near/", "near_page", "GET HEAD"),
        **rating_pages.FAILURE_PAGES,
    }

    def get_queryset(self, request: HttpRequest) -> QuerySet[Turn]:
        return (
            super()
            .get_queryset(request)
            .defer(*(f"replay__{name}" for name in HEAVY_REPLAY))
            .prefetch_related("ratings", "message", "reply")
        )

    def get_sortable_by(self, request: HttpRequest) -> tuple[str, ...]:
        return turn_filters.sorting_of(request)

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        hidden = set() if settings.MODEL_PRICES else {"cost"}
        if not request.user.has_perms(READS):
            hidden.add("exchange")
        return tuple(name for name in self.list_display if name not in hidden)

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        return {"quick_links": turn_filters.quick_links(request)}

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the replay."""
        if request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        return self.why_page(request, self.turn_of(request, object_id), None, extra_context)

    def why_page(
        self,
        request: HttpRequest,
        turn: Turn,
        typed: Typed | None,
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show why; beside a conversation, the parts of the page that its pane has room for."""
        self._record(request, turn)
        replay = replay_of(turn)
        context = {
            "original": turn,
            "replay": replay,
            "review": rating_pages.review_of(request, turn),
            "teaching": teaching_of(request, replay, typed),
            "offer": rerun_offer(request, turn),
            "unanswered": turn.state in UNANSWERED,
            "may_read": request.user.has_perms(READS),
            "may_see_memories": request.user.has_perm(SEE),
            **(extra_context or {}),
        }
        if staff_pages.in_pane(request):
            return TemplateResponse(request, "admin/sessions_app/turn/aside.html", context)
        return staff_pages.staff_page(request, "replay", _("Why this answer"), context, of=Turn)

    def row_name(self, request: HttpRequest, row: Any) -> str:
        return turn_crumb(row)

    def recall_page(self, request: HttpRequest, turn_id: int) -> HttpResponse:
        """Compare what would be recalled now with what was recalled at that time."""
        turn = self.turn_of(request, str(turn_id))
        self._record(request, turn, recalled_now=True)
        context = {
            "original": turn,
            "question": question_of(turn),
            "recall": recalled.recall_now(turn),
            "may_see_memories": request.user.has_perm(SEE),
            "may_correct": request.user.has_perms([SEE, CHANGE]),
        }
        return staff_pages.staff_page(request, "recall", _("Recall this now"), context, of=Turn)

    def near_page(self, request: HttpRequest, turn_id: int) -> HttpResponse:
        """Show the nearest memories that the answer didn't use; to its page, their list alone."""
        turn = self.turn_of(request, str(turn_id))
        staff_pages.rights_required(request, SEE)
        context = {
            "original": turn,
            "near": recalled.near_misses(turn),
            "may_see_memories": True,
            "may_correct": request.user.has_perm(CHANGE),
        }
        if staff_pages.is_live(request):
            # It holds memories and none of the conversation, whose page is recorded.
            return TemplateResponse(request, "admin/sessions_app/turn/near_list.html", context)
        self._record(request, turn, near_misses=True)
        return staff_pages.staff_page(request, "near", _("Near misses"), context, of=Turn)

    def turn_of(self, request: HttpRequest, object_id: str) -> Turn:
        if not self.has_view_permission(request):
            raise PermissionDenied
        turns = Turn.objects.select_related("chat", "message", "reply", "replay__summary")
        return get_object_or_404(turns, pk=int(object_id) if object_id.isdecimal() else None)

    def _record(self, request: HttpRequest, turn: Turn, **details: object) -> None:
        staff_read_record(request, self.read_as, turn.pk, chat_id=turn.chat_id, **details)

    def has_rerun_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("sessions_app.rerun_turn")

    @admin.display(description=gettext_lazy("question and answer"))
    def exchange(self, turn: Turn) -> str:
        """Show what was asked, what was answered, and the first text that was recalled."""
        texts = [str(each.get("content", "")) for each in TurnReplay.of(turn).recalled]
        context = {
            "asked": None if turn.by_hand else question_of(turn),
            "answered": answer_of(turn),
            "recalled": [text for text in texts if text not in ("", MARK)],
        }
        return render_to_string("admin/sessions_app/turn/exchange.html", context)

    @admin.display(description=gettext_lazy("state"), ordering="state")
    def shown_state(self, turn: Turn) -> str:
        """Show the state, and below it what went wrong and how staff rated the answer."""
        mark = display.shown_mark(STATES.get(turn.state, turn.state), tone_of(turn))
        error = translate_error(turn.error) if turn.error else ""
        trouble = display.shown_short(error, MAX_TROUBLE_LENGTH) if error else ""
        below = [each for each in (self.shown_rating(turn), trouble) if each]
        return format_html("{} {}", mark, format_html_join(" ", "{}", ((each,) for each in below)))

    @admin.display(description=gettext_lazy("chat"))
    def chat_link(self, turn: Turn) -> str:
        address = links.contact_address(turn.chat_id)
        name = turn.chat.shown_name
        return format_html('<a href="{}"><bdi>{}</bdi></a>', address, name)

    @admin.display(description=gettext_lazy("took"), ordering=time_taken())
    def took(self, turn: Turn) -> str:
        """Show how long the answer took, and below it by which model and with how many tokens."""
        replay, end = TurnReplay.of(turn), turn.finished_at
        parts = [_("command") if replay.model == COMMAND else replay.model]
        if turn.state == TurnState.SENT and end is not None:
            parts.insert(0, duration(max((end - turn.created_at).total_seconds(), 0) * 1000))
        if replay.prompt_tokens is not None:
            tokens = f"{replay.prompt_tokens:,} + {replay.completion_tokens or 0:,}"
            parts.append(_("%(tokens)s tokens") % {"tokens": tokens})
        return format_html_join(" ", '<span class="nowrap">{}</span>', ((p,) for p in parts if p))

    @admin.display(description=gettext_lazy("cost"), ordering=turn_filters.CurrentCost())
    def cost(self, turn: Turn) -> str:
        cost = turn_filters.cost_shown_of(TurnReplay.of(turn))
        return format_html('<span class="nowrap">{}</span>', cost) if cost else "–"

    @admin.action(
        description=gettext_lazy("Retry (failed, unconfirmed and held answers)"),
        permissions=["rerun"],
    )
    def send_again(self, request: HttpRequest, queryset: QuerySet[Turn]) -> None:
        keys = list(queryset.order_by("id").values_list("pk", flat=True))
        again = sum(run_again(request, key) for key in keys)
        say_run_again(request, again=again, left=len(keys) - again)


# The list of the parts in which answers are sent.


@admin.register(OutboundPart)
class OutboundPartAdmin(audited_view.ConversationAdmin):
    read_as = "part of an answer"
    list_display = ("turn", "number", "state", "delivery_status", "provider", "shown_error")
    list_filter = ("state", "delivery_status", "provider")
    find_rows = staticmethod(audited_view.parts_found)
    search_fields = ("provider_message_id",)
    list_select_related = ("turn",)
    ordering = ("-turn_id", "number")
    sortable_by = ()

    shown_error = display.column(gettext_lazy("error"), lambda part: translate_error(part.error))
