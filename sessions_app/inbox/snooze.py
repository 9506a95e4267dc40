"""Put conversations off until a time; they come back by themselves."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from memoryproject.foundation.audit.audit_events import Actor
from sessions_app.inbox.chat_locks import chats_lock, chats_record
from sessions_app.inbox.errors import ReviewError
from sessions_app.inbox.read_markers import FROM_PEOPLE
from sessions_app.models import Message, Snooze

MAX_SNOOZE = timedelta(days=366)


def snoozes_in_force() -> QuerySet[Snooze]:
    """Return the snoozes whose time isn't over and whose person hasn't written since."""
    written = Message.objects.filter(
        chat=OuterRef("chat"), role__in=FROM_PEOPLE, received_at__gt=OuterRef("since")
    )
    return Snooze.objects.filter(~Exists(written), until__gt=Now())


def chats_snooze(
    *,
    user: User,
    chat_ids: Collection[UUID],
    until: datetime,
    actor: Actor,
    seen_at: datetime | None = None,
) -> int:
    """Put these chats off until a time; return how many.

    ``seen_at``: when the page was made on which the user decided. Messages since then bring the
    chat back at once. Raises ReviewError for a time that is over or more than a year away.
    """
    now = timezone.now()
    if until <= now:
        raise ReviewError(_("That time is over."))
    if until > now + MAX_SNOOZE:
        raise ReviewError(_("That is more than a year away."))
    since = min(seen_at or now, now)
    with transaction.atomic():
        chats = chats_lock(chat_ids)
        Snooze.objects.bulk_create(
            [Snooze(chat_id=key, since=since, until=until, snoozed_by=user) for key in chats],
            update_conflicts=True,
            unique_fields=["chat"],
            update_fields=["since", "until", "snoozed_by"],
        )
        chats_record("chat.snooze", chats, actor, {"until": until.isoformat()})
    return len(chats)


def chats_unsnooze(*, chat_ids: Collection[UUID], actor: Actor) -> int:
    """Bring these chats back now; return how many were put off."""
    with transaction.atomic():
        chats = chats_lock(chat_ids)
        snoozed = Snooze.objects.filter(chat__in=chats)
        woken = sorted(snoozed.values_list("chat", flat=True))
        snoozed.delete()
        chats_record("chat.unsnooze", woken, actor)
    return len(woken)
