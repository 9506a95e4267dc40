"""Staff actions on a turn that no worker processes. Failed turns have their own page."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import Actor, audit_record
from memoryproject.foundation.process.lanes import ANSWERS
from memoryproject.staff_site.broker import enqueue
from memoryproject.staff_site.operations.dead_turns import OPEN
from sessions_app.models import Turn


def turn_take_up(*, turn: Turn, actor: Actor) -> bool:
    """Enqueue a stuck turn. Return False if it is over or a worker has it.

    Raises BrokerGoneError; the sweep retries the turn every minute.
    """
    if turn.state not in OPEN or turn.is_held(timezone.now()):
        return False
    # The queue comes last, as in queue_actions: an action that can't be recorded isn't done.
    with transaction.atomic():
        audit_record(
            action="turn.take_up",
            actor=actor,
            object_type="turn",
            object_id=turn.turn_id,
            details={"state": turn.state},
            chat_id=turn.chat_id,
        )
        task, name = "sessions_app.tasks.answer_chat", f"answer {turn.chat_id}"
        enqueue(task, str(turn.chat_id), lane=ANSWERS, task_name=name)
    return True
