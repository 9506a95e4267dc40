"""The form of JSON-RPC's messages. The package would tell what is wrong in words of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.types.version import KNOWN_PROTOCOL_VERSIONS

INVALID_REQUEST, UNKNOWN_VERSION = -32600, -32022
VERSION_HEADER, VERSION_FIELD = "MCP-Protocol-Version", "io.modelcontextprotocol/protocolVersion"
SHOWN_VERSION = 50


def error_in(message: Any, headers: Mapping[str, str]) -> dict[str, Any] | None:
    """Return JSON-RPC's error for a message that is none, or that has an unknown version."""
    if wrong := _wrong_form(message):
        return {"code": INVALID_REQUEST, "message": wrong}
    meta = message.get("params", {}).get("_meta")
    named = meta.get(VERSION_FIELD) if isinstance(meta, dict) else None
    for version in (headers.get(VERSION_HEADER), named):
        if version is not None and version not in KNOWN_PROTOCOL_VERSIONS:
            shown, known = str(version)[:SHOWN_VERSION], ", ".join(KNOWN_PROTOCOL_VERSIONS)
            return {
                "code": UNKNOWN_VERSION,
                "message": f"There is no version {shown} of the protocol here. There are: {known}.",
                "data": {"supported": list(KNOWN_PROTOCOL_VERSIONS), "requested": shown},
            }
    return None


def _wrong_form(message: Any) -> str:
    """Return what is wrong; empty for a message."""
    if isinstance(message, list):
        return "Send each message on its own: the protocol has no batches."
    if not isinstance(message, dict):
        return "A message is a JSON object."
    request_id = message.get("id", "")
    checks = {
        'jsonrpc must be "2.0".': message.get("jsonrpc") == "2.0",
        "id must be a text or a whole number.": (
            isinstance(request_id, str | int) and not isinstance(request_id, bool)
        ),
        "method is missing: it names what is asked for.": (
            not {"method", "result", "error"}.isdisjoint(message)
        ),
        "method must be a text.": isinstance(message.get("method", ""), str),
        "params must be an object.": isinstance(message.get("params", {}), dict),
    }
    return next((wrong for wrong, is_right in checks.items() if not is_right), "")
