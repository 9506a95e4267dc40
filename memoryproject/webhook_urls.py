"""The URLs of the web server for webhooks: what the front door passes on to it."""

from django.urls import include, path

from memoryproject.staff_site.front_page import views

urlpatterns = [
    path("healthz", views.healthz, name="healthz"),
    path("readyz", views.readyz, name="readyz"),
    path("webhooks/whatsapp/", include("sessions_app.inbound.webhooks.urls")),
]
