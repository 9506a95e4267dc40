"""Pages that refresh themselves while they are open."""

from __future__ import annotations

from django.http import HttpRequest

LIVE = "live"


def is_live(request: HttpRequest) -> bool:
    """Whether a page asks by itself, not somebody: its requests carry
    ``X-Requested-With: live`` (or ``X-Live``). They keep no session alive. Anybody can send a
    header: what is read is recorded all the same where it is new."""
    return request.headers.get("X-Requested-With", "") == LIVE or "X-Live" in request.headers
