"""Formats figures in the language and time zone of the reader."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from memoryproject.foundation.admin_kit.periods import Period

MINUTE, HOUR, DAY = 60, 3_600, 86_400


def count_shown(number: float) -> str:
    return number_format(number, force_grouping=True)


def mean_shown(number: float) -> str:
    """Return a mean, with one decimal where it is small and no whole number."""
    digits = 1 if number < 10 and round(number, 1) % 1 else 0
    return number_format(round(number, digits), digits, force_grouping=True)


def seconds_shown(seconds: float | None) -> str:
    """Return seconds with a fitting precision; a dash for None."""
    if seconds is None:
        return "–"
    if seconds < 10:
        return _("%(seconds)s s") % {"seconds": number_format(seconds, 1)}
    if seconds < 2 * MINUTE:
        return _("%(seconds)s s") % {"seconds": number_format(seconds, 0)}
    if seconds < 2 * HOUR:
        minutes = round(seconds / MINUTE)
        return ngettext("%(number)s minute", "%(number)s minutes", minutes) % {"number": minutes}
    if seconds < 2 * DAY:
        hours = round(seconds / HOUR)
        return ngettext("%(number)s hour", "%(number)s hours", hours) % {"number": hours}
    days = round(seconds / DAY)
    return ngettext("%(number)s day", "%(number)s days", days) % {"number": days}


def since_shown(since: datetime, *, now: datetime) -> str:
    return seconds_shown(max((now - since) / timedelta(seconds=1), 0.0))


def slot_shown(start: datetime, period: Period) -> str:
    """Return the name of a slot: an hour of today, or a day."""
    local = timezone.localtime(start)
    return date_format(local, "H:i" if period.is_hourly else "j M")
