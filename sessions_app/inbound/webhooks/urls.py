"""URLs of the webhooks.

Providers follow no redirect to the address with a slash at its end: their messages would be lost.
"""

from django.urls import path

from memoryproject.foundation.integrations.whatsapp.registry import PROVIDERS
from sessions_app.inbound.webhooks.views import webhook

_VIEWS = {name: webhook(record) for name, record in PROVIDERS.items()}
urlpatterns = [
    *(path(f"{name}/", view, name=f"webhook-{name}") for name, view in _VIEWS.items()),
    *(path(name, view) for name, view in _VIEWS.items()),
]
