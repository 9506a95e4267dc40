"""Choose whom a broadcast goes to, and send it at its pace: each chat gets its message once."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Value, When
from django.utils import timezone

from memories_app.models import Memory, MemoryStatus
from memoryproject.foundation.audit.audit_events import SYSTEM, Actor, audit_record
from memoryproject.foundation.errors.stored_errors import ErrorText, error_text
from memoryproject.foundation.integrations.configured import configured_providers
from memoryproject.foundation.integrations.whatsapp.base import SendError, Template
from memoryproject.foundation.integrations.whatsapp.templates import ApprovedTemplate
from sessions_app.conversations.chat_queries import handovers_open
from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.inbox.move_markers import pauses_in_force
from sessions_app.limits.intake import access_of, standing_of
from sessions_app.models import Broadcast, BroadcastRecipient, Chat, ChatLabel, Turn
from sessions_app.models.broadcasts import BroadcastState, LeftOut
from sessions_app.models.chats import Provider
from sessions_app.models.limits import Standing
from sessions_app.models.messages import DeliveryStatus
from sessions_app.models.turns import TurnState
from sessions_app.takeover import facade as takeover
from sessions_app.takeover.presentation import default_number
from sessions_app.turns.facade import answer_soon, chat_locked

MINUTE = timedelta(minutes=1)
# It pauses by itself where half of so many messages failed, or Meta refuses them for so long.
WATCHED, LEAST_FAILED = 20, 5
REFUSED_FOR = timedelta(minutes=15)


# Whom it goes to.


def segment_chats(segment: Mapping[str, Any]) -> QuerySet[Chat]:
    """Return the chats with one person that fit all that is given.

    ``labels`` (any of them), ``language``, ``since`` and ``until`` (times of the last contact), and
    ``fact`` (words that are all in one of the person's memories, or in its key).
    """
    fields = {
        "language": segment["language"],
        "activity__last_at__gte": segment["since"],
        "activity__last_at__lt": segment["until"],
    }
    given = {name: value for name, value in fields.items() if value}
    chats = Chat.objects.filter(is_group=False, **given)
    if segment["labels"]:
        labelled = ChatLabel.objects.filter(label__in=segment["labels"])
        chats = chats.filter(pk__in=labelled.values("chat"))
    if words := segment["fact"].split():
        facts = Memory.objects.filter(chat_id=OuterRef("pk"), status=MemoryStatus.ACTIVE)
        for word in words:
            facts = facts.filter(Q(content__icontains=word) | Q(key__icontains=word))
        chats = chats.filter(Exists(facts))
    return chats


def with_reasons(chats: QuerySet[Chat], parameters: Sequence[str]) -> QuerySet[Chat]:
    """Annotate why a chat is left out as ``reason``, "" where it isn't."""
    ways = {str(Provider.CLOUD)}
    if default_number().provider in ways:
        ways.add(str(Provider.CONSOLE))
    is_number = Q(whatsapp_chat__endswith="@c.us") | Q(whatsapp_chat__endswith="@bsuid")
    nameless = takeover.placeholder_values(Chat())
    needs_name = any(value and not takeover.fill(value, nameless).strip() for value in parameters)
    on_hold = Q(Exists(pauses_in_force().filter(chat=OuterRef("pk"))))
    on_hold |= Q(Exists(handovers_open().filter(chat=OuterRef("pk"))))
    reasons = {
        LeftOut.STOPPED: Q(access__opted_out_at__isnull=False) | Q(access__marketing_stopped=True),
        LeftOut.BLOCKED: Q(access__standing=Standing.BLOCKED),
        LeftOut.NO_NUMBER: ~(Q(provider__in=ways) & is_number),
        LeftOut.ON_HOLD: on_hold,
        **({LeftOut.NO_NAME: Q(client_name="")} if needs_name else {}),
    }
    whens = [When(condition, then=Value(name)) for name, condition in reasons.items()]
    return chats.annotate(reason=Case(*whens, default=Value("")))


def template_for(chat: Chat, approved: ApprovedTemplate, parameters: Sequence[str]) -> Template:
    """Return the template with its values filled for a chat, each on one line."""
    known = takeover.placeholder_values(chat)
    values = [" ".join(takeover.fill(value, known).split()) for value in parameters]
    return Template(approved.name, approved.language, tuple(values), approved.slots)


def broadcast_start(broadcast: Broadcast, chats: QuerySet[Chat]) -> None:
    """Store a broadcast to those of the chats that aren't left out. Raises IntegrityError."""
    with transaction.atomic():
        broadcast.save(force_insert=True)
        keys = chats.filter(reason="").values_list("pk", flat=True)
        rows = [BroadcastRecipient(broadcast=broadcast, chat_id=key) for key in keys]
        BroadcastRecipient.objects.bulk_create(rows, batch_size=1_000)
        _audit("start", broadcast, Actor("staff", broadcast.user_name), recipients=len(rows))


MOVES = {
    "pause": BroadcastState.PAUSED,
    "resume": BroadcastState.RUNNING,
    "cancel": BroadcastState.CANCELLED,
}


def broadcast_move(broadcast: Broadcast, move: str, actor: Actor, error: str = "") -> bool:
    """Pause, resume or cancel a broadcast; return whether it could be."""
    now, to = timezone.now(), MOVES[move]
    movable = {BroadcastState.RUNNING, BroadcastState.PAUSED} - {to}
    times = {"began_at": now, "next_at": now} if move == "resume" else {}
    rows = Broadcast.objects.filter(pk=broadcast.pk, state__in=movable)
    is_moved = bool(rows.update(state=to, error=error, **times))
    if is_moved:
        _audit(move, broadcast, actor)
    return is_moved


def _audit(what: str, broadcast: Broadcast, actor: Actor, **details: Any) -> None:
    audit_record(
        action=f"broadcast.{what}",
        actor=actor,
        object_type="broadcast",
        object_id=broadcast.pk,
        details={"name": broadcast.template, "language": broadcast.language, **details},
    )


# Send it, some messages in each minute.


def broadcasts_due(now: datetime) -> list[UUID]:
    """Return the broadcasts that have messages to make now."""
    due = Broadcast.objects.filter(state=BroadcastState.RUNNING, next_at__lte=now)
    return list(due.values_list("pk", flat=True))


def broadcast_step(broadcast_id: UUID) -> None:
    """Make the next messages of a broadcast.

    Only one worker a minute gets past the first statement. Cut off anywhere, the next minute goes
    on: a recipient's message and the note that it was made are stored together.
    """
    now = timezone.now()
    running = Broadcast.objects.filter(pk=broadcast_id, state=BroadcastState.RUNNING)
    if not running.filter(next_at__lte=now).update(next_at=now + MINUTE):
        return
    broadcast = Broadcast.objects.get(pk=broadcast_id)
    try:
        listed = takeover.templates_listed(configured_providers()[str(Provider.CLOUD)]) or []
    except SendError as error:
        # Meta can't be asked: the next minute asks again.
        running.update(error=error_text(error))
        return
    name = (broadcast.template, broadcast.language)
    approved = next((each for each in listed if (each.name, each.language) == name), None)
    if approved is None:
        broadcast_move(broadcast, "pause", SYSTEM, ErrorText("broadcast_template_gone"))
        return
    if _is_slowed(broadcast, now):
        return
    left = broadcast.recipients.filter(made_at=None).order_by("pk")
    for key, chat_id in list(left.values_list("pk", "chat_id")[: settings.BROADCAST_PER_MINUTE]):
        _message_make(broadcast, key, chat_id, approved)
    unsent = broadcast.recipients.filter(turn__state__in=[TurnState.REPLIED, TurnState.SENDING])
    if not left.exists() and not unsent.exists():
        running.update(state=BroadcastState.DONE, error="")


def _is_slowed(broadcast: Broadcast, now: datetime) -> bool:
    """Return whether no messages are to be made now; pause the broadcast for too many failures."""
    turns = Turn.objects.filter(recipient__broadcast=broadcast)
    turns = turns.filter(created_at__gte=broadcast.began_at).order_by("-id")
    # Meta asks to slow down (130429, 131056) or refuses for now (131048): these are tried again.
    waiting = turns.filter(state=TurnState.REPLIED).exclude(error="").last()
    if waiting is not None:
        if waiting.created_at < now - REFUSED_FOR:
            why = ErrorText("broadcast_refused", why=waiting.error)
            broadcast_move(broadcast, "pause", SYSTEM, why)
        return True
    ended = turns.filter(state__in=[TurnState.SENT, TurnState.FAILED])[:WATCHED]
    parts = [part for turn in ended.prefetch_related("parts") for part in turn.parts.all()]
    failed = [part.error for part in parts if part.delivery_status == DeliveryStatus.FAILED]
    if len(failed) < LEAST_FAILED or 2 * len(failed) < len(parts):
        return False
    why = ErrorText("broadcast_failing", n=len(failed), of=len(parts), why=failed[0])
    return broadcast_move(broadcast, "pause", SYSTEM, why)


def _message_make(
    broadcast: Broadcast, key: int, chat_id: UUID, approved: ApprovedTemplate
) -> None:
    """Make the message of one recipient, unless they may not get it any more."""
    with transaction.atomic():
        # A chat that was erased took its row along; one that was merged is found next time.
        this_chat = with_reasons(Chat.objects.filter(pk=chat_id), broadcast.parameters)
        if not this_chat.exists():
            return
        chat = chat_locked(chat_id)
        rows = BroadcastRecipient.objects.select_for_update(of=("self",)).filter(
            pk=key, chat=chat, made_at=None, broadcast__state=BroadcastState.RUNNING
        )
        if (recipient := rows.first()) is None:
            return
        recipient.left_out = this_chat.values_list("reason", flat=True).get()
        if standing_of(access_of(chat)) == Standing.BLOCKED:
            recipient.left_out = LeftOut.BLOCKED
        if not recipient.left_out:
            try:
                recipient.turn = _turn_make(broadcast, chat, approved)
            except takeover.ReplyRefusedError:
                recipient.left_out = LeftOut.REFUSED
        recipient.made_at = timezone.now()
        recipient.save(update_fields=["turn", "left_out", "made_at"])


def _turn_make(broadcast: Broadcast, chat: Chat, approved: ApprovedTemplate) -> Turn:
    """Store the message, which a worker sends. Raises ReplyRefusedError."""
    author = User.objects.filter(username=broadcast.user_name).first()
    return takeover.chat_template(
        chat_id=chat.pk,
        template=template_for(chat, approved, broadcast.parameters),
        # One message, also where the row of a recipient was lost with a restored backup.
        key=uuid.uuid5(broadcast.pk, str(chat.pk)),
        otherwise=default_number(),
        writer=takeover.Writer(
            author_id=author.pk if author else 0,
            actor=Actor("staff", broadcast.user_name),
            rules=build_intake_rules(),
            enqueue=answer_soon,
            now=timezone.now(),
        ),
        approved=approved,
        broadcast=str(broadcast.pk),
    ).turn
