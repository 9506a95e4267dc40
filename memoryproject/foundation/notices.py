"""What members of staff are told of: any feature says that it happened, the staff site tells them.

The ground floor and the features know no staff site, so a signal lies between.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from django.db import models
from django.dispatch import Signal
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.choices import labelled

# Sent in the transaction of the change. Arguments: kind, chats, user_id; see ``notify``.
noticed = Signal()


class Kind(models.TextChoices):
    """What staff can be notified of. The labels are also the first words of a notification."""

    ASKED = labelled("asked", _("A client asked for a person"))
    ASSIGNED = labelled("assigned", _("A conversation was assigned to you"))
    FAILED = labelled("failed", _("An answer failed or is late"))
    UNKNOWN = labelled("unknown", _("The assistant didn't know an answer"))
    SUGGESTED = labelled("suggested", _("A memory was suggested"))
    DUE = labelled("due", _("A rule applies, or something is due"))
    REGRESSION = labelled("regression", _("A test of the answers failed"))


def notify(kind: Kind, chats: Mapping[object, UUID | None], *, user_id: int | None = None) -> None:
    """Let staff be told of these events. Call it in the transaction of the change.

    ``chats``: the chat of each event, if it has one, by the event's own id of at most 100
    characters: an event that was told of before isn't told of again. ``user_id``: the only person
    whom it concerns.
    """
    if chats:
        noticed.send(sender=Kind, kind=kind, chats=chats, user_id=user_id)
