"""The URLs of the schema and its page, and the response to unknown addresses."""

from django.urls import path, re_path

from memoryproject.foundation.rest_kit.schema_views import nowhere, schema, schema_page

schema_urlpatterns = [
    path("schema/", schema, name="api-schema"),
    path("docs/", schema_page, name="api-docs"),
]
# Must be the last pattern.
nowhere_urlpatterns = [re_path(r"^", nowhere, name="api-nowhere")]
