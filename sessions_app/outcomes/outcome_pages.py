"""The page *Did it help?*: the rate by day, topic and language, and each case with its evidence."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.core.exceptions import BadRequest
from django.db import transaction
from django.db.models import Count, F, Q, QuerySet
from django.db.models.functions import Trunc
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.dateparse import parse_datetime
from django.utils.formats import date_format
from django.utils.text import Truncator
from django.utils.translation import gettext as _

from memoryproject.foundation.admin_kit.list_csv import BoundedPaginator
from memoryproject.foundation.admin_kit.list_filters import DAYS, NAMES, Period, period_named
from memoryproject.foundation.admin_kit.staff_pages import OwnPage, rights_required, staff_page
from memoryproject.foundation.audit.audit_events import staff_read_record, staff_record
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.conversations.phrases import languages
from sessions_app.embedding.facade import embedder
from sessions_app.models import Evidence, Message, SessionOutcome, Turn, Verdict
from sessions_app.models.messages import ASKING, Role
from sessions_app.outcomes.judge import FOR
from sessions_app.turns.facade import message_questions, questions_group

RIGHTS = ("sessions_app.view_chatsession", "sessions_app.view_message")
DECIDE = "sessions_app.review_chat"
AT_ONCE = 25
# So many of a period's newest sessions are grouped by topic, and so many topics are shown.
MAX_TOPICAL, MAX_TOPICS = 2_000, 10
COUNTS = {verdict: Count("pk", filter=Q(in_force=verdict)) for verdict in Verdict.values}
Counts = Mapping[str, Any]


def outcomes_ended(start: datetime, end: datetime) -> QuerySet[SessionOutcome]:
    return SessionOutcome.objects.filter(ended_at__gte=start, ended_at__lt=end)


def share_shown(counts: Counts) -> str:
    share = _share(counts)
    return "–" if share is None else f"{share} %"


def _share(counts: Counts) -> int | None:
    """Return how many in a hundred of the clear cases helped; None where none is clear."""
    clear = counts[Verdict.HELPED] + counts[Verdict.NOT_HELPED]
    return round(100 * counts[Verdict.HELPED] / clear) if clear else None


def outcomes_page(request: HttpRequest) -> HttpResponse:
    """Show the outcomes of a period; ``verdict``, ``language`` and ``kind`` filter its cases."""
    rights_required(request, *RIGHTS)
    key = request.GET.get("period", "")
    period = period_named(key if key in DAYS else "7", now=timezone.now())
    ended = outcomes_ended(period.start, period.end)
    cases, filters = ended.select_related("session__chat").order_by("-ended_at", "pk"), []
    for name, title, values, condition in (
        ("verdict", _("Outcome"), Verdict.choices, "in_force"),
        ("language", _("Language"), _languages().items(), "session__chat__language"),
        ("kind", _("Evidence"), Evidence.choices, "evidence__contains"),
    ):
        chosen = request.GET.get(name, "")
        filters.append((name, title, values, chosen))
        if chosen in dict(values):
            cases = cases.filter(**{condition: [{name: chosen}] if name == "kind" else chosen})
    page = BoundedPaginator(cases, AT_ONCE).get_page(request.GET.get("p"))
    counts = ended.aggregate(**COUNTS)
    context = {
        "period": period.key,
        "periods": NAMES.items(),
        "counts": zip(Verdict.labels, counts.values(), strict=True),
        "share": share_shown(counts),
        "charts": list(_charts(ended, period)) if any(counts.values()) else [],
        "filters": filters,
        "page": page,
        "cases": _with_words(list(page.object_list)),
        "may_decide": request.user.has_perm(DECIDE),
    }
    staff_read_record(request, list="outcomes", searched=False)
    template = "admin/sessions_app/turn/outcomes.html"
    return staff_page(request, template, _("Did it help?"), context, of=Turn)


def outcome_decide(request: HttpRequest) -> HttpResponse:
    """Let staff's verdict be in force in place of that of the rules, or the rules' one again."""
    rights_required(request, *RIGHTS, DECIDE)
    key, verdict = uuid_or_none(request.POST.get("session", "")), request.POST.get("verdict", "")
    if key is None or verdict not in ("", *Verdict.values):
        raise BadRequest("session: an id; verdict: helped, not_helped, unclear or empty")
    outcome = get_object_or_404(SessionOutcome.objects.select_related("session"), pk=key)
    if outcome.decided != verdict:
        outcome.decided = verdict
        about = {"chat_id": outcome.session.chat_id, "verdict": verdict}
        with transaction.atomic():
            outcome.save(update_fields=["decided"])
            staff_record(request, "session.judge", "session", key, **about)
    address = reverse("admin:sessions_app_turn_outcomes")
    return HttpResponseRedirect(f"{address}?{request.GET.urlencode()}#case-{key}")


OUTCOME_PAGES = {
    "outcomes": OwnPage("outcomes/", outcomes_page, "GET HEAD"),
    "outcomes_decide": OwnPage("outcomes/decide/", outcome_decide, "POST"),
}


def _with_words(cases: Sequence[SessionOutcome]) -> Sequence[SessionOutcome]:
    """Add to each piece of evidence what the page shows of it; one query."""
    evidence = [each for case in cases for each in case.evidence]
    messages = Message.objects.filter(pk__in={each["message_id"] for each in evidence})
    words = {str(key): content for key, content in messages.values_list("pk", "content")}
    for each in evidence:
        each |= {
            "what": Evidence(each["kind"]).label,
            "helps": each["kind"] in FOR,
            "at": parse_datetime(each["at"]),
            "words": words.get(each["message_id"]),
        }
    return cases


# The rates, as plots with their tables.


def _charts(ended: QuerySet[SessionOutcome], period: Period) -> Iterator[dict[str, Any]]:
    by_slot = _counted(ended, Trunc("ended_at", "hour" if period.is_hourly else "day"))
    form, title = ("H:i", _("By the hour")) if period.is_hourly else ("j M", _("By the day"))
    slots = [(date_format(timezone.localtime(at), form), by_slot[at]) for at in period.borders[:-1]]
    yield _chart("time", title, _("Time"), slots)
    yield _chart("topic", _("By topic"), _("Topic"), _topics(ended))
    spoken = _counted(ended, F("session__chat__language")).items()
    rows = [(_languages().get(code, _("unknown")), counts) for code, counts in spoken]
    yield _chart("language", _("By language"), _("Language"), rows)


def _counted(ended: QuerySet[SessionOutcome], by: Any) -> dict[Any, Counts]:
    found = ended.values(by=by).annotate(**COUNTS).order_by("by")
    return defaultdict(Counter, {counts["by"]: counts for counts in found})


def _topics(ended: QuerySet[SessionOutcome]) -> list[tuple[str, Counts]]:
    """Return the topics of the sessions' first questions with their counts, the frequent first."""
    verdicts = dict(ended.order_by("-ended_at").values_list("pk", "in_force")[:MAX_TOPICAL])
    by_people = Message.objects.filter(session__in=verdicts, role=Role.USER, revoked_at=None)
    asking = by_people.filter(terms__contains=[ASKING]).order_by("session_id", "order_num")
    messages = list(asking.distinct("session_id").defer("media", "history"))
    sessions: dict[UUID | None, UUID] = {each.pk: each.session_id for each in messages}
    questions = message_questions(messages, embedder().model_id)
    groups = questions_group(questions, embedder().calibration)
    largest = sorted(groups, key=lambda group: -len(group.questions))[:MAX_TOPICS]
    return [
        (group.label.text, Counter(verdicts[sessions[each.message_id]] for each in group.questions))
        for group in largest
    ]


def _chart(key: str, title: str, first: str, rows: Sequence[tuple[str, Counts]]) -> dict[str, Any]:
    """Return a chart of the rates, with the table that tells the same: dashboard/chart.html."""
    column = _("Helped, %")
    shares = [_share(counts) for _name, counts in rows]
    series = {"title": column, "colour": "--chart-1", "values": shares}
    # A long question is no label of a bar.
    labels = [Truncator(name).chars(24) for name, _counts in rows]
    return {
        "key": key,
        "title": title,
        "kind": "bar",
        "first": first,
        "data": json.dumps({"labels": labels, "series": [series]}),
        "columns": [column, *Verdict.labels],
        "rows": [
            (name, [{"text": share_shown(each)}, *({"text": each[v]} for v in COUNTS)])
            for name, each in rows
        ],
    }


def _languages() -> dict[str, str]:
    info = translation.get_language_info
    return {code: str(info(code)["name_translated"]) for code in languages()}
