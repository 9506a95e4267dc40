"""The URLs of the whole server."""

from django.contrib import admin
from django.urls import include, path
from django.views.i18n import set_language

from memoryproject.foundation.rest_kit.urls import nowhere_urlpatterns, schema_urlpatterns
from memoryproject.staff_site import front_page

admin.autodiscover()

urlpatterns = [
    path("", front_page.home, name="home"),
    path("healthz", front_page.healthz, name="healthz"),
    path("readyz", front_page.readyz, name="readyz"),
    path("metrics", front_page.metrics, name="metrics"),
    path("webhooks/whatsapp/", include("sessions_app.inbound.webhooks.urls")),
    path("api/", include(schema_urlpatterns)),
    path("api/v1/", include("sessions_app.api.urls")),
    path("api/v1/", include("sessions_app.api.memory_urls")),
    path("api/v1/", include("memories_app.memory_documents.document_api")),
    path("api/", include(nowhere_urlpatterns)),
    path("", include("sessions_app.mcp.urls")),
    path("admin/language/", set_language, name="set_language"),
    path("admin/", admin.site.urls),
]
