"""The app of long-term memories."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class MemoriesAppConfig(AppConfig):
    name = "memories_app"
    verbose_name = _("Memory")
