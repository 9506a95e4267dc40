"""Send conversation events to integrators: ids and times, never message texts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from memoryproject.foundation.outgoing_webhooks.kinds import SESSION_EXPIRED, TURN_FAILED
from memoryproject.foundation.outgoing_webhooks.webhook_events import HookEvent, hooks_raise
from memoryproject.foundation.text.iso_times import iso_utc
from sessions_app.models import ChatSession, Turn
from sessions_app.models.turns import Outcome

ANSWERING, SENDING = "answering", "sending"


def sessions_ended(ended: Sequence[tuple[ChatSession, datetime]]) -> None:
    """Report that these sessions ended at these times.

    Call it in the transaction that ends them.
    """
    hooks_raise(
        [
            HookEvent(
                SESSION_EXPIRED,
                session.pk,
                {"session_id": str(session.pk), "expired_at": iso_utc(at)},
                session.chat_id,
            )
            for session, at in ended
        ]
    )


def turn_failed(turn: Turn, *, stage: str) -> None:
    """Report that a turn failed for good, in ``answering`` or ``sending``.

    Call it in the transaction that records the failure. Staff read the error in the admin; the
    event names its code alone, because an error may quote a message.
    """
    data = {
        "turn_id": str(turn.turn_id),
        "session_id": _text(turn.session_id),
        "message_id": _text(turn.message_id),
        "stage": stage,
        "outcome": str(Outcome.FAILED),
        "error_code": turn.error_code,
    }
    hooks_raise([HookEvent(TURN_FAILED, turn.turn_id, data, turn.chat_id)])


def _text(key: UUID | None) -> str | None:
    return None if key is None else str(key)
