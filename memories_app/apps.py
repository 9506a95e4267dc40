from django.apps import AppConfig


class MemoriesAppConfig(AppConfig):
    name = "memories_app"
