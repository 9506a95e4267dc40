"""Filters of the inbox that staff keep under a name."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

MAX_FILTER_NAME = 40
MAX_FILTER_QUERY = 500


class SavedFilter(models.Model):
    """Filters of the inbox under a name: one's own, or shared with all staff.

    ``query`` is the query string of the inbox, in one fixed order and without search words, which
    may name a person.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("user"), on_delete=models.CASCADE, related_name="+"
    )
    name = models.CharField(_("name"), max_length=MAX_FILTER_NAME)
    query = models.CharField(_("filters"), max_length=MAX_FILTER_QUERY)
    is_shared = models.BooleanField(_("shared"), default=False)

    class Meta:
        verbose_name = _("saved filter")
        verbose_name_plural = _("saved filters")
        ordering: ClassVar = [Lower("name"), "pk"]
        constraints: ClassVar = [
            models.UniqueConstraint("user", Lower("name"), name="saved_filter_once"),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["id"], condition=models.Q(is_shared=True), name="saved_filters_shared"
            )
        ]

    def __str__(self) -> str:
        return self.name
