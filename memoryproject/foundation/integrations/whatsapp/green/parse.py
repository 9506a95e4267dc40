"""Convert a Green API webhook body to events; each body has one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from memoryproject.foundation.integrations.whatsapp.events import Event, with_ids_that_fit
from memoryproject.foundation.integrations.whatsapp.green.envelope import Body
from memoryproject.foundation.integrations.whatsapp.green.messages import (
    RECEIVED,
    SENT_BY_API,
    TYPED_ON_PHONE,
    read_message,
)
from memoryproject.foundation.integrations.whatsapp.green.reports import (
    read_quota,
    read_state,
    read_status,
)
from memoryproject.foundation.integrations.whatsapp.lenient import storable

_READERS: dict[str, Callable[[Body], Event]] = {
    RECEIVED: read_message,
    TYPED_ON_PHONE: read_message,
    SENT_BY_API: read_message,
    "outgoingMessageStatus": read_status,
    "stateInstanceChanged": read_state,
    "quotaExceeded": read_quota,
}


def parse_green(payload: Any, *, received_at: datetime | None = None) -> list[Event]:
    """Return the event of one webhook body, in a list (Ignored, if it requires no action).

    ``received_at`` (now, if not given; aware) replaces a timestamp that can't be read. Never
    raises, for any JSON payload.
    """
    found = storable(payload)
    known = isinstance(found, dict)
    body = Body(
        raw=found if known else {"payload": found},
        received_at=received_at or datetime.now(timezone.utc),
    )
    if not known:
        return [body.ignored("the body is not an object")]
    reader = _READERS.get(body.type)
    # Green API's own examples show a quota under another type's name.
    if reader is None and body.raw.get("quotaData"):
        reader = read_quota
    if reader is None:
        return [body.ignored(f"webhook type {body.type or '(none)'!r} needs nothing")]
    return [with_ids_that_fit(reader(body))]
