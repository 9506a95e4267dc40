"""Merges of two contacts by staff, with what it takes to undo them."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from sessions_app.models.chats import Chat


class ContactMerge(models.Model):
    """A merge that can be undone: which rows of ``chat`` came from the contact that is gone.

    ``gone_id``: the id of the chat that was moved into ``chat``; undoing the merge brings it back.
    ``gone`` and ``kept``: the columns of both chats, as they were before. ``rows``: the ids of the
    rows that were moved, and what staff had decided about the two. The record goes with its chat,
    or when the merge is undone.
    """

    merge_id = models.UUIDField(_("merge id"), primary_key=True, default=uuid.uuid4, editable=False)
    chat = models.ForeignKey(
        Chat, verbose_name=_("chat"), on_delete=models.CASCADE, related_name="merges"
    )
    gone_id = models.UUIDField(_("merged chat"), unique=True)
    merged_at = models.DateTimeField(_("merged at"))
    merged_by = models.CharField(_("merged by"), max_length=150)
    gone = models.JSONField(_("merged contact before the merge"), default=dict)
    kept = models.JSONField(_("remaining contact before the merge"), default=dict)
    rows = models.JSONField(_("moved records"), default=dict)

    class Meta:
        verbose_name = _("contact merge")
        verbose_name_plural = _("contact merges")
        # The permission is Chat's merge_chat.
        default_permissions = ()
        ordering: ClassVar = ["-merged_at", "merge_id"]

    def __str__(self) -> str:
        return f"{self.gone_id} into {self.chat_id}"
