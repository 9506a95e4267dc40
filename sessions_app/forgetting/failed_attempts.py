"""Keep on record that a forgetting was tried and taken back, for staff."""

from __future__ import annotations

from uuid import UUID

from memoryproject.foundation.audit.events import Actor, audit_record
from sessions_app.forgetting.probe import StillFoundError
from sessions_app.models import ForgottenKind

FOUND = "found"
# As the audit log names it.
_OBJECTS = {str(ForgottenKind.MESSAGES): "session"}


def attempt_record(*, kind: str, object_id: UUID, error: StillFoundError, actor: Actor) -> None:
    """Note that the probe found something, and where; never what. Call it after the transaction
    of the forgetting was rolled back, and outside of it."""
    audit_record(
        action="forget.still_found",
        actor=actor,
        object_type=_OBJECTS.get(kind, kind),
        object_id=object_id,
        details={"probe": FOUND, "where": str(error), "probe_details": error.details},
    )
