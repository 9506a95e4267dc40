"""The schema and its page. What makes them is imported when they are requested: it is slow."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from memoryproject.foundation.rest_kit.bodies import drain


@csrf_exempt
def schema(request: HttpRequest) -> HttpResponseBase:
    """Return the schema of the API."""
    from drf_spectacular.views import SpectacularAPIView  # noqa: PLC0415 slow

    return SpectacularAPIView.as_view(throttle_classes=())(request)


@csrf_exempt
def schema_page(request: HttpRequest) -> HttpResponseBase:
    """Return the page that shows the schema, or its script."""
    from drf_spectacular.views import SpectacularSwaggerSplitView  # noqa: PLC0415 slow

    view = SpectacularSwaggerSplitView.as_view(
        url_name="api-schema",
        throttle_classes=(),
        # It has no template for what OPTIONS tells.
        http_method_names=["get", "head"],
    )
    return view(request)


# The API's response to an unknown address, in the shape of its errors.


@csrf_exempt
def nowhere(request: HttpRequest) -> HttpResponse:
    """Return a 404. Known addresses end with a slash, and ids in them are UUIDs."""
    detail = "There is no such address; /api/docs/ lists those that there are."
    if not request.path.endswith("/"):
        detail = "There is no such address: they all end with a slash."
    drain(request)
    error = {"code": "not_found", "detail": detail, "attr": None}
    return JsonResponse({"type": "client_error", "errors": [error]}, status=404)
