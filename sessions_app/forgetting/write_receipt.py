"""Write the receipt of a forgetting, which holds no text, and its audit event."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction

from memories_app.store.facade import keyed_hash
from memoryproject.foundation.audit.audit_events import Actor, actor_name, audit_record
from sessions_app.models import ForgetReceipt

logger = logging.getLogger(__name__)

ABSENT = "absent"


def receipt_write(
    *,
    kind: str,
    object_id: UUID,
    texts: Sequence[str],
    swept: dict[str, int],
    probe_details: dict[str, object],
    actor: Actor,
    now: datetime,
) -> ForgetReceipt:
    """Store the receipt and its audit event."""
    receipt = ForgetReceipt.objects.create(
        kind=kind,
        object_id=object_id,
        forgotten_at=now,
        actor_kind=actor.kind,
        actor=actor_name(actor),
        content_hash=keyed_hash("\0".join(texts), purpose="receipt"),
        swept=swept,
        probe=ABSENT,
        probe_details=probe_details,
    )
    audit_record(
        action=f"{kind}.forgotten",
        actor=actor,
        object_type="receipt",
        object_id=receipt.receipt_id,
        content_hash=receipt.content_hash,
        details={"kind": kind, "swept": swept, "probe": receipt.probe},
    )
    # Only once it is certain, because a preview is rolled back.
    values = (kind, object_id, receipt.receipt_id)
    transaction.on_commit(lambda: logger.info("%s %s was forgotten: receipt %s.", *values))
    return receipt
