"""The Django app that keeps the health of outside services."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class OutsideServicesConfig(AppConfig):
    name = "memoryproject.foundation.outside_services"
    label = "outside_services"
    verbose_name = _("Outside services")
