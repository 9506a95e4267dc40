"""List and call tools for a token; every error becomes a readable result."""

from __future__ import annotations

import json
import logging
from typing import Any

from django.conf import settings
from drf_standardized_errors.formatter import flatten_errors
from mcp import types
from rest_framework.exceptions import APIException

from memoryproject.foundation.process.storage import is_caused_by_full_disk
from memoryproject.foundation.rest_kit.authentication import caller_with
from memoryproject.foundation.rest_kit.bodies import refuse_unstorable
from sessions_app.conversations.system_texts import text_for
from sessions_app.mcp.rest import FAILED, Refused, Rest
from sessions_app.mcp.running import Arguments, ToolResult
from sessions_app.mcp.tools import TOOLS, Tool

logger = logging.getLogger(__name__)


def tools_of(rest: Rest) -> list[types.Tool]:
    """Return the tools that the token may use. Raises AuthenticationFailed."""
    caller = caller_with(rest.secret)
    return [tool.shown for tool in TOOLS.values() if tool.operation.is_open_to(caller)]


def tool_call(rest: Rest, tool: Tool, given: Arguments) -> types.CallToolResult:
    """Call a tool. Never raises: refusals and errors are part of the result."""
    try:
        return _answer(tool.run(rest, _checked(tool, given)))
    except APIException as error:
        found = [
            {"attr": each.attr, "detail": each.detail} for each in flatten_errors(error.detail)
        ]
        return _failure(str(Refused(found)))
    except Refused as error:
        return _failure(str(error))
    except Exception as error:
        if is_caused_by_full_disk(error, settings.DATA_DIR):
            logger.critical("The disk is full: %s could not be carried out.", tool.name)
            return _failure(text_for("storage_full", "en"))
        logger.exception("The tool %s failed.", tool.name)
        return _failure(FAILED)


def _checked(tool: Tool, given: Arguments) -> Arguments:
    """Return the validated arguments. Raises ValidationError."""
    refuse_unstorable(given)
    if tool.is_body:
        return given
    serializer = tool.arguments(data=given)
    serializer.is_valid(raise_exception=True)
    checked: dict[str, Any] = serializer.validated_data
    return checked


def _answer(result: ToolResult) -> types.CallToolResult:
    text = result.text
    if text is None:
        # Without spaces: assistants pay for each of them.
        text = json.dumps(result.document, ensure_ascii=False, separators=(",", ":"))
    texts = [text, result.note] if result.note else [text]
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=each) for each in texts],
        structured_content=result.document,
    )


def _failure(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)
