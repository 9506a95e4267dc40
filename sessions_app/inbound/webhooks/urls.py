"""URLs of the webhooks.

Providers follow no redirect to the address with a slash at its end: their messages would be lost.
"""

from django.urls import path

from sessions_app.inbound.webhooks.views import cloud_webhook, green_webhook

urlpatterns = [
    path("cloud/", cloud_webhook, name="webhook-cloud"),
    path("green/", green_webhook, name="webhook-green"),
    path("cloud", cloud_webhook),
    path("green", green_webhook),
]
