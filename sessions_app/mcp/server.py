"""The package's server, for one token."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from drf_standardized_errors.formatter import flatten_errors
from mcp import MCPError, types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types.version import KNOWN_PROTOCOL_VERSIONS
from rest_framework.exceptions import APIException, AuthenticationFailed

from memoryproject.foundation.process.storage import is_caused_by_full_disk
from memoryproject.foundation.rest_kit import authentication, bodies, serializers
from sessions_app.conversations.phrases import text_for
from sessions_app.mcp.answers import ROOM_FOR_NOTE, ToolResult, cut, entries_within
from sessions_app.mcp.arguments import DEFAULT_TOKENS, AnswerLimit
from sessions_app.mcp.rest import FAILED, Refused, Rest
from sessions_app.mcp.tools import TOOLS, Arguments, Tool
from sessions_app.presentation.access import names_of_bound

logger = logging.getLogger(__name__)

NAME = "whatsapp-memory"
TITLE = "WhatsApp memory"
VERSION = "1"
INSTRUCTIONS = Path(__file__).with_name("instructions.txt").read_text(encoding="utf-8").strip()


def instructions_for(caller: authentication.Caller) -> str:
    """Return the instructions, with the chats of a token that is bound to some."""
    names = names_of_bound(caller)
    if not names:
        return INSTRUCTIONS
    if len(names) == 1:
        return f"{INSTRUCTIONS}\n\nYour chat is {names[0]}: you needn't name it."
    return f"{INSTRUCTIONS}\n\nYour chats are {', '.join(names)}."


def server_for(
    rest: Rest, caller: authentication.Caller, prepare: Callable[[], None] = lambda: None
) -> Server[Any]:
    """Return the server. Database access happens in the thread that waits for the event loop.

    ``prepare`` is called in that thread before each listing and each call.
    """

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        if params is not None and params.cursor is not None:
            detail = "There is no such cursor: all tools are on one page. Leave it out."
            raise MCPError(types.INVALID_PARAMS, detail)
        await sync_to_async(prepare)()
        try:
            current = await sync_to_async(rest.caller)()
        except AuthenticationFailed as error:
            raise MCPError(types.INVALID_REQUEST, str(error.detail)) from error
        tools = [tool.shown for tool in TOOLS.values() if tool.operation.is_open_to(current)]
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            detail = f"There is no tool {params.name[:100]}. Tools are {', '.join(TOOLS)}."
            raise MCPError(types.INVALID_PARAMS, detail)
        await sync_to_async(prepare)()
        return await sync_to_async(tool_call)(rest, tool, params.arguments or {})

    return Server(
        NAME,
        version=VERSION,
        title=TITLE,
        instructions=instructions_for(caller),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def tool_call(rest: Rest, tool: Tool, given: Arguments) -> types.CallToolResult:
    """Call a tool. Never raises: refusals and errors are part of the result."""
    try:
        return _answer(rest, tool, given).shown()
    except APIException as error:
        return _failure(str(Refused([asdict(each) for each in flatten_errors(error.detail)])))
    except Refused as error:
        return _failure(str(error))
    except Exception as error:
        if is_caused_by_full_disk(error, settings.DATA_DIR):
            logger.critical("The disk is full: %s could not be carried out.", tool.shown.name)
            return _failure(text_for("storage_full", "en"))
        logger.exception("The tool %s failed.", tool.shown.name)
        return _failure(FAILED)


def _answer(rest: Rest, tool: Tool, given: Arguments) -> ToolResult:
    """Return the answer within its limit. Raises APIException and Refused."""
    bodies.refuse_unstorable(given)
    checked, limit = _checked(tool, given)
    result = tool.run(rest, checked)
    if not result.fits(limit) and "next" in result.document:
        # A smaller page, whose cursor leads to what isn't on it.
        rows = max(entries_within(result.document["results"], limit - ROOM_FOR_NOTE), 1)
        result = tool.run(rest, {**checked, "limit": rows})
    return result if result.fits(limit) else cut(result, tool.cuts, limit)


def _checked(tool: Tool, given: Arguments) -> tuple[Arguments, int]:
    """Return the arguments and the most tokens of the answer. Raises ValidationError."""
    if "max_tokens" in tool.arguments().fields:
        checked = serializers.checked_data(tool.arguments, given)
        limit = checked.get("max_tokens", {}).get("total", DEFAULT_TOKENS)
        return checked, limit
    own = {name: value for name, value in given.items() if name != "max_tokens"}
    most = {name: value for name, value in given.items() if name == "max_tokens"}
    limit = serializers.checked_data(AnswerLimit, most).get("max_tokens", DEFAULT_TOKENS)
    return own if tool.is_body else serializers.checked_data(tool.arguments, own), limit


def _failure(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)


# The form of messages. The package would tell what is wrong in words of its own.

UNKNOWN_VERSION = -32022
VERSION_HEADER, VERSION_FIELD = "MCP-Protocol-Version", "io.modelcontextprotocol/protocolVersion"
SHOWN_VERSION = 50


def error_in(message: Any, headers: Mapping[str, str]) -> dict[str, Any] | None:
    """Return JSON-RPC's error for a message that is none, or that has an unknown version."""
    if wrong := _wrong_form(message):
        return {"code": types.INVALID_REQUEST, "message": wrong}
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


# One HTTP exchange with the package's transport, from a thread without an event loop.


@async_to_sync
async def exchange(server: Server[Any], headers: Mapping[str, str], body: bytes) -> httpx.Response:
    """Block until the response is complete.

    The tools run in the calling thread, so that they use its database connection outside the
    event loop.
    """
    manager = StreamableHTTPSessionManager(
        app=server, json_response=True, stateless=True, max_request_body_size=bodies.MAX_BODY_SIZE
    )
    # Not a client, which would add its own headers.
    transport = httpx.ASGITransport(manager.handle_request)
    named = httpx.Headers(dict(headers), encoding="latin-1")
    async with manager.run():
        answer = await transport.handle_async_request(
            httpx.Request("POST", "http://localhost/mcp/", headers=named, content=body)
        )
        await answer.aread()
    return answer
