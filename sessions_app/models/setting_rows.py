"""Settings that administrators changed while the server ran."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class StoredSetting(models.Model):
    """A setting that is stored: see sessions_app/stored_settings.py.

    ``value``: as one writes it into .env; that of a secret is encrypted. ``changed_by``: a staff
    member's user name, or a command's.
    """

    name = models.CharField(_("name"), max_length=64, primary_key=True)
    value = models.TextField(_("value"))
    changed_by = models.CharField(_("changed by"), max_length=255)
    changed_at = models.DateTimeField(_("changed at"), default=timezone.now)

    class Meta:
        verbose_name = _("stored setting")
        verbose_name_plural = _("stored settings")
        default_permissions: ClassVar = ()

    def __str__(self) -> str:
        return self.name
