"""The app of long-term memories."""

from django.apps import AppConfig


class MemoriesAppConfig(AppConfig):
    name = "memories_app"
    verbose_name = "Memory"
