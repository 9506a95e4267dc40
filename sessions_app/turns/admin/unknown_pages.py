"""The questions that the assistant couldn't answer, by topic, each with what to do about it."""

from collections.abc import Iterator
from typing import Any, ClassVar
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from memories_app.errors import MemoryOperationError
from memories_app.store.deduplicate import DUPLICATE
from memoryproject.foundation.admin_kit import list_csv, list_filters, staff_pages
from memoryproject.foundation.audit.audit_events import staff_actor, staff_read_record, staff_record
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from sessions_app.embedding.facade import embedder
from sessions_app.models import Chat, Turn
from sessions_app.presentation.audited_view import ConversationAdmin
from sessions_app.turns import unknown_questions
from sessions_app.turns.admin.rating_pages import RATE
from sessions_app.turns.admin.teach import ADD, EVERYONE, SEE, reason, remember
from sessions_app.turns.answer_review import answers_resolve

SEE_TURNS, SEE_MESSAGES = "sessions_app.view_turn", "sessions_app.view_message"
DEFAULT = "7"
GROUPS_AT_ONCE = 20
MAX_EXAMPLES = 5
WHY = {
    unknown_questions.UNKNOWN: gettext_lazy("nothing was recalled"),
    unknown_questions.HANDED_OVER: gettext_lazy("left to a person"),
    unknown_questions.RATED_BAD: gettext_lazy("staff rated it bad"),
}


class UnknownPages(ConversationAdmin):
    """The part of the pages of answers about questions that were not known."""

    own_pages: ClassVar[Any] = {
        "unknown": staff_pages.OwnPage("unknown/", "unknown_view", "GET HEAD"),
        "unknown_teach": staff_pages.OwnPage("unknown/teach/", "unknown_teach_view", "POST"),
        "unknown_ignore": staff_pages.OwnPage("unknown/ignore/", "unknown_ignore_view", "POST"),
    }

    def unknown_view(self, request: HttpRequest) -> HttpResponseBase:
        """Show the questions of a period by topic, or with ``?table=questions`` as CSV."""
        staff_pages.rights_required(request, SEE_TURNS, SEE_MESSAGES)
        if "table" in request.GET:
            return self._unknown_csv(request)
        return self._unknown_page(request)

    def unknown_teach_view(self, request: HttpRequest) -> HttpResponse:
        """Remember for everyone what was lacking; with the right to, close the questions."""
        staff_pages.rights_required(request, SEE_TURNS, SEE_MESSAGES, ADD)
        turns = _posted_turns(request)
        # The question that the form begins with, which alone teaches nothing.
        about = request.POST.get("about", "")
        first = turns.filter(pk=int(about)).first() if about.isdecimal() else None
        if first is None:
            return self._gone(request)
        text = request.POST.get("content", "").replace("\r\n", "\n").strip()
        try:
            remembered = remember(first, text, EVERYONE, staff_actor(request))
        except (MemoryOperationError, EmbedderError) as error:
            return self._unknown_page(request, typed=(first.pk, text, reason(error)))
        if request.user.has_perm(RATE):
            self._close(request, turns, "taught")
        if remembered.status == DUPLICATE:
            done = _("This was known already: it counts as one more mention.")
            messages.warning(request, done)
        else:
            done = _("It is remembered for everyone from now on.")
            messages.success(request, done)
        return HttpResponseRedirect(unknown_address(_period(request)))

    def unknown_ignore_view(self, request: HttpRequest) -> HttpResponse:
        """Take the questions from the list. They come back when somebody asks again."""
        staff_pages.rights_required(request, SEE_TURNS, SEE_MESSAGES, RATE)
        count = self._close(request, _posted_turns(request), "ignored")
        if not count:
            return self._gone(request)
        text = ngettext("%(count)d question is ignored.", "%(count)d questions are ignored.", count)
        messages.success(request, text % {"count": count})
        return HttpResponseRedirect(unknown_address(_period(request)))

    def _close(self, request: HttpRequest, turns: QuerySet[Turn], why: str) -> int:
        user: Any = request.user
        keys = list(turns.values_list("pk", flat=True))
        return answers_resolve(turn_ids=keys, user=user, actor=staff_actor(request), why=why)

    def _gone(self, request: HttpRequest) -> HttpResponse:
        text = _("These questions aren't there any more.")
        messages.warning(request, text)
        return HttpResponseRedirect(unknown_address(_period(request)))

    def _unknown_page(
        self, request: HttpRequest, *, typed: tuple[int, str, str] | None = None
    ) -> HttpResponse:
        """Show the page. ``typed``: an answer, a text that wasn't stored about it, and why."""
        period, with_closed = _period(request), request.GET.get("closed") == "1"
        found = _found(period, with_closed)
        staff_read_record(request, list="unknown_questions", searched=False)
        page = Paginator(found.groups, GROUPS_AT_ONCE).get_page(request.GET.get("p"))
        groups = list(page.object_list)
        examples = [each for group in groups for each in group.examples[:MAX_EXAMPLES]]
        names = Chat.objects.in_bulk({each.chat_id for each in examples})
        labels = [each.label for each in groups] if request.user.has_perm(SEE) else []
        nearest = unknown_questions.nearest_memories(labels, embedder().model_id)
        replies = unknown_questions.staff_replies(
            [each for group in groups for each in group.questions]
        )
        rows = [
            {
                **self._row(group, names, typed),
                "nearest": nearest.get(group.label.message_id),
                "drafts": [replies[q.turn_id] for q in group.questions if q.turn_id in replies],
            }
            for group in groups
        ]
        context = {
            "period": period,
            "periods": list_filters.NAMES.items(),
            "with_closed": with_closed,
            "rows": rows,
            "count": found.questions,
            "page": page,
            "newest": None if found.is_whole else unknown_questions.NEWEST,
            "may_teach": request.user.has_perm(ADD),
            "may_ignore": request.user.has_perm(RATE),
            "unstored": typed if typed and not any(row["typed"] for row in rows) else None,
        }
        status = 400 if typed else 200
        return staff_pages.staff_page(
            request, "unknown", _("Unknown questions"), context, of=Turn, status=status
        )

    def _row(
        self,
        group: unknown_questions.QuestionGroup,
        names: dict[Any, Chat],
        typed: tuple[int, str, str] | None,
    ) -> dict[str, Any]:
        return {
            "group": group,
            "turns": ",".join(map(str, dict.fromkeys(_open_turns(group)))),
            "typed": typed if typed and typed[0] == group.label.turn_id else None,
            "examples": [
                {
                    "question": each,
                    "address": reverse("admin:sessions_app_turn_change", args=[each.turn_id]),
                    "person": names[each.chat_id].shown_name if each.chat_id in names else "",
                    "why": WHY[each.why],
                }
                for each in group.examples[:MAX_EXAMPLES]
            ],
        }

    def _unknown_csv(self, request: HttpRequest) -> HttpResponseBase:
        if request.GET["table"] != "questions":
            raise BadRequest("table: questions")
        period = _period(request)
        found = _found(period, request.GET.get("closed") == "1")
        staff_record(request, "export", "questions", rows=found.questions)
        titles = ("topic", "questions", "people", "question", "asked_at", "why", "answer_id")
        return list_csv.csv_answer(f"unknown-questions-{period}", titles, _csv_rows(found))


def _csv_rows(found: unknown_questions.UnknownQuestions) -> Iterator[list[Any]]:
    for group in found.groups:
        for each in group.questions:
            at = timezone.localtime(each.asked_at).isoformat(sep=" ", timespec="seconds")
            topic = [group.label.text, len(group.questions), group.people]
            yield [*topic, each.text, at, each.why, each.turn_id]


def _open_turns(group: unknown_questions.QuestionGroup) -> list[int]:
    """Return the answers to decide about; that to the question on top is one of them."""
    keys = [each.turn_id for each in group.questions if each.is_open]
    return [*keys[: unknown_questions.MAX_QUESTIONS - 1], group.label.turn_id] if keys else []


def unknown_address(period: str) -> str:
    return f"{reverse('admin:sessions_app_turn_unknown')}?{urlencode({'period': period})}"


def _found(period: str, with_closed: bool) -> unknown_questions.UnknownQuestions:
    span, model = list_filters.period_named(period, now=timezone.now()), embedder()
    return unknown_questions.unknown_questions(
        start=span.start,
        end=span.end,
        model_id=model.model_id,
        calibration=model.calibration,
        with_closed=with_closed,
    )


def _period(request: HttpRequest) -> str:
    period = request.POST.get("period") or request.GET.get("period", DEFAULT)
    return period if period in list_filters.DAYS else DEFAULT


def _posted_turns(request: HttpRequest) -> QuerySet[Turn]:
    """Return the posted answers."""
    keys = request.POST.get("turns", "").split(",")
    if (
        not all(key.isdecimal() and len(key) < 19 for key in keys)
        or len(keys) > unknown_questions.MAX_QUESTIONS
    ):
        raise BadRequest("turns: the numbers of answers, with commas")
    return Turn.objects.filter(pk__in=map(int, keys), by_hand=False)
