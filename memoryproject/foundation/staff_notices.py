"""What members of staff are told of: any feature says that it happened, the staff site tells them.

The ground floor and the features know no staff site: a job lies between.
"""

from collections.abc import Iterable
from uuid import UUID

from django.apps import apps
from django.db import models
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.choices import labelled
from memoryproject.foundation.process.jobs import enqueue


class Kind(models.TextChoices):
    """What staff can be notified of. The labels are also the first words of a notification."""

    ASKED = labelled("asked", _("A client asked for a person"))
    ASSIGNED = labelled("assigned", _("A conversation was assigned to you"))
    FAILED = labelled("failed", _("An answer failed or is late"))
    UNKNOWN = labelled("unknown", _("The assistant didn't know an answer"))
    SUGGESTED = labelled("suggested", _("A memory was suggested"))
    DUE = labelled("due", _("A rule applies, or something is due"))
    REGRESSION = labelled("regression", _("A test of the answers failed"))


def notify(
    kind: str, events: Iterable[tuple[object, UUID | None]], *, user_id: int | None = None
) -> None:
    """Let staff be told of these events. Call it in the transaction of the change.

    ``events``: the id of each event, of at most 100 characters, and its chat, if it has one. What
    was told of isn't told of again. ``user_id``: the only person whom it concerns.
    """
    if found := [(str(subject), chat) for subject, chat in events]:
        task = "memoryproject.staff_site.tasks.notify_staff"
        enqueue(task, str(kind), found, user_id, task_name="notify staff")


def notices_move(*, from_chat: UUID, to_chat: UUID) -> None:
    """Keep what staff were told of a chat, and still wait to be told, with the chat it becomes."""
    stored = apps.get_model("dashboard", "Notification")._default_manager
    stored.filter(chat=from_chat).update(chat=to_chat)
