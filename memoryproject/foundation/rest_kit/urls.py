"""Addresses: the schema and its page, the response to unknown addresses, and ids in paths."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import path, re_path, register_converter
from django.views.decorators.csrf import csrf_exempt

from memoryproject.foundation.rest_kit.bodies import drain

ID = "id"


class IdConverter:
    """A UUID, in upper case, too: so some languages write it, such as Swift.

    Django's own converter refuses it.
    """

    regex = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"

    def to_python(self, value: str) -> UUID:
        return UUID(value)

    def to_url(self, value: object) -> str:
        return str(value)


register_converter(IdConverter, ID)


# What makes the schema and its page is imported when they are requested: it is slow.


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


@csrf_exempt
def nowhere(request: HttpRequest) -> HttpResponse:
    """Return a 404 in the shape of the API's errors."""
    detail = "There is no such address; /api/docs/ lists those that there are."
    if not request.path.endswith("/"):
        detail = "There is no such address: they all end with a slash."
    drain(request)
    error = {"code": "not_found", "detail": detail, "attr": None}
    return JsonResponse({"type": "client_error", "errors": [error]}, status=404)


schema_urlpatterns = [
    path("schema/", schema, name="api-schema"),
    path("docs/", schema_page, name="api-docs"),
]
# Must be the last pattern.
nowhere_urlpatterns = [re_path(r"^", nowhere, name="api-nowhere")]
