"""Convert the exceptions of views into responses."""

import math
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http.request import UnreadablePostError
from drf_standardized_errors.formatter import ExceptionFormatter
from drf_standardized_errors.handler import ExceptionHandler
from drf_standardized_errors.types import Error
from rest_framework.exceptions import APIException, ParseError, UnsupportedMediaType

from memoryproject.foundation.process.storage import is_caused_by_full_disk
from memoryproject.foundation.rest_kit.errors import BodyTooLarge, Unavailable
from memoryproject.foundation.rest_kit.serializers import WHOLE


class Whole(ExceptionFormatter):
    """Name the place of every error; what concerns a whole object has the object's place."""

    def get_errors(self) -> list[Error]:
        errors: list[Error] = super().get_errors()
        for error in errors:
            if error.attr is not None:
                error.attr = ".".join(part for part in error.attr.split(".") if part != WHOLE)
                error.attr = error.attr or None
        return errors


class OneShape(ExceptionHandler):
    """Convert every exception of a view into the API's error shape."""

    def convert_known_exceptions(self, exc: Exception) -> Exception:
        """Also convert exceptions of the database, of Django and of reading the body."""
        if isinstance(exc, RequestDataTooBig):
            return BodyTooLarge("The body is too large.")
        if isinstance(exc, UnreadablePostError):
            return ParseError("The body was cut off.")
        if isinstance(exc, SuspiciousOperation):
            return ParseError("The request can't be understood.")
        if isinstance(exc, UnsupportedMediaType):
            taken = " or ".join(parser.media_type for parser in self.context["view"].parser_classes)
            return UnsupportedMediaType("", f"{exc.detail} Send {taken}.")
        if isinstance(exc, OperationalError | InterfaceError):
            return exc if self._disk_is_full(exc) else Unavailable()
        converted: Exception = super().convert_known_exceptions(exc)
        return converted

    def should_not_handle(self, exc: Exception) -> bool:
        """Leave a full disk to the middleware, which handles it for every page."""
        handled_elsewhere = not isinstance(exc, APIException) and self._disk_is_full(exc)
        return handled_elsewhere or bool(super().should_not_handle(exc))

    def get_headers(self, exc: APIException) -> dict[str, Any]:
        headers = super().get_headers(exc)
        if "Retry-After" in headers:
            # Rounded up, so that a caller who retries at that time isn't refused again.
            headers["Retry-After"] = str(max(math.ceil(getattr(exc, "wait", 1)), 1))
        return headers

    def _disk_is_full(self, exc: Exception) -> bool:
        return is_caused_by_full_disk(exc, settings.DATA_DIR)
