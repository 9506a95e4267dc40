"""The page *Did it help?*: the rate by day, topic and language, and each case with its evidence."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.core.exceptions import BadRequest
from django.db import transaction
from django.db.models import Count, F, Q, QuerySet
from django.db.models.functions import Trunc
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.dateparse import parse_datetime
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memoryproject.foundation.admin_kit.list_csv import BoundedPaginator
from memoryproject.foundation.admin_kit.periods import DAYS, NAMES, Period, period_named
from memoryproject.foundation.admin_kit.staff_pages import OwnPage, rights_required, staff_page
from memoryproject.foundation.audit.audit_events import staff_read_record, staff_record
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.conversations.phrases import languages
from sessions_app.embedding.facade import embedder
from sessions_app.models import Chat, Message, SessionOutcome, Turn, Verdict
from sessions_app.models.messages import ASKING, Role
from sessions_app.outcomes import judge
from sessions_app.presentation.links import conversation_address
from sessions_app.turns.facade import message_questions, questions_group

RIGHTS = ("sessions_app.view_chatsession", "sessions_app.view_message")
DECIDE = "sessions_app.review_chat"
DEFAULT = "7"
AT_ONCE = 25
# So many of a period's newest sessions are grouped by topic, and so many topics are shown.
MAX_TOPICAL = 2_000
MAX_TOPICS = 10
KINDS = {
    judge.THANKS: gettext_lazy("said thanks"),
    judge.LIKED: gettext_lazy("liked an answer"),
    judge.BOOKED: gettext_lazy("a booking was confirmed"),
    judge.SILENCE: gettext_lazy("asked nothing more after an answer"),
    judge.DENIED: gettext_lazy("said that the answer was wrong, or none"),
    judge.DISLIKED: gettext_lazy("disliked an answer"),
    judge.REPEATED: gettext_lazy("asked the same again"),
    judge.RETURNED: gettext_lazy("came back within 24 hours with the same question"),
    judge.HANDED_OVER: gettext_lazy("was handed over to a person"),
    judge.NOT_KNOWN: gettext_lazy("asked what wasn't known"),
    judge.FAILED: gettext_lazy("an answer failed"),
}
TONES = {Verdict.HELPED: "good", Verdict.NOT_HELPED: "bad", Verdict.UNCLEAR: ""}
COUNTS = {verdict: Count("pk", filter=Q(in_force=verdict)) for verdict in Verdict.values}


def outcomes_ended(start: datetime, end: datetime) -> QuerySet[SessionOutcome]:
    return SessionOutcome.objects.filter(ended_at__gte=start, ended_at__lt=end)


def share_helped(counts: dict[str, Any]) -> int | None:
    """Return how many in a hundred of the clear cases helped; None where none is clear."""
    clear = counts[Verdict.HELPED] + counts[Verdict.NOT_HELPED]
    return round(100 * counts[Verdict.HELPED] / clear) if clear else None


def outcomes_page(request: HttpRequest) -> HttpResponse:
    """Show the outcomes of a period; ``verdict``, ``language`` and ``kind`` filter its cases."""
    rights_required(request, *RIGHTS)
    key = request.GET.get("period", DEFAULT)
    period = period_named(key if key in DAYS else DEFAULT, now=timezone.now())
    ended = outcomes_ended(period.start, period.end)
    staff_read_record(request, list="outcomes", searched=False)
    filters = {
        "verdict": (_("Outcome"), dict(Verdict.choices)),
        "language": (_("Language"), {code: _language(code) for code in languages()}),
        "kind": (_("Evidence"), KINDS),
    }
    given = {name: request.GET.get(name, "") for name in filters}
    chosen = {name: key if key in filters[name][1] else "" for name, key in given.items()}
    page = BoundedPaginator(_filtered(ended, **chosen), AT_ONCE).get_page(request.GET.get("p"))
    counts = ended.aggregate(**COUNTS)
    context = {
        "period": period.key,
        "periods": NAMES.items(),
        "counts": [(Verdict(each).label, counts[each]) for each in Verdict.values],
        "share": share_helped(counts),
        "charts": list(_charts(ended, period)) if any(counts.values()) else [],
        "filters": [
            (name, title, values.items(), chosen[name]) for name, (title, values) in filters.items()
        ],
        "page": page,
        "rows": list(_rows(page.object_list)),
        "verdicts": Verdict.choices,
        "may_decide": request.user.has_perm(DECIDE),
    }
    template = "admin/sessions_app/turn/outcomes.html"
    return staff_page(request, template, _("Did it help?"), context, of=Turn)


def outcome_decide(request: HttpRequest) -> HttpResponse:
    """Let staff's verdict be in force in place of that of the rules, or the rules' one again."""
    rights_required(request, *RIGHTS, DECIDE)
    key, verdict = uuid_or_none(request.POST.get("session", "")), request.POST.get("verdict", "")
    if key is None or verdict not in ("", *Verdict.values):
        raise BadRequest("session: an id; verdict: helped, not_helped, unclear or empty")
    outcome = SessionOutcome.objects.filter(pk=key).select_related("session").first()
    if outcome is None:
        raise Http404("There is no such outcome, or not any more.")
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


def _filtered(
    ended: QuerySet[SessionOutcome], verdict: str, language: str, kind: str
) -> QuerySet[SessionOutcome]:
    found = ended.select_related("session__chat").order_by("-ended_at", "pk")
    found = found.filter(in_force=verdict) if verdict else found
    found = found.filter(session__chat__language=language) if language else found
    return found.filter(evidence__contains=[{"kind": kind}]) if kind else found


def _rows(outcomes: Iterable[SessionOutcome]) -> Iterator[dict[str, Any]]:
    """Yield the cases of a page with their evidence, in one query for the words."""
    outcomes = list(outcomes)
    ids = {each["message_id"] for one in outcomes for each in one.evidence if each["message_id"]}
    words = dict(Message.objects.filter(pk__in=ids).values_list("pk", "content"))
    for outcome in outcomes:
        chat = outcome.session.chat
        yield {
            "outcome": outcome,
            "tone": TONES[Verdict(outcome.in_force)],
            "person": chat.shown_name,
            "address": conversation_address(chat.pk),
            "evidence": [_evidence_row(each, chat, words) for each in outcome.evidence],
        }


def _evidence_row(found: dict[str, Any], chat: Chat, words: dict[UUID, str]) -> dict[str, Any]:
    message_id = uuid_or_none(found["message_id"] or "")
    return {
        "what": KINDS[found["kind"]],
        "helps": found["kind"] in judge.FOR,
        "emoji": found.get("emoji", ""),
        "at": parse_datetime(found["at"]),
        "address": conversation_address(chat.pk, message_id) if message_id in words else "",
        "words": words.get(message_id, "") if message_id else "",
    }


# The rates, as plots with their tables.


def _charts(ended: QuerySet[SessionOutcome], period: Period) -> Iterator[dict[str, Any]]:
    slot = Trunc("ended_at", "hour" if period.is_hourly else "day")
    by_slot = {each["by"]: each for each in _counted(ended, slot)}
    none = dict.fromkeys(Verdict.values, 0)
    form = "H:i" if period.is_hourly else "j M"
    slots = [
        (date_format(timezone.localtime(start), form), by_slot.get(start, none))
        for start in period.borders[:-1]
    ]
    by_language = _counted(ended, F("session__chat__language"))
    spoken = [(_language(each["by"]), each) for each in by_language]
    title = _("By the hour") if period.is_hourly else _("By the day")
    yield _chart("time", title, _("Time"), slots)
    yield _chart("topic", _("By topic"), _("Topic"), _topics(ended))
    yield _chart("language", _("By language"), _("Language"), spoken)


def _counted(ended: QuerySet[SessionOutcome], by: Any) -> list[dict[str, Any]]:
    return list(ended.values(by=by).annotate(**COUNTS).order_by("by"))


def _topics(ended: QuerySet[SessionOutcome]) -> list[tuple[str, dict[str, Any]]]:
    """Return the topics of the sessions' first questions with their counts, the frequent first."""
    verdicts = dict(ended.order_by("-ended_at").values_list("pk", "in_force")[:MAX_TOPICAL])
    first = Message.objects.filter(
        session__in=verdicts, role=Role.USER, revoked_at=None, terms__contains=[ASKING]
    ).order_by("session_id", "order_num")
    asked = {each.pk: each for each in first.distinct("session_id").defer("media", "history")}
    model = embedder()
    questions = message_questions(list(asked.values()), model.model_id)
    found = []
    for group in questions_group(questions, model.calibration):
        ids = [each.message_id for each in group.questions]
        kinds = [verdicts[asked[key].session_id] for key in ids if key]
        found.append((group.label.text, {each: kinds.count(each) for each in Verdict.values}))
    return sorted(found, key=lambda each: -sum(each[1].values()))[:MAX_TOPICS]


def _chart(
    key: str, title: str, first: str, rows: Sequence[tuple[str, dict[str, Any]]]
) -> dict[str, Any]:
    """Return a chart of the rates, and the table that tells the same; see dashboard/chart.html."""
    shares = [share_helped(counts) for _name, counts in rows]
    series = {"title": _("Helped, %"), "colour": "--chart-1", "values": shares}
    # A long question is no label of a bar.
    labels = [name if len(name) <= 24 else f"{name[:23]}…" for name, _counts in rows]
    cells = [
        [{"text": "–" if share is None else f"{share} %"}]
        + [{"text": counts[each]} for each in Verdict.values]
        for share, (_name, counts) in zip(shares, rows, strict=True)
    ]
    return {
        "key": key,
        "title": title,
        "kind": "bar",
        "first": first,
        "data": json.dumps({"labels": labels, "series": [series]}),
        "columns": [_("Helped, %"), *(Verdict(each).label for each in Verdict.values)],
        "rows": [(name, row) for (name, _counts), row in zip(rows, cells, strict=True)],
    }


def _language(code: str) -> str:
    known = code in languages()
    return str(translation.get_language_info(code)["name_translated"]) if known else _("unknown")
