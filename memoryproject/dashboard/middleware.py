"""Staff read times in the business's time zone."""

from __future__ import annotations

from collections.abc import Callable
from zoneinfo import ZoneInfo

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone


class BusinessTimeZone:
    """Shows the admin's times in BUSINESS_TIME_ZONE; everything is stored in UTC."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path.startswith("/admin/"):
            return self.get_response(request)
        with timezone.override(ZoneInfo(settings.BUSINESS_TIME_ZONE)):
            return self.get_response(request)
