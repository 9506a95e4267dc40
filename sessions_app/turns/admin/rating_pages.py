"""Staff rate an answer on its page, and go through those that are to be reviewed."""

from typing import Any, ClassVar, cast

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import BadRequest, PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.translation import gettext as _, gettext_lazy, ngettext, pgettext

from memoryproject.foundation.admin_kit import list_filters, staff_pages, undo
from memoryproject.foundation.audit.audit_events import staff_actor, staff_read_record
from sessions_app.inbox.needs import BAD, FAILED, UNKNOWN, is_unknown, to_review_ids
from sessions_app.models import AnswerRating, Note, RatingReason, Turn, TurnState
from sessions_app.presentation.audited_view import ConversationAdmin
from sessions_app.turns import answer_review, statuses
from sessions_app.turns.admin.replay import UNANSWERED, answer_of, question_of
from sessions_app.turns.admin.rerun_page import RIGHTS as RERUN, run_again, say_run_again
from sessions_app.turns.queue import answer_soon

VIEW, RATE = "sessions_app.view_turn", "sessions_app.review_chat"
TO_REVIEW = "todo"
RATINGS_SHOWN = 20
_WHY = {
    BAD: gettext_lazy("staff rated it bad"),
    FAILED: gettext_lazy("it failed"),
    UNKNOWN: gettext_lazy("it was a question, and nothing was recalled for it"),
}


def _rated(is_good: bool) -> Q:
    return Q(pk__in=AnswerRating.objects.filter(is_good=is_good).values("turn"))


REVIEW_FILTER = list_filters.choice_filter(
    "review",
    gettext_lazy("review"),
    {
        TO_REVIEW: (
            gettext_lazy("Answers to review"),
            lambda turns: turns.filter(pk__in=to_review_ids()),
        ),
        "bad": (gettext_lazy("Rated bad"), _rated(False)),
        "good": (gettext_lazy("Rated good"), _rated(True)),
        "unknown": (gettext_lazy("Unknown questions"), is_unknown()),
    },
)


def review_of(request: HttpRequest, turn: Turn) -> dict[str, Any] | None:
    """Return the ratings of an answer, and what this staff member may do about it.

    ``comments``: what programs wrote with their ratings. ``reasons``: why it is to be reviewed.
    None for an answer that staff wrote themselves.
    """
    if turn.by_hand:
        return None
    ratings = list(turn.ratings.order_by("-rated_at")[:RATINGS_SHOWN])
    return {
        "may_rate": request.user.has_perm(RATE) and turn.state not in UNANSWERED,
        "comments": Note.objects.filter(
            author=None, message__in=filter(None, [turn.message_id, turn.reply_id])
        ),
        "mine": next((each for each in ratings if each.user_id == request.user.pk), None),
        "others": [each for each in ratings if each.user_id != request.user.pk],
        "reasons": [str(_WHY[name]) for name in answer_review.review_reasons(turn.pk)],
        "choices": RatingReason.choices,
    }


class RatingPages(ConversationAdmin):
    """The buttons of the page of an answer; each is a POST of its own."""

    def turn_of(self, request: HttpRequest, object_id: str) -> Turn:
        """Return the turn if there is one that this person may see."""
        raise NotImplementedError

    own_pages: ClassVar[Any] = {
        "rate": staff_pages.OwnPage("<int:turn_id>/rate/", "rate_view", "POST"),
        "resolve": staff_pages.OwnPage("<int:turn_id>/resolve/", "resolve_view", "POST"),
    }

    def rate_view(self, request: HttpRequest, turn_id: int) -> HttpResponse:
        """Store or take back this person's opinion."""
        turn = self._ratable(request, turn_id)
        verdict, reason = request.POST.get("verdict", ""), request.POST.get("reason", "")
        if verdict not in ("good", "bad", "none") or reason not in ("", *RatingReason.values):
            raise BadRequest("There is no such rating.")
        user: Any = request.user
        who = {"turn_id": turn.pk, "user": user, "actor": staff_actor(request)}
        try:
            if verdict == "none":
                answer_review.rating_remove(**who)
            else:
                answer_review.answer_rate(**who, is_good=verdict == "good", reason=reason)
        except Turn.DoesNotExist as gone:
            raise Http404("It was erased at this moment.") from gone
        done = {
            "good": _("You rated this answer good."),
            "bad": _("You rated this answer bad: it is to be reviewed."),
            "none": _("Your rating is taken back."),
        }
        messages.success(request, done[verdict])
        return HttpResponseRedirect(staff_pages.page_back(request, f"{_address(turn.pk)}#rating"))

    def resolve_view(self, request: HttpRequest, turn_id: int) -> HttpResponse:
        """Mark the answer as resolved."""
        turn = self._ratable(request, turn_id)
        user: Any = request.user
        closed = list(turn.ratings.filter(is_open=True).values_list("pk", flat=True))
        if not answer_review.answers_resolve(
            turn_ids=[turn.pk], user=user, actor=staff_actor(request)
        ):
            raise Http404("It was erased at this moment.")
        undo.undo_offer(request, _("The answer is resolved."), "answer.resolve", [turn.pk, closed])
        return HttpResponseRedirect(staff_pages.page_back(request, _address(turn.pk)))

    def _ratable(self, request: HttpRequest, turn_id: int) -> Turn:
        turn = self.turn_of(request, str(turn_id))
        staff_pages.rights_required(request, RATE)
        if turn.by_hand:
            raise BadRequest("Staff wrote this answer themselves.")
        return turn

    @admin.display(description=gettext_lazy("rating"))
    def shown_rating(self, turn: Turn) -> str:
        """Show the kinds of ratings; the bad ones with their reasons."""
        marks = [
            ("good", pgettext("rating", "good"))
            if each.is_good
            else ("bad", each.get_reason_display() or pgettext("rating", "bad"))
            for each in turn.ratings.all()
        ]
        return format_html_join(" ", '<span class="state {}">{}</span>', dict.fromkeys(marks))


@undo.reverses("answer.resolve", VIEW, RATE)
def _unresolve(request: HttpRequest, data: Any) -> None:
    turn_id, ratings = data
    who: Any = {"user": request.user, "actor": staff_actor(request)}
    if not answer_review.answer_unresolve(turn_id=turn_id, ratings=ratings, **who):
        raise undo.UndoError(_("Somebody else has reviewed it since."))


def answers_waiting(limit: int) -> list[dict[str, Any]]:
    """Return the newest answers to review, each with what was said and why it is to be reviewed."""
    found = Turn.objects.filter(pk__in=to_review_ids()[:limit]).order_by("-pk")
    turns = list(found.select_related("chat", "message", "reply"))
    rated = AnswerRating.objects.filter(is_open=True, turn__in=turns)
    why = {turn.pk: FAILED if turn.state == TurnState.FAILED else UNKNOWN for turn in turns}
    why |= dict.fromkeys(rated.values_list("turn", flat=True), BAD)
    return [
        {
            "turn": turn,
            "question": question_of(turn),
            "answer": answer_of(turn),
            "why": _WHY[why[turn.pk]],
        }
        for turn in turns
    ]


def _address(turn_id: int) -> str:
    return reverse("admin:sessions_app_turn_change", args=[turn_id])


# The page of failed answers by cause, with actions on many answers at once.

RETRY, RESOLVE = "retry", "resolve"
PAGE = "admin/sessions_app/turn/failures.html"


def failures_page(request: HttpRequest) -> HttpResponse:
    """Show the causes of the failed answers that nobody has reviewed."""
    staff_pages.rights_required(request, VIEW)
    # An error may quote what a server said of a message.
    staff_read_record(request, list="failures")
    causes = answer_review.causes_of_failures()
    context = {
        "causes": causes,
        "is_part": sum(cause.count for cause in causes) == answer_review.MAX_FAILURES,
        "most": answer_review.MAX_FAILURES,
        "at_once": answer_review.MAX_AT_ONCE,
        "may_retry": request.user.has_perms(RERUN),
        "may_resolve": request.user.has_perms([VIEW, RATE]),
    }
    return staff_pages.staff_page(request, PAGE, _("Failures by cause"), context, of=Turn)


def failures_act(request: HttpRequest) -> HttpResponse:
    """Retry, or mark as reviewed, the answers of a cause that the page showed."""
    verb = request.POST.get("do", "")
    rights = {RETRY: RERUN, RESOLVE: (VIEW, RATE)}.get(verb)
    if not request.user.has_perms(rights or [VIEW, RATE]):
        raise PermissionDenied
    key, until = request.POST.get("cause", ""), request.POST.get("until", "")
    if rights is None or not (until.isascii() and until.isdecimal() and len(until) < 19):
        raise BadRequest("do: retry or resolve; until: the id of an answer")
    act = run_again if verb == RETRY else _resolve
    result = answer_review.group_act(key=key, until=int(until), act=lambda pk: act(request, pk))
    if verb == RETRY:
        say_run_again(request, again=result.done, left=result.left_alone)
    elif result.done:
        text = ngettext(
            "%(n)d answer is marked as reviewed.",
            "%(n)d answers are marked as reviewed.",
            result.done,
        )
        messages.success(request, text % {"n": result.done})
    if result.left:
        text = ngettext(
            "%(n)d more answer has this cause: repeat it for the rest.",
            "%(n)d more answers have this cause: repeat it for the rest.",
            result.left,
        )
        messages.warning(request, text % {"n": result.left})
    elif not result.done and not result.left_alone:
        messages.warning(request, _("Nothing was done: a colleague was faster."))
    return redirect("admin:sessions_app_turn_failures")


def held_send(request: HttpRequest) -> HttpResponse:
    """Send now what is held because a provider refused our account."""
    staff_pages.rights_required(request, *RERUN)
    sent = statuses.held_send_now(actor=staff_actor(request), enqueue=answer_soon)
    if sent:
        text = ngettext("%(n)d answer is sent now.", "%(n)d answers are sent now.", sent)
        messages.success(request, text % {"n": sent})
    else:
        messages.info(request, _("No answer is held any more."))
    return redirect("admin:index")


def _resolve(request: HttpRequest, turn_id: int) -> bool:
    user = cast("User", request.user)
    return bool(
        answer_review.answers_resolve(turn_ids=[turn_id], user=user, actor=staff_actor(request))
    )


FAILURE_PAGES = {
    "failures": staff_pages.OwnPage("failures/", failures_page, "GET HEAD"),
    "failures_act": staff_pages.OwnPage("failures/act/", failures_act, "POST"),
    "send_held": staff_pages.OwnPage("send-held/", held_send, "POST"),
}
