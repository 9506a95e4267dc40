"""Read from the pause form until when the assistant is paused."""

from __future__ import annotations

from datetime import datetime, time, timedelta

from django import forms
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

MORNING = time(8)
MAX_PAUSE = timedelta(days=366)


class UntilForm(forms.Form):
    """A time of the business's clock, in the format that browsers send."""

    until = forms.DateTimeField(
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"],
        error_messages={
            "required": gettext_lazy("Say until when."),
            "invalid": gettext_lazy("That is no date with a time, or the clock skips it."),
        },
    )

    def clean_until(self) -> datetime:
        until: datetime = self.cleaned_data["until"]
        now = timezone.now()
        if until <= now:
            raise forms.ValidationError(_("That time is over."))
        if until > now + MAX_PAUSE:
            raise forms.ValidationError(
                _("That is more than a year away: pause until you turn it on instead.")
            )
        return until


def pause_end(request: HttpRequest) -> datetime | None:
    """Return the end of the pause; None where it has none.

    Raises ValidationError.
    """
    now = timezone.now()
    lasts = request.POST.get("lasts", "")
    if lasts == "open":
        return None
    if lasts in ("1h", "8h"):
        return now + timedelta(hours=int(lasts[0]))
    if lasts == "morning":
        return next_morning(now)
    if lasts != "at":
        raise forms.ValidationError(_("Say for how long."))
    form = UntilForm(request.POST)
    if not form.is_valid():
        raise forms.ValidationError([str(each) for each in form.errors["until"]])
    until: datetime = form.cleaned_data["until"]
    return until


def next_morning(now: datetime) -> datetime:
    """Return the next day's morning, by the business's clock, which the middleware has set."""
    zone = timezone.get_current_timezone()
    tomorrow = now.astimezone(zone).date() + timedelta(days=1)
    return datetime.combine(tomorrow, MORNING, zone)
