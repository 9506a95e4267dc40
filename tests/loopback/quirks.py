"""Servers of models as they really are: each quirk is a function of a request's body.

The words are those of the providers' and servers' own error texts, as their issues quote them.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

Json = dict[str, Any]
ANSWER = "We open at 9."


@dataclass(frozen=True)
class Reply:
    """A response: JSON, or these bytes."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


Quirk = Callable[[Json, int], Reply]


class QuirkServer:
    """Answers each POST by the quirk, and keeps the bodies, paths and headers that it was sent."""

    def __init__(self, quirk: Quirk) -> None:
        self.quirk = quirk
        self.bodies: list[Json] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def url(self) -> str:
        return f"{self.origin}/v1"

    def __enter__(self) -> QuirkServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


def _handler(server: QuirkServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.bodies.append(body)
            server.paths.append(self.path)
            server.headers.append({name.lower(): text for name, text in self.headers.items()})
            reply = server.quirk(body, len(server.bodies))
            self.send_response(reply.status)
            shown = {"Content-Type": "application/json", "Connection": "close", **reply.headers}
            for name, text in shown.items():
                self.send_header(name, text)
            self.send_header("Content-Length", str(len(reply.content)))
            self.end_headers()
            self.wfile.write(reply.content)

        def do_GET(self) -> None:
            """The list of models, which this server has none of."""
            self.send_response(404)
            self.send_header("Connection", "close")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Prints nothing."""

    return Handler


# Answers.


def completion(content: Any = ANSWER, finish: str | None = "stop", **message: Any) -> Json:
    said = {"role": "assistant", "content": content, **message}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "quirk-1",
        "choices": [{"index": 0, "finish_reason": finish, "message": said}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


def answers(content: Any = ANSWER, finish: str | None = "stop", **message: Any) -> Quirk:
    return lambda body, number: Reply(completion(content, finish, **message))


def sends(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Quirk:
    """The same response to each request."""
    return lambda _body, number: Reply(body, status, headers or {})


def at_first(times: int, first: Reply) -> Quirk:
    """Fails so many times, then answers."""
    return lambda body, number: first if number <= times else Reply(completion())


def refuses(condition: Callable[[Json], Any], words: Any, status: int = 400) -> Quirk:
    """Refuses requests of which the condition holds; ``words``: the message or the whole body."""
    body = words if isinstance(words, (dict, list, bytes)) else error(words)
    return lambda sent, number: Reply(body, status) if condition(sent) else Reply(completion())


def exceeds(window: int, words: str) -> Quirk:
    """Refuses what is longer than the window together with the room of its answer."""

    def quirk(body: Json, number: int) -> Reply:
        prompt = sum(len(str(each["content"])) // 4 for each in body["messages"])
        reply = body.get("max_completion_tokens", 0)
        counts = {"window": window, "prompt": prompt, "reply": reply, "total": prompt + reply}
        is_long = prompt + reply > window
        return Reply(error(words.format(**counts)), 400) if is_long else Reply(completion())

    return quirk


def error(message: str, code: Any = None, **fields: Any) -> Json:
    return {"error": {"message": message, "type": "invalid_request_error", "code": code, **fields}}


def events(*chunks: Any, end: str = "data: [DONE]\n\n") -> bytes:
    """A stream of server-sent events."""
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return ("".join(lines) + end).encode()


def chunk(text: str | None = None, finish: str | None = None, **delta: Any) -> Json:
    said = {**({} if text is None else {"content": text}), **delta}
    return {"model": "quirk-1", "choices": [{"index": 0, "delta": said, "finish_reason": finish}]}


STREAM = events(chunk("We "), chunk("open "), chunk("at 9.", "stop"))


# Conditions.


def roles(body: Json) -> list[str]:
    return [message["role"] for message in body["messages"]]


def has_system(body: Json) -> bool:
    return "system" in roles(body)


def has_late_system(body: Json) -> bool:
    return "system" in roles(body)[1:]


def does_not_alternate(body: Json) -> bool:
    spoken = [role for role in roles(body) if role != "system"]
    repeats = any(first == second for first, second in zip(spoken, spoken[1:], strict=False))
    return repeats or spoken[:1] != ["user"] or has_late_system(body)


def has_names(body: Json) -> bool:
    return any("name" in message for message in body["messages"])


def has_pictures(body: Json) -> bool:
    return any(isinstance(message["content"], list) for message in body["messages"])


def has_tool_messages(body: Json) -> bool:
    return any("tool_calls" in each or each["role"] == "tool" for each in body["messages"])
