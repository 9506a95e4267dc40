"""Pages that refresh themselves while they are open."""

from __future__ import annotations

from django.http import HttpRequest

LIVE = "live"


def is_live(request: HttpRequest) -> bool:
    """Return whether the page itself sent the request, not a person.

    Such requests carry ``X-Requested-With: live`` (or ``X-Live``) and don't keep a session alive.
    Any client can send a header: new texts that are read are recorded nevertheless.
    """
    return request.headers.get("X-Requested-With", "") == LIVE or "X-Live" in request.headers
