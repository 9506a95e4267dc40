"""Put conversations off by a form, until a time of the business's clock."""

from __future__ import annotations

from datetime import datetime, time, timedelta

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy, ngettext

from memoryproject.foundation.admin_kit.display import moment_shown
from sessions_app.inbox.admin.review_request import ReviewRequest
from sessions_app.inbox.errors import ReviewError
from sessions_app.inbox.snooze import chats_snooze, chats_unsnooze

MORNING = time(9)
HOURS = {"1h": 1, "4h": 4}
DAYS = {"morning": 1, "week": 7}
CHOICES = (
    ("1h", gettext_lazy("for 1 hour")),
    ("4h", gettext_lazy("for 4 hours")),
    ("morning", gettext_lazy("until tomorrow, 9:00")),
    ("week", gettext_lazy("for a week")),
)


class SnoozeForm(forms.Form):
    """A time in the format that browsers send."""

    until = forms.DateTimeField(
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"],
        error_messages={
            "required": gettext_lazy("Say until when."),
            "invalid": gettext_lazy("That is no date with a time, or the clock skips it."),
        },
    )


def snooze(review: ReviewRequest) -> str:
    until = _until(review)
    count = chats_snooze(
        user=review.user,
        chat_ids=review.chats,
        until=until,
        actor=review.actor,
        seen_at=review.seen_at(),
    )
    when = moment_shown(until)
    return ngettext(
        "%(count)s conversation is snoozed until %(time)s.",
        "%(count)s conversations are snoozed until %(time)s.",
        count,
    ) % {"count": count, "time": when}


def unsnooze(review: ReviewRequest) -> str:
    count = chats_unsnooze(chat_ids=review.chats, actor=review.actor)
    return ngettext(
        "%(count)s conversation is back in the inbox.",
        "%(count)s conversations are back in the inbox.",
        count,
    ) % {"count": count}


def _until(review: ReviewRequest) -> datetime:
    now = timezone.now()
    lasts = review.value
    if lasts in HOURS:
        return now + timedelta(hours=HOURS[lasts])
    if lasts in DAYS:
        zone = timezone.get_current_timezone()
        day = now.astimezone(zone).date() + timedelta(days=DAYS[lasts])
        return datetime.combine(day, MORNING, zone)
    form = SnoozeForm(review.request.POST)
    if not form.is_valid():
        raise ReviewError(" ".join(str(each) for each in form.errors["until"]))
    until: datetime = form.cleaned_data["until"]
    return until
