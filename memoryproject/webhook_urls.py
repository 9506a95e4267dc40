"""The URLs of the web server for webhooks: what the front door passes on to it."""

from django.urls import include, path

from memoryproject.staff_site import front_page

urlpatterns = [
    path("healthz", front_page.healthz, name="healthz"),
    path("readyz", front_page.readyz, name="readyz"),
    path("webhooks/whatsapp/", include("sessions_app.inbound.webhooks")),
]
