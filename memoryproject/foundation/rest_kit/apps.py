"""The Django app of the API's own tables, below the apps that have endpoints."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ApiConfig(AppConfig):
    name = "memoryproject.foundation.rest_kit"
    label = "api"
    verbose_name = _("API")
