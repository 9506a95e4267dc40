"""Choose whom a broadcast goes to, and send it at its pace: each chat gets its message once."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Greatest
from django.utils import timezone

from memories_app.models import Memory, MemoryStatus
from memoryproject.foundation.audit.audit_events import SYSTEM, Actor, audit_record
from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.configured import configured_providers
from memoryproject.foundation.integrations.whatsapp.base import Template
from memoryproject.foundation.integrations.whatsapp.templates import ApprovedTemplate
from sessions_app.conversations.chat_queries import handovers_open
from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.inbox.move_markers import pauses_in_force
from sessions_app.limits.intake import access_of, standing_of
from sessions_app.models import Broadcast, BroadcastRecipient, Chat, ChatLabel, Turn
from sessions_app.models.chats import Provider
from sessions_app.models.limits import Standing
from sessions_app.models.messages import DeliveryStatus
from sessions_app.models.takeover import BroadcastState, LeftOut
from sessions_app.models.turns import TurnState
from sessions_app.takeover import facade as takeover
from sessions_app.takeover.presentation import default_number
from sessions_app.turns.facade import answer_soon

MINUTE = timedelta(minutes=1)
# It pauses by itself where half of the last messages failed.
WATCHED, LEAST_FAILED = 20, 5
# What staff may do with one that hasn't ended.
MOVES = (BroadcastState.RUNNING, BroadcastState.PAUSED, BroadcastState.CANCELLED)


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
    if words := segment.get("fact", "").split():
        facts = Memory.objects.filter(chat_id=OuterRef("pk"), status=MemoryStatus.ACTIVE)
        for word in words:
            facts = facts.filter(Q(content__icontains=word) | Q(key__icontains=word))
        chats = chats.filter(Exists(facts))
    return chats


def with_reasons(chats: QuerySet[Chat], parameters: Sequence[str]) -> QuerySet[Any]:
    """Annotate why a chat is left out as ``reason``, "" where it isn't."""
    # Of a chat that came by no provider, the settings say which one sends.
    cloud = Q(provider=Provider.CLOUD)
    if default_number().provider == str(Provider.CLOUD):
        cloud |= Q(provider=Provider.CONSOLE)
    is_number = Q(whatsapp_chat__endswith="@c.us") | Q(whatsapp_chat__endswith="@bsuid")
    on_hold = Q(Exists(pauses_in_force().filter(chat=OuterRef("pk"))))
    on_hold |= Q(Exists(handovers_open().filter(chat=OuterRef("pk"))))
    reasons = {
        LeftOut.STOPPED: Q(access__opted_out_at__isnull=False) | Q(access__marketing_stopped=True),
        LeftOut.BLOCKED: Q(access__standing=Standing.BLOCKED),
        LeftOut.NO_NUMBER: ~(cloud & is_number),
        LeftOut.ON_HOLD: on_hold,
    }
    pairs = zip(parameters, _filled(Chat(), parameters), strict=True)
    if any(value and not filled for value, filled in pairs):
        reasons[LeftOut.NO_NAME] = Q(client_name="")
    whens = [When(condition, then=Value(name)) for name, condition in reasons.items()]
    return chats.annotate(reason=Case(*whens, default=Value("")))


def _filled(chat: Chat, parameters: Sequence[str]) -> list[str]:
    """Return the values for a chat, each on one line; without a name for a new one."""
    known = takeover.placeholder_values(chat)
    return [" ".join(takeover.fill(value, known).split()) for value in parameters]


def template_for(chat: Chat, approved: ApprovedTemplate, parameters: Sequence[str]) -> Template:
    """Return the template with its values filled for a chat."""
    values = tuple(_filled(chat, parameters))
    return Template(approved.name, approved.language, values, approved.slots)


def broadcast_start(broadcast: Broadcast, chats: QuerySet[Any], actor: Actor) -> None:
    """Store a broadcast to those of the chats that aren't left out. Raises IntegrityError."""
    with transaction.atomic():
        broadcast.save(force_insert=True)
        # In the order in which they first wrote.
        keys = chats.filter(reason="").order_by("created_at").values_list("pk", flat=True)
        rows = [BroadcastRecipient(broadcast=broadcast, chat_id=key) for key in keys]
        BroadcastRecipient.objects.bulk_create(rows, batch_size=1_000)
        _audit("started", broadcast, actor, recipients=len(rows))


def broadcast_move(broadcast: Broadcast, to: str, actor: Actor, error: str = "") -> bool:
    """Pause, resume or cancel a broadcast; return whether it could be."""
    others = [state for state in MOVES[:2] if state != to]
    now = timezone.now()
    # One that was to begin later still does.
    times = {"began_at": now, "next_at": Greatest("next_at", now)}
    times = times if to == BroadcastState.RUNNING else {}
    rows = Broadcast.objects.filter(pk=broadcast.pk, state__in=others)
    if not rows.update(state=to, error=error, **times):
        return False
    _audit(to, broadcast, actor)
    return True


def _audit(became: str, about: Broadcast, actor: Actor, **details: Any) -> None:
    details |= {"name": about.template, "language": about.language}
    name, action = "broadcast", f"broadcast.{became}"
    audit_record(action, actor, name, about.pk, **details)


def message_store(
    chat: Chat, approved: ApprovedTemplate, parameters: Sequence[str], **about: Any
) -> Turn:
    """Store the message for a chat, which a worker sends. Raises ReplyRefusedError.

    ``about``: the ``key``, ``writer`` and ``broadcast`` of ``chat_template``.
    """
    template = template_for(chat, approved, parameters)
    about |= {"chat_id": chat.pk, "otherwise": default_number()}
    return takeover.chat_template(template=template, approved=approved, **about).turn


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
    if not running.filter(next_at__lte=now).update(next_at=now + MINUTE, error=""):
        return
    broadcast = Broadcast.objects.get(pk=broadcast_id)
    provider = configured_providers()[str(Provider.CLOUD)]
    approved = takeover.template_found(provider, broadcast.template, broadcast.language)
    if approved is None or len(approved.slots) != len(broadcast.parameters):
        # Or Meta can't be asked: the next minute asks again.
        running.update(error=ErrorText("broadcast_template_gone"))
        return
    if _is_slowed(broadcast):
        return
    left = broadcast.recipients.filter(made_at=None).order_by("pk")
    for key, chat_id in list(left.values_list("pk", "chat_id")[: settings.BROADCAST_PER_MINUTE]):
        _message_make(broadcast, key, chat_id, approved)
    unsent = broadcast.recipients.filter(turn__state__in=[TurnState.REPLIED, TurnState.SENDING])
    if not left.exists() and not unsent.exists():
        running.update(state=BroadcastState.DONE)


def _is_slowed(broadcast: Broadcast) -> bool:
    """Return whether no messages are to be made now; pause the broadcast for too many failures."""
    turns = Turn.objects.filter(recipient__broadcast=broadcast)
    turns = turns.filter(created_at__gte=broadcast.began_at).order_by("-id")
    # Meta asks to slow down (130429, 131056) or refuses for now (131048): these are tried again.
    if turns.filter(state=TurnState.REPLIED).exclude(error="").exists():
        return True
    ended = turns.filter(state__in=[TurnState.SENT, TurnState.FAILED])[:WATCHED]
    parts = [part for turn in ended.prefetch_related("parts") for part in turn.parts.all()]
    failed = [part.error for part in parts if part.delivery_status == DeliveryStatus.FAILED]
    if len(failed) < LEAST_FAILED or 2 * len(failed) < len(parts):
        return False
    why = ErrorText("broadcast_failing", n=len(failed), of=len(parts), why=failed[0])
    return broadcast_move(broadcast, BroadcastState.PAUSED, SYSTEM, why)


def _message_make(
    broadcast: Broadcast, number: int, chat_id: UUID, approved: ApprovedTemplate
) -> None:
    """Make the message of one recipient, unless they may not get it any more."""
    with transaction.atomic():
        # The chat before its rows, as in a merge. What was erased or merged isn't found here.
        this_chat = Chat.objects.filter(pk=chat_id)
        this_chat.select_for_update(no_key=True).first()
        rows = BroadcastRecipient.objects.select_for_update(of=("self",)).select_related("chat")
        is_running = Q(broadcast__state=BroadcastState.RUNNING)
        recipient = rows.filter(is_running, pk=number, chat=chat_id, made_at=None).first()
        if recipient is None:
            return
        reasons = with_reasons(this_chat, broadcast.parameters).values_list("reason", flat=True)
        recipient.left_out = reasons.get()
        if standing_of(access_of(recipient.chat)) == Standing.BLOCKED:
            recipient.left_out = LeftOut.BLOCKED
        if not recipient.left_out:
            # One message, also where a restored backup lost the row of the recipient.
            key = uuid.uuid5(broadcast.pk, str(chat_id))
            about = {"key": key, "writer": _writer_of(broadcast), "broadcast": str(broadcast.pk)}
            values = broadcast.parameters
            try:
                recipient.turn = message_store(recipient.chat, approved, values, **about)
            except takeover.ReplyRefusedError:
                recipient.left_out = LeftOut.REFUSED
        recipient.made_at = timezone.now()
        recipient.save(update_fields=["turn", "left_out", "made_at"])


def _writer_of(broadcast: Broadcast) -> takeover.Writer:
    author = User.objects.filter(username=broadcast.user_name).first()
    actor, rules = Actor("staff", broadcast.user_name), build_intake_rules()
    key = author.pk if author else 0
    return takeover.Writer(key, actor, rules, answer_soon, timezone.now())
