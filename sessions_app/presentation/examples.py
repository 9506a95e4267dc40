"""Sample values for the schema's examples: ``examples.json``. All of them are invented."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CHAT = "15550100123@c.us"
SESSION_ID = "0b0e7c1e-3f5a-4c7e-9d52-5c1b2a9e7f10"
MESSAGE_ID = "5d2f6f0e-8a47-4c7c-b1a3-0f6f1f5e2d11"
MEMORY_ID = "c1d2e3f4-5a6b-4c7d-8e9f-0a1b2c3d4e14"
CHAT_ID = "e5f6a7b8-1c2d-4e3f-9a0b-4c5d6e7f8a15"
DOCUMENT_ID = "a7b8c9d0-1e2f-4a3b-8c4d-5e6f7a8b9c17"
AT = "2026-01-10T12:00:00Z"

_VALUES: dict[str, Any] = json.loads(
    Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
)
SESSION: dict[str, Any] = _VALUES["session"]
MESSAGE: dict[str, Any] = _VALUES["message"]
STORED_EXCHANGE: dict[str, Any] = _VALUES["stored_exchange"]
SUMMARY: dict[str, Any] = _VALUES["summary"]
TOOL_EXCHANGE: list[dict[str, Any]] = _VALUES["tool_exchange"]
CHAT_ROW: dict[str, Any] = _VALUES["chat_row"]
CONTEXT: dict[str, Any] = _VALUES["context"]
ANSWER: dict[str, Any] = _VALUES["answer"]
TURN: dict[str, Any] = _VALUES["turn"]
CARD: dict[str, Any] = _VALUES["card"]
PERSON: dict[str, Any] = _VALUES["person"]
AUDIT_EVENT: dict[str, Any] = _VALUES["audit_event"]
AUDIT_REPORT: dict[str, Any] = _VALUES["audit_report"]
DOCUMENT_RECEIVED: dict[str, Any] = _VALUES["document_received"]
DOCUMENT_READY: dict[str, Any] = _VALUES["document_ready"]
DOCUMENT_FAILED: dict[str, Any] = _VALUES["document_failed"]
TRANSCRIPT_LEFT_OUT: dict[str, Any] = _VALUES["transcript_left_out"]
TRANSCRIPT_NOT_VALID: dict[str, Any] = _VALUES["transcript_not_valid"]
ME: dict[str, Any] = _VALUES["me"]
FEEDBACK: dict[str, Any] = _VALUES["feedback"]
JOB: dict[str, Any] = _VALUES["job"]
ENDPOINT: dict[str, Any] = _VALUES["endpoint"]
DELIVERY: dict[str, Any] = _VALUES["delivery"]
TESTED: dict[str, Any] = _VALUES["tested"]
EVENT: dict[str, Any] = _VALUES["event"]
TRANSCRIPT_SAVED: dict[str, Any] = _VALUES["transcript_saved"]
EVENTS = (
    'event: accepted\ndata: {"turn_id": "…"}\n\n'
    'event: delta\ndata: {"text": "TestCorp pays in 30 days."}\n\n'
    'event: done\ndata: {"reply": "TestCorp pays in 30 days.", "outcome": "answered"}\n\n'
)


def receipt(kind: str, object_id: str, **swept: int) -> dict[str, Any]:
    return {**_VALUES["receipt"], "kind": kind, "object_id": object_id, "swept": swept}
