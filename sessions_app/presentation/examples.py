"""Sample values for the schema's examples. All of them are invented."""

from __future__ import annotations

from typing import Any

CHAT = "15550100123@c.us"
SESSION_ID = "0b0e7c1e-3f5a-4c7e-9d52-5c1b2a9e7f10"
MESSAGE_ID = "5d2f6f0e-8a47-4c7c-b1a3-0f6f1f5e2d11"
REPLY_ID = "7c9a1b52-6f0d-4f0a-8a55-3d1f2c4b5e12"
TURN_ID = "a3b7c2d1-9e8f-4a6b-8c5d-2e1f0a9b8c13"
MEMORY_ID = "c1d2e3f4-5a6b-4c7d-8e9f-0a1b2c3d4e14"
CHAT_ID = "e5f6a7b8-1c2d-4e3f-9a0b-4c5d6e7f8a15"
SUMMARY_ID = "d4c3b2a1-6f5e-4d7c-9b8a-1a2b3c4d5e17"
DOCUMENT_ID = "a7b8c9d0-1e2f-4a3b-8c4d-5e6f7a8b9c17"
RECEIPT_ID = "f1e2d3c4-b5a6-4978-8a9b-0c1d2e3f4a16"
AT = "2026-01-10T12:00:00Z"

SESSION: dict[str, Any] = {
    "session_id": SESSION_ID,
    "whatsapp_chat": CHAT,
    "status": "active",
    "created_at": "2026-01-10T11:58:00Z",
    "last_active": AT,
    "expired_at": None,
    "message_counter": 2,
    "total_tokens": 19,
    "client_name": "Test Client",
    "client_phone": "15550100123",
    "user_role": "client",
}
MESSAGE: dict[str, Any] = {
    "message_id": MESSAGE_ID,
    "session_id": SESSION_ID,
    "order_num": 1,
    "role": "user",
    "content": "When does TestCorp pay?",
    "timestamp": AT,
    "received_at": AT,
    "was_received": True,
    "sender": CHAT,
    "recipient": "assistant",
    "tokens": 5,
    "image_path": None,
    "metadata": {},
    "kind": "text",
    "media": {},
    "tool_calls": [],
    "tool_call_id": None,
    "name": None,
    "content_parts": None,
}
STORED_EXCHANGE: dict[str, Any] = {
    "messages": [
        MESSAGE,
        {
            **MESSAGE,
            "message_id": REPLY_ID,
            "order_num": 2,
            "role": "assistant",
            "content": "On the 5th.",
            "sender": "",
            "recipient": "",
        },
    ],
    "learning": "queued",
    "turn_id": TURN_ID,
}
SUMMARY: dict[str, Any] = {
    "summary_metadata_id": SUMMARY_ID,
    "session_id": SESSION_ID,
    "number": 1,
    "summary_message_id": REPLY_ID,
    "summarized_message_ids": [MESSAGE_ID],
    "first_order": 1,
    "last_order": 1,
    "timestamp_range": {"start": AT, "end": AT},
    "skill_id": "conversation-summary",
    "model": "gpt-4o-mini",
    "is_extractive": False,
    "sources_deleted": False,
    "created_at": AT,
}
TOOL_EXCHANGE: list[dict[str, Any]] = [
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "find_invoice", "arguments": '{"customer": "TestCorp"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": '{"due": "2026-01-31"}'},
]
RECALLED: dict[str, Any] = {
    "source": "memory",
    "memory_id": MEMORY_ID,
    "content": "TestCorp pays in 30 days",
    "score": 0.91,
    "similarity": 0.58,
    "created_at": "2026-01-03T09:00:00Z",
    "type": "fact",
}

CHAT_ROW: dict[str, Any] = {
    "whatsapp_chat": CHAT,
    "object_id": CHAT_ID,
    "addresses": [CHAT],
    "is_group": False,
    "client_name": "Test Client",
    "client_phone": "15550100123",
    "language": "en",
    "fixed_language": "",
    "memory_enabled": None,
    "created_at": "2026-01-03T08:55:00Z",
}
PROMPT = [
    {"role": "system", "content": "You are DeniDin, an AI assistant on WhatsApp. …"},
    {"role": "user", "content": "When does TestCorp pay?"},
]
LEFT_OUT: dict[str, Any] = {
    "messages_until": 0,
    "messages_over_context": 0,
    "recalled": 0,
    "messages_cut": 0,
    "recalled_cut": 0,
    "profile_cut": 0,
    "recall_degraded": False,
    "passage": "",
    "summarized_until": 0,
}
CONTEXT: dict[str, Any] = {
    "messages": PROMPT,
    "memories": [{**RECALLED, "in_prompt": True}],
    "total_tokens": 16,
    "left_out": LEFT_OUT,
}
ANSWER: dict[str, Any] = {
    "reply": "TestCorp pays in 30 days.",
    "session_id": SESSION_ID,
    "message_id": MESSAGE_ID,
    "reply_message_id": REPLY_ID,
    "turn_id": TURN_ID,
    "outcome": "answered",
    "error_code": None,
    "memories": [{**RECALLED, "in_prompt": True}],
}
EVENTS = (
    'event: accepted\ndata: {"turn_id": "…"}\n\n'
    'event: delta\ndata: {"text": "TestCorp pays in 30 days."}\n\n'
    'event: done\ndata: {"reply": "TestCorp pays in 30 days.", "outcome": "answered"}\n\n'
)
TURN: dict[str, Any] = {
    "turn_id": TURN_ID,
    "whatsapp_chat": CHAT,
    "session_id": SESSION_ID,
    "message_id": MESSAGE_ID,
    "reply_message_id": REPLY_ID,
    "summary_message_id": None,
    "state": "sent",
    "user_role": "client",
    "prompt": PROMPT,
    "recalled": [{**RECALLED, "in_prompt": True}],
    "left_out": {**LEFT_OUT, "refused_prompts": 0},
    "model": "gpt-4o-mini",
    "prompt_tokens": 180,
    "completion_tokens": 9,
    "timings": {"waited_ms": 35, "recall_ms": 12, "model_ms": 640, "total_ms": 655},
    "outcome": "answered",
    "error_code": None,
    "error": "",
    "attempts": 1,
    "asked_at": AT,
    "created_at": AT,
    "finished_at": "2026-01-10T12:00:01Z",
}


def receipt(kind: str, object_id: str, **swept: int) -> dict[str, Any]:
    return {
        "receipt_id": RECEIPT_ID,
        "kind": kind,
        "object_id": object_id,
        "forgotten_at": AT,
        "swept": swept,
        "probe": "absent",
        "probe_details": {
            "columns": {"queries": 18, "rows": 42, "looked_at": ["sessions_app_message.content"]}
        },
        "left": [],
    }
