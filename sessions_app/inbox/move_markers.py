"""Mark conversations as read, unread, reviewed or not, and put them off for a while."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce, Now
from django.utils import timezone
from django.utils.translation import gettext as _

from memoryproject.foundation.audit.audit_events import Actor, Event, audit_record_many
from sessions_app import models
from sessions_app.conversations.chat_queries import without_reply
from sessions_app.conversations.timeline import Place
from sessions_app.inbox.read_markers import (
    FROM_PEOPLE,
    SAID,
    last_message_place,
    news_since,
    news_there,
    place_fields,
    place_marked,
)
from sessions_app.models.turns import WRONG_STATES


class ReviewError(ValueError):
    """The request is invalid, or not valid any more. The text is for staff."""


def chat_look(*, user: User, chat_id: UUID, place: Place) -> None:
    """Move the user's read marker forward to this place; never move it back."""
    try:
        made, is_new = models.ReadMark.objects.get_or_create(
            user=user, chat_id=chat_id, defaults=place_fields(place)
        )
    except IntegrityError:
        # The chat was erased at the same moment.
        return
    if not is_new and place_marked(made) < place:
        _before(models.ReadMark.objects.filter(pk=made.pk), place).update(**place_fields(place))


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
            mark, is_new = models.ReviewedMark.objects.select_for_update().get_or_create(
                chat_id=key, defaults=fields
            )
            if not is_new and place_marked(mark) <= place:
                # A form of an older page doesn't move the marker back.
                fields["reviewed_at"] = max(border, mark.reviewed_at)
                models.ReviewedMark.objects.filter(pk=key).update(**fields)
        # A conversation that is done with doesn't come back by its time.
        models.Snooze.objects.filter(chat__in=chats).delete()
        models.ChatMark.objects.filter(chat__in=chats).delete()
        chats_record("chat.review", chats, actor)
    return len(chats)


def chats_unreview(*, chat_ids: Collection[UUID], actor: Actor) -> int:
    """Remove the reviewed marker of these chats; return how many chats there are."""
    with transaction.atomic():
        chats = chats_lock(chat_ids)
        models.ReviewedMark.objects.filter(chat__in=chats).delete()
        chats_record("chat.unreview", chats, actor)
    return len(chats)


def review_rows(chat_ids: Collection[UUID]) -> list[Any]:
    """Return the rows that ``chats_review`` changes or deletes, for ``chats_review_undo``."""
    kinds: tuple[Any, ...] = (models.ReviewedMark, models.Snooze, models.ChatMark)
    return [row for kind in kinds for row in kind.objects.filter(chat__in=chat_ids)]


def chats_review_undo(
    *, user: User, chat_ids: Collection[UUID], rows: Collection[Any], actor: Actor
) -> int:
    """Undo ``chats_review`` of this user, just after it; return of how many chats.

    ``rows``: as ``undo.rows_of`` returns those of ``review_rows``. What a colleague has reviewed
    since stays.
    """
    with transaction.atomic():
        mine = models.ReviewedMark.objects.filter(chat__in=chats_lock(chat_ids), reviewed_by=user)
        chats = sorted(mine.values_list("chat", flat=True))
        mine.delete()
        for row in rows:
            if row.object.chat_id in chats:
                row.save()
        chats_record("chat.unreview", chats, actor)
    return len(chats)


def _places_of(seen: Mapping[UUID, UUID]) -> dict[UUID, Place]:
    messages = models.Message.objects.filter(pk__in=seen.values()).select_related("session")
    found = {message.chat_id: Place.of(message) for message in messages.defer("terms", "content")}
    if seen.keys() - found.keys():
        raise ReviewError(_("The conversation has changed meanwhile: please look at it again."))
    return found


def _set_read(user: User, places: Mapping[UUID, Place]) -> None:
    marks = [
        models.ReadMark(user=user, chat_id=key, **place_fields(places[key]))
        for key in sorted(places)
    ]
    models.ReadMark.objects.bulk_create(
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
    rows = models.Chat.objects.select_for_update(no_key=True).filter(pk__in=set(chat_ids))
    return list(rows.order_by("pk").values_list("pk", flat=True))


def chats_record(
    action: str, chats: Collection[UUID], actor: Actor, details: Mapping[str, Any] | None = None
) -> None:
    """Record an action on these chats in the audit log."""
    audit_record_many(
        events=[Event(action, actor, "chat", key, details=details or {}) for key in chats]
    )


# Snooze conversations.


MAX_SNOOZE = timedelta(days=366)


def snoozes_in_force() -> QuerySet[models.Snooze]:
    """Return the snoozes whose time isn't over and whose person hasn't written since."""
    written = models.Message.objects.filter(
        chat=OuterRef("chat"), role__in=FROM_PEOPLE, received_at__gt=OuterRef("since")
    )
    return models.Snooze.objects.filter(~Exists(written), until__gt=Now())


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
        models.Snooze.objects.bulk_create(
            [
                models.Snooze(chat_id=key, since=since, until=until, snoozed_by=user)
                for key in chats
            ],
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
        snoozed = models.Snooze.objects.filter(chat__in=chats)
        woken = sorted(snoozed.values_list("chat", flat=True))
        snoozed.delete()
        chats_record("chat.unsnooze", woken, actor)
    return len(woken)


# Conversations that are reviewed to their end, and what went wrong since.


def turns_gone_wrong() -> QuerySet[models.Turn]:
    """Return the failed and unconfirmed turns since the last review of their chat.

    Those are dealt with that staff resolved, and after which somebody of the business wrote. The
    time of a review is the time when its page was made.
    """
    wrong = models.Turn.objects.filter(state__in=WRONG_STATES)
    # A message to many that failed stands on the page of its broadcast.
    wrong = wrong.filter(~Exists(models.BroadcastRecipient.objects.filter(turn=OuterRef("pk"))))
    over = wrong.annotate(over_at=Coalesce("finished_at", "created_at"))
    resolved = models.AnswerResolved.objects.filter(
        turn=OuterRef("pk"), resolved_at__gte=OuterRef("over_at")
    )
    over = over.filter(~Exists(resolved))
    return without_reply(unreviewed(over, "over_at"))


def unreviewed(turns: QuerySet[models.Turn], ended: str) -> QuerySet[models.Turn]:
    """Leave out the turns whose chat was reviewed since. ``ended``: the field of their time."""
    # Not by way of the chats: all of them would be read to find the few.
    since = models.ReviewedMark.objects.filter(
        chat=OuterRef("chat"), reviewed_at__gte=OuterRef(ended)
    )
    return turns.filter(~Exists(since))


def pauses_in_force() -> QuerySet[models.ChatPause]:
    """Return the active pauses: the assistant doesn't answer in these chats."""
    in_force = Q(until__isnull=True) | Q(until__gt=Now())
    return models.ChatPause.objects.filter(in_force)


def is_reviewed(*, among_few: bool = False) -> Q:
    """Match chats that are reviewed up to their end, and were not put off since.

    ``among_few``: look at each chat by itself, because other filters leave few of them.
    """
    marked = Exists(models.ReviewedMark.objects.filter(chat=OuterRef("pk")))
    put_off = Exists(models.Snooze.objects.filter(chat=OuterRef("pk")))
    news = news_there(SAID, chat="pk") if among_few else news_since(models.ReviewedMark, SAID)
    return Q(marked) & ~Q(put_off) & ~Q(news)
