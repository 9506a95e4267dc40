"""Run a turn again: GET asks for confirmation, POST does it."""

from datetime import datetime

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _, ngettext

from memoryproject.foundation.admin_kit.staff_pages import rights_required, staff_page
from memoryproject.foundation.audit.audit_events import staff_actor, staff_read_record
from sessions_app.models import Chat, Turn, TurnState
from sessions_app.turns.admin.replay import answer_of, question_of
from sessions_app.turns.dependencies import max_answer_age
from sessions_app.turns.queue import answer_soon
from sessions_app.turns.rerun import SEND, Refusal, RerunRefusedError, rerun_check, turn_rerun

PAGE = "admin/sessions_app/turn/rerun.html"
RIGHTS = ("sessions_app.view_turn", "sessions_app.rerun_turn")


def run_again(request: HttpRequest, turn_id: int) -> bool:
    """Run one of many turns again; return False where that isn't possible."""
    try:
        turn_rerun(
            turn_id=turn_id,
            actor=staff_actor(request),
            max_age=max_answer_age(),
            enqueue=answer_soon,
            now=timezone.now(),
        )
    except (RerunRefusedError, Turn.DoesNotExist, Chat.DoesNotExist):
        # Also where one turn is erased or merged meanwhile: the others are run.
        return False
    return True


def say_run_again(request: HttpRequest, *, again: int, left: int) -> None:
    """Tell how many of many turns are run again, and how many were left alone."""
    if again:
        text = ngettext("%(n)d answer is retried.", "%(n)d answers are retried.", again)
        messages.success(request, text % {"n": again})
    if left:
        text = ngettext(
            "%(n)d answer was skipped: it needs no retry, or can't be run any more.",
            "%(n)d answers were skipped: they need no retry, or can't be run any more.",
            left,
        )
        messages.warning(request, text % {"n": left})


def rerun_offer(request: HttpRequest, turn: Turn) -> dict[str, str] | None:
    """Return the rerun to offer, or None where there is none or the user has no permission.

    ``what``: its effect, send or answer; or ``refused``: why it is impossible.
    """
    if not request.user.has_perms(RIGHTS):
        return None
    now = timezone.now()
    try:
        what = rerun_check(turn=turn, chat=turn.chat, max_age=max_answer_age(), now=now)
    except RerunRefusedError as refused:
        return None if refused.why == Refusal.NOT_IN_TROUBLE else {"refused": refused.text}
    return {"what": what, "title": _("Send it again") if what == SEND else _("Answer it again")}


def rerun_page(request: HttpRequest, turn_id: int) -> HttpResponse:
    """Ask for confirmation on GET; run the turn again on POST."""
    rights_required(request, *RIGHTS)
    turn = get_object_or_404(Turn.objects.select_related("chat", "message", "reply"), pk=turn_id)
    if request.method == "POST":
        return _run(request, turn)
    offer = rerun_offer(request, turn)
    if offer is None:
        messages.warning(request, RerunRefusedError(Refusal.NOT_IN_TROUBLE).text)
        return redirect("admin:sessions_app_turn_change", turn.pk)
    staff_read_record(request, "turn", turn.pk, chat_id=turn.chat_id, rerun=True)
    sends = offer.get("what") == SEND
    context = {
        "original": turn,
        "turn": turn,
        "offer": offer,
        "question": question_of(turn),
        "answer": answer_of(turn) if sends else None,
        "sends": sends,
        "may_come_twice": turn.state == TurnState.UNCONFIRMED,
        "seen": turn.finished_at.isoformat() if turn.finished_at else "",
    }
    return staff_page(request, PAGE, offer.get("title", _("Answer it again")), context, of=Turn)


def _run(request: HttpRequest, turn: Turn) -> HttpResponse:
    try:
        action = turn_rerun(
            turn_id=turn.pk,
            actor=staff_actor(request),
            max_age=max_answer_age(),
            enqueue=answer_soon,
            now=timezone.now(),
            seen=_seen(request),
        )
    except RerunRefusedError as refused:
        messages.warning(request, refused.text)
    except (Turn.DoesNotExist, Chat.DoesNotExist) as gone:
        raise Http404("It was erased at this moment.") from gone
    else:
        message = (
            _("It is being sent again.") if action == SEND else _("It is being answered again.")
        )
        messages.success(request, message)
    return redirect("admin:sessions_app_turn_change", turn.pk)


def _seen(request: HttpRequest) -> datetime | None:
    """Return the time at which the turn had ended on the page that was confirmed."""
    try:
        seen = parse_datetime(request.POST.get("seen", ""))
    except ValueError:
        return None
    return seen if seen is not None and timezone.is_aware(seen) else None
