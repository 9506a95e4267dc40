"""Read Green API's reports on sent messages, the instance and its quotas."""

from __future__ import annotations

from memoryproject.foundation.integrations.whatsapp.events import Event, Notice, StatusUpdate
from memoryproject.foundation.integrations.whatsapp.green.envelope import Body
from memoryproject.foundation.integrations.whatsapp.green.people import group_of, person
from memoryproject.foundation.integrations.whatsapp.lenient import (
    first_text,
    mapping,
    number_shown,
    text_of,
)

_REACHED = ("sent", "delivered", "read", "played", "failed")
_FAILURES = {
    "noAccount": "The number has no WhatsApp account",
    "notInGroup": "The account is not a member of the group",
    "yellowCard": "WhatsApp holds back messages of this account (yellow card)",
    "noActiveSession": "The person's 24-hour window is closed",
}
_STATE_LEVELS = {
    "authorized": "info",
    "starting": "info",
    "notAuthorized": "critical",
    "blocked": "critical",
    "yellowCard": "critical",
    "suspended": "critical",
    "sleepMode": "warning",
}


def read_status(body: Body) -> Event:
    """Return the status of a message from an ``outgoingMessageStatus``."""
    reported = text_of(body.raw.get("status"))
    if not body.message_id:
        return body.ignored("a status without an id")
    key = f"{body.type}:{body.message_id}:{reported}"
    status = "failed" if reported in _FAILURES else reported
    if status not in _REACHED:
        return body.ignored(f"unknown status {reported!r}", key)
    described = first_text(body.raw, "description")
    reasons = [_FAILURES.get(reported, ""), described] if status == "failed" else []
    chat = text_of(body.raw.get("chatId"))
    party = person(chat)
    return StatusUpdate(
        **body.head(key),
        provider_message_id=body.message_id,
        status=status,
        timestamp=body.timestamp,
        party=party if group_of(chat) is None and party.addresses() else None,
        error_text=": ".join(reason for reason in reasons if reason),
    )


def read_state(body: Body) -> Event:
    """Return the event of a ``stateInstanceChanged``: whether the instance can send at all."""
    state = first_text(body.raw, "stateInstance")
    if not state:
        return body.ignored("a state that is not told")
    return Notice(
        **body.head(),
        level=_STATE_LEVELS.get(state, "warning"),
        summary=f"The Green API instance is now {state}",
    )


def read_quota(body: Body) -> Event:
    """Return the notice of an exhausted quota: messages to or from further chats are dropped."""
    quota = mapping(body.raw.get("quotaData"))
    used, total = number_shown(quota.get("used")), number_shown(quota.get("total"))
    method = first_text(quota, "method") or "unknown"
    counted = f" ({used} of {total})" if used and total else ""
    described = first_text(quota, "description")
    summary = f"Green API quota exceeded: {method}{counted}"
    return Notice(
        **body.head(),
        level="warning",
        summary=f"{summary}. {described}" if described else summary,
    )
