"""The form of JSON-RPC's messages. The package would tell what is wrong in words of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcp.types.version import KNOWN_PROTOCOL_VERSIONS
from rest_framework.exceptions import ParseError

INVALID_REQUEST, UNKNOWN_VERSION = -32600, -32022
VERSION_HEADER, VERSION_FIELD = "MCP-Protocol-Version", "io.modelcontextprotocol/protocolVersion"
SHOWN_VERSION = 50


def read_message(text: str) -> Any:
    """Return the JSON. Raises ParseError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParseError("The body is not JSON.") from error


def error_in(message: Any, headers: Mapping[str, str]) -> dict[str, Any] | None:
    """Return JSON-RPC's error for a message that is none, or that has an unknown version."""
    if isinstance(message, list):
        return _error("Send each message on its own: the protocol has no batches.")
    if not isinstance(message, dict):
        return _error("A message is a JSON object.")
    if message.get("jsonrpc") != "2.0":
        return _error('jsonrpc must be "2.0".')
    request_id = message.get("id", "")
    if not isinstance(request_id, str | int) or isinstance(request_id, bool):
        return _error("id must be a text or a whole number.")
    if not {"method", "result", "error"} & set(message):
        return _error("method is missing: it names what is asked for.")
    if not isinstance(message.get("method", ""), str):
        return _error("method must be a text.")
    params = message.get("params", {})
    if not isinstance(params, dict):
        return _error("params must be an object.")
    meta = params.get("_meta")
    named = (
        headers.get(VERSION_HEADER),
        meta.get(VERSION_FIELD) if isinstance(meta, dict) else None,
    )
    for version in named:
        if version is not None and version not in KNOWN_PROTOCOL_VERSIONS:
            return _unknown_version(str(version)[:SHOWN_VERSION])
    return None


def _error(text: str) -> dict[str, Any]:
    return {"code": INVALID_REQUEST, "message": text}


def _unknown_version(version: str) -> dict[str, Any]:
    known = ", ".join(KNOWN_PROTOCOL_VERSIONS)
    return {
        "code": UNKNOWN_VERSION,
        "message": f"There is no version {version} of the protocol here. There are: {known}.",
        "data": {"supported": list(KNOWN_PROTOCOL_VERSIONS), "requested": version},
    }
