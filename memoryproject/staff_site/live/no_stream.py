"""The address of the streams where only Django serves: there are none."""

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe


@require_safe
def no_stream(request: HttpRequest) -> HttpResponse:
    """Respond 204, by which a server tells a page not to connect again (HTML's EventSource).

    A thread would be held for each page. The front door sends this address to the program `live`.
    """
    return HttpResponse(status=HTTPStatus.NO_CONTENT)
