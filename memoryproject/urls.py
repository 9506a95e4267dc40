"""Every address of the server."""

from django.contrib import admin
from django.urls import include, path

from memoryproject.dashboard import views

urlpatterns = [
    path("", views.home, name="home"),
    path("healthz", views.healthz, name="healthz"),
    path("readyz", views.readyz, name="readyz"),
    path("webhooks/whatsapp/", include("sessions_app.webhooks.urls")),
    path("admin/", admin.site.urls),
]
