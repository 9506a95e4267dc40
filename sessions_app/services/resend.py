"""Sends an answer again because staff said so: the one way in which a part goes out twice."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.db import transaction

from sessions_app.models import Turn
from sessions_app.models.deliveries import PartState
from sessions_app.models.turns import TurnState

RESENDABLE = (TurnState.FAILED, TurnState.UNCONFIRMED)


def turn_resend(*, turn: Turn, enqueue: Callable[[UUID], None]) -> bool:
    """Put the parts that are not known to have gone out back in the queue. Returns False,
    and changes nothing, where the turn is neither failed nor unconfirmed."""
    with transaction.atomic():
        held = (
            Turn.objects.select_for_update(no_key=True)
            .filter(pk=turn.pk, state__in=RESENDABLE)
            .first()
        )
        if held is None:
            return False
        unsent = held.parts.exclude(state=PartState.SENT)
        again = TurnState.REPLIED if unsent.exists() else TurnState.PENDING
        if again == TurnState.PENDING and held.parts.exists():
            return False
        unsent.update(state=PartState.WAITING, error="", delivery_status="")
        held.state = again
        held.not_before = None
        held.error = ""
        held.attempts = 0
        held.lease_token = None
        held.finished_at = None
        held.save()
        transaction.on_commit(lambda: enqueue(held.chat_id))
    return True
