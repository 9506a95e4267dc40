"""The app of memory cards."""

from django.apps import AppConfig


class CardsAppConfig(AppConfig):
    name = "cards_app"
    verbose_name = "Cards"
