from django.apps import AppConfig


class CardsAppConfig(AppConfig):
    name = "cards_app"
