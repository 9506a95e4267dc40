"""The duration of a login, and the factors that proved it."""

from __future__ import annotations

from enum import Enum
from typing import Any

from django.conf import settings
from django.contrib.auth.signals import user_logged_in
from django.http import HttpRequest
from django.utils import timezone
from django_otp.plugins.otp_totp.models import TOTPDevice

from memoryproject.foundation.admin_kit.live import is_live

SEEN = "seen"
SECOND_FACTOR = "second_factor"
# A session's row isn't written for each page.
WRITTEN_EVERY_SECONDS = 60


class Standing(Enum):
    """The state of a login session.

    ``IDLE``: unused for too long. ``UNPROVED``: a second factor is set up, and this session began
    without it. ``TO_SET_UP``: a second factor is required, and there is none.
    """

    GOOD = "good"
    IDLE = "idle"
    UNPROVED = "unproved"
    TO_SET_UP = "to set up"


def connect() -> None:
    user_logged_in.connect(_begin, dispatch_uid="staff_session_begins")


def _begin(request: HttpRequest, **_: Any) -> None:
    request.session[SEEN] = _now()


def standing_of(request: HttpRequest) -> Standing:
    """Return the state of a logged-in user's session. Takes one query for staff."""
    seen = request.session.get(SEEN)
    if seen is not None and _now() - seen > settings.STAFF_SESSION_MINUTES * 60:
        return Standing.IDLE
    if not request.user.is_staff:
        return Standing.GOOD
    device = device_of(request.user)
    if device is not None:
        proved = request.session.get(SECOND_FACTOR) == device.pk
        return Standing.GOOD if proved else Standing.UNPROVED
    return Standing.TO_SET_UP if settings.STAFF_TWO_FACTOR == "required" else Standing.GOOD


def device_of(user: Any) -> TOTPDevice | None:
    """Return the user's second factor, if one is set up."""
    return TOTPDevice.objects.filter(user=user, confirmed=True).order_by("pk").first()


def prove(request: HttpRequest, device: TOTPDevice) -> None:
    """Record that this session was proved with both factors, after a right code."""
    request.session[SECOND_FACTOR] = device.pk


def keep_alive(request: HttpRequest) -> None:
    """Record the user's activity, at most once a minute. A page's own refreshing doesn't count."""
    seen = request.session.get(SEEN)
    if not is_live(request) and (seen is None or _now() - seen >= WRITTEN_EVERY_SECONDS):
        request.session[SEEN] = _now()


def _now() -> int:
    return int(timezone.now().timestamp())
