"""The URLs of the schema and its page, and the response to unknown addresses."""

from django.urls import path, re_path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from memoryproject.foundation.rest_kit import schema  # noqa: F401 registers its parts
from memoryproject.foundation.rest_kit.nowhere import nowhere

schema_urlpatterns = [
    path("schema/", SpectacularAPIView.as_view(throttle_classes=()), name="api-schema"),
    path(
        "docs/",
        SpectacularSwaggerSplitView.as_view(url_name="api-schema", throttle_classes=()),
        name="api-docs",
    ),
]
# Must be the last pattern.
nowhere_urlpatterns = [re_path(r"^", nowhere, name="api-nowhere")]
