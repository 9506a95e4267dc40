"""MCP's messages, posted to the view without a running server."""

from __future__ import annotations

import json
from typing import Any

from tests.api.calling import Api

ADDRESS = "/mcp/"
ACCEPT = "application/json, text/event-stream"


class Rpc:
    """Calls with a token; None: without one."""

    def __init__(self, token: str | None, word: str = "Bearer") -> None:
        self.api = Api(None)
        self.headers = {} if token is None else {"Authorization": f"{word} {token}"}

    def post(self, body: Any, **headers: str) -> Any:
        """The HTTP answer; a body that isn't bytes is sent as JSON."""
        given = {"Accept": ACCEPT, **self.headers, **headers}
        return self.api.call("POST", ADDRESS, body, **given)

    def ask(self, method: str, params: Any = None) -> dict[str, Any]:
        """JSON-RPC's answer."""
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params or {}}
        answer = self.post(body)
        assert answer.status_code == 200, answer.content
        document: dict[str, Any] = answer.json()
        assert document["id"] == 7
        return document

    def listed(self) -> set[str]:
        return {tool["name"] for tool in self.ask("tools/list")["result"]["tools"]}

    def call(self, name: str, arguments: Any = None) -> dict[str, Any]:
        """A tool's result, whatever it says."""
        params = {"name": name, "arguments": arguments or {}}
        result: dict[str, Any] = self.ask("tools/call", params)["result"]
        return result

    def told(self, name: str, arguments: Any = None) -> dict[str, Any]:
        """What a tool answers, which is no error."""
        result = self.call(name, arguments)
        assert not result.get("isError"), result
        document: dict[str, Any] = result["structuredContent"]
        return document

    def refusal(self, name: str, arguments: Any = None) -> str:
        """The words of an answer that is an error."""
        result = self.call(name, arguments)
        assert result.get("isError") is True, result
        assert "structuredContent" not in result
        (only,) = result["content"]
        assert "Traceback" not in only["text"]
        return str(only["text"])


def texts(result: dict[str, Any]) -> list[str]:
    return [each["text"] for each in result["content"]]


def everything(result: Any) -> str:
    """All that an answer says."""
    return json.dumps(result, ensure_ascii=False)
