"""The errors that the API returns, all in one shape.

The shape is ``{"type", "errors": [{"code", "detail", "attr"}]}``.
"""

import re

from django.http import JsonResponse
from rest_framework.exceptions import APIException, ErrorDetail, NotFound, ValidationError

# The beginning of the services' errors, such as "messages[3].role: …" or "limit: …".
PLACE = re.compile(r"^(?P<path>[a-z_]+(?:\[\d+\])?(?:\.[a-z_]+)*): (?P<rest>.*)$", re.DOTALL)


class BodyTooLarge(APIException):
    status_code = 413
    default_code = "body_too_large"


class UnsupportedEncoding(APIException):
    """The body is compressed."""

    status_code = 415
    default_code = "unsupported_media_type"
    default_detail = "This server takes no compressed body: send it without Content-Encoding."


class LengthRequired(APIException):
    status_code = 411
    default_code = "length_required"
    default_detail = "This server takes no body in chunks: send it with Content-Length."


class Conflict(APIException):
    """The call isn't possible in the object's current state."""

    status_code = 409
    default_code = "conflict"


class PreconditionFailed(APIException):
    status_code = 412
    default_code = "precondition_failed"
    default_detail = (
        "It was changed since you read it. Read it again, and send the new ETag as If-Match."
    )


class AnotherBody(APIException):
    status_code = 422
    default_code = "idempotency_key_reused"
    default_detail = "This Idempotency-Key was used for another call. Take a new key for each."


class StillRunning(Conflict):
    default_code = "idempotency_in_progress"
    default_detail = "The first call with this key isn't finished. Try again, with the same key."
    wait = 5


class MemoryDisabled(APIException):
    status_code = 403
    default_code = "memory_disabled"
    default_detail = (
        "The memory system is disabled: nothing is stored. Set ENABLE_MEMORY_SYSTEM=true, or "
        "switch this chat's memory on in the admin."
    )


class Unavailable(APIException):
    """A required service is down; it may be up again ``wait`` seconds later."""

    status_code = 503
    default_code = "unavailable"
    default_detail = "The database can't be used at the moment. Nothing was changed; try again."
    wait = 5


def error_response(code: str, detail: str, *, status: int) -> JsonResponse:
    """Return an error in the API's shape, from outside of its views."""
    kind = "server_error" if status >= 500 else "client_error"
    error = {"code": code, "detail": detail, "attr": None}
    return JsonResponse({"type": kind, "errors": [error]}, status=status)


def not_found(error: Exception) -> APIException:
    return NotFound(str(error))


def conflict(error: Exception) -> APIException:
    return Conflict(str(error))


def unavailable(error: Exception) -> APIException:
    return Unavailable(str(error))


def invalid(error: Exception) -> APIException:
    """Return a 400 for a service's error about its input.

    If the error's text begins with the path of a field, that path is ``attr``.
    """
    found = PLACE.match(str(error))
    if found is None:
        return refuse(str(error))
    path = found["path"].replace("[", ".").replace("]", "")
    return refuse(found["rest"], attr=path)


def refuse(detail: str, *, code: str = "invalid", attr: str | None = None) -> ValidationError:
    """400 with one error; ``attr`` is the field, or its path such as ``messages.3.role``."""
    error = ErrorDetail(detail, code)
    return ValidationError([error] if attr is None else {attr: [error]})
