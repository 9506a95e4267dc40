"""URLs of the webhooks."""

from django.urls import path

from sessions_app.inbound.webhooks.views import cloud_webhook, green_webhook

urlpatterns = [
    path("cloud/", cloud_webhook, name="webhook-cloud"),
    path("green/", green_webhook, name="webhook-green"),
]
