"""Leave a turn for a retry after a fault: a full disk, a lost database, or any other one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, Error, connection, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from memoryproject.foundation.errors.stored_errors import ErrorText, named_error_text
from memoryproject.foundation.process.storage import is_disk_full
from sessions_app.conversations.facade import ANSWERING, turn_failed
from sessions_app.models import Turn
from sessions_app.models.turn_states import turns_move
from sessions_app.models.turns import TurnState
from sessions_app.turns.send import recipient_of
from sessions_app.turns.turn_claims import TurnLease
from sessions_app.turns.turn_dependencies import Dependencies

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
# How long a turn waits for disk space before it is retried.
STORAGE_PAUSE = timedelta(minutes=1)
# After a lost connection: half a minute in all.
RECONNECT_DELAYS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)


def turn_put_back(lease: TurnLease, error: Exception, dependencies: Dependencies) -> None:
    """Record the fault that ended the work on a turn, and leave the turn for a retry."""
    if is_disk_full(error):
        _storage_full(lease, dependencies)
        return
    logger.error("A turn failed.", exc_info=error)
    if isinstance(error, Error) and not connection.is_usable():
        _put_back_after_outage(lease, error, dependencies.sleep)
        return
    _fault(lease, error)


def lease_release(lease: TurnLease) -> None:
    """Release the lease; where the release can't be written, the lease expires by itself."""
    try:
        lease.release()
    except Error as error:
        if connection.is_usable() and not is_disk_full(error):
            raise


def _put_back_after_outage(
    lease: TurnLease, error: Exception, sleep: Callable[[float], None]
) -> None:
    """Leave the turn for a retry as soon as the database is there again.

    Without this its chat waits until the lease expires. The retry isn't delayed. It counts as an
    attempt: the turn itself may be what ended the connection.
    """
    for delay in RECONNECT_DELAYS:
        connection.close()
        try:
            held = lease.held()
            turn = held.first()
            if turn is not None:
                _retry_later(turn, held, error=named_error_text(error))
        except Error:
            sleep(delay)
        else:
            return
    logger.warning("The database is out of reach: turn %s waits for its lease.", lease.turn_id)


def _storage_full(lease: TurnLease, dependencies: Dependencies) -> None:
    """Handle ERR-SESSION-002: there is no space to store the answer.

    Nothing of it was stored (RECOVERY-004). The person is notified, and the turn waits until there
    is space. This doesn't count as an attempt.
    """
    logger.critical("The disk is full: the answer of turn %s is not stored.", lease.turn_id)
    turn = Turn.objects.select_related("chat").get(pk=lease.turn_id)
    if dependencies.storage_notices is not None:
        dependencies.storage_notices.notify(
            provider=turn.provider, to=recipient_of(turn), language=turn.chat.language
        )
    try:
        _retry_later(
            turn,
            lease.held(),
            attempts=F("attempts") - 1,
            error=ErrorText("disk_full"),
            not_before=timezone.now() + STORAGE_PAUSE,
        )
    except DatabaseError as error:
        logger.warning("The turn is taken up again when its lease ends: %s", error)


def _fault(lease: TurnLease, error: Exception) -> None:
    """Record the fault for staff and leave the turn for a retry.

    Each retry waits a little longer. After the apology has failed too, the turn fails for good.
    """
    held = lease.held()
    turn = held.first()
    if turn is None:
        return
    text = ErrorText("answer_fault", why=named_error_text(error))
    if turn.attempts > MAX_ATTEMPTS:
        with transaction.atomic():
            if turns_move(held, TurnState.FAILED, error=text, finished_at=timezone.now()):
                turn.error = text
                turn_failed(turn, stage=ANSWERING)
        return
    later = timezone.now() + timedelta(seconds=2**turn.attempts)
    _retry_later(turn, held, error=text, not_before=later)


def _retry_later(turn: Turn, held: QuerySet[Turn], **noted: Any) -> None:
    """Leave the turn for a retry; an answer that is stored is only sent again."""
    if turn.state == TurnState.RUNNING:
        turns_move(held, TurnState.PENDING, **noted)
    else:
        held.update(**noted)
