"""The recent changes of the texts that recall searches."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

# In ``scope``: whatever is known of any scope is no longer certain.
EVERYTHING = ""


class TextChange(models.Model):
    """A text that came, changed or went, or whose vector did.

    Database triggers write these rows, in the same transaction. They tell processes that hold a
    scope in memory what to read again: see ``memories_app.ranking.scope_cache``. Rows are kept for
    an hour. ``scope``: that of a memory, or ``messages:<chat id>``. ``changed_in``: the id of the
    transaction.
    """

    scope = models.TextField(_("scope"))
    text_id = models.UUIDField(_("text id"), null=True)
    changed_in = models.BigIntegerField(_("changed in"))
    changed_at = models.DateTimeField(_("changed at"), db_default=Now())

    class Meta:
        verbose_name = _("change of a text")
        verbose_name_plural = _("changes of texts")
        indexes: ClassVar = [
            models.Index(fields=["scope", "changed_in"], name="changes_of_scope"),
            models.Index(fields=["changed_in"], name="changes_in_order"),
        ]

    def __str__(self) -> str:
        return f"{self.scope}: {self.text_id}"
