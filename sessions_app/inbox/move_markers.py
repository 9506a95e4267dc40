"""Move the read markers of staff members and the reviewed markers of chats."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from memoryproject.foundation.audit.audit_events import Actor, Event, audit_record_many
from sessions_app.conversations.facade import Place
from sessions_app.inbox.read_markers import (
    FROM_PEOPLE,
    last_message_place,
    place_fields,
    place_marked,
)
from sessions_app.models import Chat, Message, ReadMark, ReviewedMark, Snooze


class ReviewError(ValueError):
    """The request is invalid, or not valid any more. The text is for staff."""


def chat_look(*, user: User, chat_id: UUID, place: Place) -> None:
    """Move the user's read marker forward to this place; never move it back."""
    try:
        made, is_new = ReadMark.objects.get_or_create(
            user=user, chat_id=chat_id, defaults=place_fields(place)
        )
    except IntegrityError:
        # The chat was erased at the same moment.
        return
    if not is_new and place_marked(made) < place:
        _before(ReadMark.objects.filter(pk=made.pk), place).update(**place_fields(place))


def chats_mark_read(*, user: User, chat_ids: Collection[UUID], actor: Actor) -> int:
    """Mark these chats as read for the user; return how many."""
    with transaction.atomic():
        chats = chats_lock(chat_ids)
        places = {key: place for key, (_id, place) in last_message_place(chats).items()}
        _set_read(user, places)
        chats_record("chat.mark_read", chats, actor)
    return len(chats)


def chats_mark_unread(*, user: User, chat_ids: Collection[UUID], actor: Actor) -> int:
    """Mark the last message of each person as unread; return how many chats."""
    with transaction.atomic():
        chats = chats_lock(chat_ids)
        found = last_message_place(chats, FROM_PEOPLE)
        _set_read(user, {key: place.just_before() for key, (_id, place) in found.items()})
        chats_record("chat.mark_unread", chats, actor)
    return len(chats)


def chats_review(
    *,
    user: User,
    chat_ids: Collection[UUID],
    actor: Actor,
    seen: Mapping[UUID, UUID] | None = None,
    seen_at: datetime | None = None,
) -> int:
    """Mark these chats as reviewed; return how many.

    Each is reviewed up to the message in ``seen``, or up to its last one; later messages aren't.
    Failed answers are reviewed up to ``seen_at``, or up to now, because they may have no message.

    Raises ReviewError if a message in ``seen`` doesn't exist any more.
    """
    with transaction.atomic():
        chats = chats_lock(chat_ids)
        places = {key: place for key, (_id, place) in last_message_place(chats).items()}
        places |= _places_of({key: seen[key] for key in chats if seen and key in seen})
        now = timezone.now()
        # A page can't have shown anything later than now.
        border = min(seen_at or now, now)
        for key, place in sorted(places.items()):
            fields = {**place_fields(place), "reviewed_by": user, "reviewed_at": border}
            mark, is_new = ReviewedMark.objects.select_for_update().get_or_create(
                chat_id=key, defaults=fields
            )
            if not is_new and place_marked(mark) <= place:
                # A form of an older page doesn't move the marker back.
                fields["reviewed_at"] = max(border, mark.reviewed_at)
                ReviewedMark.objects.filter(pk=key).update(**fields)
        # A conversation that is done with doesn't come back by its time.
        Snooze.objects.filter(chat__in=chats).delete()
        chats_record("chat.review", chats, actor)
    return len(chats)


def chats_unreview(*, chat_ids: Collection[UUID], actor: Actor) -> int:
    """Remove the reviewed marker of these chats; return how many chats there are."""
    with transaction.atomic():
        chats = chats_lock(chat_ids)
        ReviewedMark.objects.filter(chat__in=chats).delete()
        chats_record("chat.unreview", chats, actor)
    return len(chats)


def _places_of(seen: Mapping[UUID, UUID]) -> dict[UUID, Place]:
    messages = Message.objects.filter(pk__in=seen.values()).select_related("session")
    found = {message.chat_id: Place.of(message) for message in messages.defer("terms", "content")}
    if seen.keys() - found.keys():
        raise ReviewError(_("The conversation has changed meanwhile: please look at it again."))
    return found


def _set_read(user: User, places: Mapping[UUID, Place]) -> None:
    marks = [
        ReadMark(user=user, chat_id=key, **place_fields(places[key])) for key in sorted(places)
    ]
    ReadMark.objects.bulk_create(
        marks,
        update_conflicts=True,
        unique_fields=["user", "chat"],
        update_fields=["began_at", "session_key", "order_num"],
    )


def _before(marks: Any, place: Place) -> Any:
    """Filter markers that are before a place."""
    here = Q(began_at=place.began_at)
    return marks.filter(
        Q(began_at__lt=place.began_at)
        | here & Q(session_key__lt=place.session_id)
        | here & Q(session_key=place.session_id, order_num__lt=place.order_num)
    )


# Lock the chats of a review, and audit it.


def chats_lock(chat_ids: Collection[UUID]) -> list[UUID]:
    """Lock these chats until the transaction ends; return the ones that exist."""
    rows = Chat.objects.select_for_update(no_key=True).filter(pk__in=set(chat_ids))
    return list(rows.order_by("pk").values_list("pk", flat=True))


def chats_record(
    action: str, chats: Collection[UUID], actor: Actor, details: Mapping[str, Any] | None = None
) -> None:
    """Record an action on these chats in the audit log."""
    audit_record_many(
        events=[Event(action, actor, "chat", key, details=details or {}) for key in chats]
    )
