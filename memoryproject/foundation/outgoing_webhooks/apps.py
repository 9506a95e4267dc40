"""The Django app of the outgoing webhooks, below the apps that raise events."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class HooksConfig(AppConfig):
    name = "memoryproject.foundation.outgoing_webhooks"
    label = "hooks"
    verbose_name = _("Webhooks")
