"""Tombstones of forgotten facts, which must not be learned again."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class Tombstone(models.Model):
    """A forgotten fact of a scope as a keyed hash.

    The hash recognises the fact when it comes again, but can't reveal it.
    """

    scope = models.CharField(_("scope"), max_length=64)
    key = models.CharField(_("key"), max_length=64)
    created_at = models.DateTimeField(_("created at"), default=timezone.now)

    class Meta:
        verbose_name = _("tombstone")
        verbose_name_plural = _("tombstones")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["scope", "key"], name="tombstone_once_a_scope")
        ]

    def __str__(self) -> str:
        return f"a fact of {self.scope}"
