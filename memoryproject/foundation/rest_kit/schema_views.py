"""The schema and its page. What makes them is imported when they are requested: it is slow."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt


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
