"""The app of memory cards."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class CardsAppConfig(AppConfig):
    name = "cards_app"
    verbose_name = _("Cards")
