"""URLs of the webhooks."""

from django.urls import path

from sessions_app.inbound.webhooks.cloud import cloud_webhook
from sessions_app.inbound.webhooks.green import green_webhook

urlpatterns = [
    path("cloud/", cloud_webhook, name="webhook-cloud"),
    path("green/", green_webhook, name="webhook-green"),
]
