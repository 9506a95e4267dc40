"""The API's response to an unknown address, in the shape of its errors."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from memoryproject.foundation.rest_kit.bodies import drain


@csrf_exempt
def nowhere(request: HttpRequest) -> HttpResponse:
    """Return a 404. Known addresses end with a slash, and ids in them are UUIDs."""
    detail = "There is no such address; /api/docs/ lists those that there are."
    if not request.path.endswith("/"):
        detail = "There is no such address: they all end with a slash."
    drain(request)
    error = {"code": "not_found", "detail": detail, "attr": None}
    return JsonResponse({"type": "client_error", "errors": [error]}, status=404)
