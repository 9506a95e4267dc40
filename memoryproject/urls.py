"""The URLs of the whole server."""

from django.contrib import admin
from django.urls import include, path, re_path
from django.views.generic import TemplateView
from django.views.i18n import set_language

from memoryproject.foundation.oauth.oauth_endpoints import urlpatterns as oauth_urlpatterns
from memoryproject.foundation.rest_kit.views import nowhere_urlpatterns, schema_urlpatterns
from memoryproject.staff_site import front_page
from sessions_app.mcp.view import McpView
from sessions_app.proxy.views import elsewhere

admin.autodiscover()
# The files by which the staff's pages are an app. A worker serves the folder from which it comes.
MANIFEST = TemplateView.as_view(
    template_name="admin/manifest.webmanifest", content_type="application/manifest+json"
)
WORKER = TemplateView.as_view(template_name="admin/worker.js", content_type="text/javascript")

handler404 = front_page.not_found
urlpatterns = [
    path("", front_page.home, name="home"),
    path("healthz", front_page.healthz, name="healthz"),
    path("readyz", front_page.readyz, name="readyz"),
    path("metrics", front_page.metrics, name="metrics"),
    path("webhooks/whatsapp/", include("sessions_app.inbound.webhooks")),
    # What OpenAI's clients call where their base URL isn't that of /v1.
    re_path(r"^(?:api/v1/)?(?:chat/completions|responses|models)$", elsewhere),
    path("api/", include(schema_urlpatterns)),
    path("api/v1/", include("sessions_app.api.urls")),
    path("api/", include(nowhere_urlpatterns)),
    path("v1/", include("sessions_app.proxy.views")),
    # Clients may write it with or without a slash at its end.
    re_path(r"^mcp/?$", McpView.as_view(), name="mcp"),
    *oauth_urlpatterns,
    path("admin/language/", set_language, name="set_language"),
    path("admin/manifest.webmanifest", MANIFEST, name="app_manifest"),
    path("admin/worker.js", WORKER, name="app_worker"),
    path("admin/", admin.site.urls),
]
