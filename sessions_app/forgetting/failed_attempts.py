"""Record for staff that a forgetting was tried and rolled back."""

from __future__ import annotations

from uuid import UUID

from memoryproject.foundation.audit.audit_events import Actor, audit_record
from sessions_app.forgetting.probe import StillFoundError
from sessions_app.models import ForgottenKind

FOUND = "found"
# The name in the audit log.
_OBJECTS = {str(ForgottenKind.MESSAGES): "session"}


def attempt_record(*, kind: str, object_id: UUID, error: StillFoundError, actor: Actor) -> None:
    """Record that the probe found something and where, never the text.

    Call it after the transaction of the forgetting was rolled back, and outside of it.
    """
    audit_record(
        action="forget.still_found",
        actor=actor,
        object_type=_OBJECTS.get(kind, kind),
        object_id=object_id,
        details={"probe": FOUND, "where": str(error), "probe_details": error.details},
    )
