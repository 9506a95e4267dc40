"""The HTTP side of the loopback OpenAI server: reads a request, has it recorded, and writes
what the script or the API says."""

from __future__ import annotations

import json
import socketserver
import threading
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol

from tests.loopback import (
    openai_audio_api,
    openai_chat_api,
    openai_embeddings_api,
    openai_responses_api,
)
from tests.loopback.openai_behaviours import Behaviour, Json, error_object

CHAT = "/v1/chat/completions"
EMBEDDINGS = "/v1/embeddings"
RESPONSES = "/v1/responses"
TRANSCRIPTIONS = "/v1/audio/transcriptions"
METHODS = dict.fromkeys((CHAT, RESPONSES, EMBEDDINGS, TRANSCRIPTIONS), "POST")
APIS = {
    CHAT: openai_chat_api.find_fault,
    RESPONSES: openai_responses_api.find_fault,
    EMBEDDINGS: openai_embeddings_api.find_fault,
    TRANSCRIPTIONS: openai_audio_api.find_fault,
}
STREAMED = {CHAT: openai_chat_api.as_events, RESPONSES: openai_responses_api.as_events}


@dataclass(frozen=True)
class RecordedRequest:
    """A request as it came in; ``body`` is None where it held no JSON object and no form.
    The Authorization header isn't kept."""

    method: str
    path: str
    headers: dict[str, str]
    body: Json | None


class Backend(Protocol):
    """What the HTTP side asks the server that it belongs to."""

    stopping: threading.Event

    def accepts(self, authorization: str) -> bool: ...
    def record(self, request: RecordedRequest) -> int: ...
    def next_behaviour(self, path: str) -> Behaviour: ...
    def answer_to(self, body: Json) -> str: ...
    def transcript_of(self, body: Json) -> str: ...
    def now(self) -> int: ...


class LoopbackHTTPServer(ThreadingHTTPServer):
    """A server that answers side by side and whose threads are done when it is closed."""

    daemon_threads = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], backend: Backend) -> None:
        self.backend = backend
        super().__init__(address, Handler)

    def server_bind(self) -> None:
        # HTTPServer's own looks the address up, which may ask the network for a name.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", int(self.server_address[1])


class Handler(BaseHTTPRequestHandler):
    """One connection, one request: connections aren't kept, so that none outlives a test."""

    protocol_version = "HTTP/1.1"
    timeout = 5.0
    server: LoopbackHTTPServer

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: what came in is in the server's ``requests``."""

    def _serve(self) -> None:
        self.close_connection = True
        # A caller that gave up waiting is what a timeout looks like from here.
        with suppress(BrokenPipeError, ConnectionResetError, TimeoutError):
            self._respond()

    def _respond(self) -> None:
        backend = self.server.backend
        path = self.path.partition("?")[0]
        body = self._read_body()
        headers = {name.lower(): text for name, text in self.headers.items()}
        authorization = headers.pop("authorization", "")
        number = backend.record(RecordedRequest(self.command, path, headers, body))
        if not backend.accepts(authorization):
            self._send_json(401, _unauthorized(authorization))
        elif METHODS.get(path) != self.command:
            self._send_json(405 if path in METHODS else 404, _no_route(self.command, path))
        elif body is None:
            self._send_json(400, _unreadable())
        else:
            self._act(path, body, number)

    def _act(self, path: str, body: Json, number: int) -> None:
        """Do what the script says with a request of the right form to read."""
        behaviour = self.server.backend.next_behaviour(path)
        if behaviour.delay:
            self.server.backend.stopping.wait(behaviour.delay)
        if behaviour.hang_up:
            return
        if behaviour.raw is not None:
            self._send(behaviour.status, behaviour.raw, behaviour.headers)
        elif behaviour.error is not None:
            self._send_json(behaviour.status, behaviour.error, behaviour.headers)
        elif (fault := APIS[path](body)) is not None:
            self._send_json(400, fault)
        else:
            self._answer(path, body, number, behaviour)

    def _answer(self, path: str, body: Json, number: int, behaviour: Behaviour) -> None:
        answer = self._proper_answer(path, body, number, behaviour)
        if behaviour.change is not None:
            answer = behaviour.change(answer)
        if path in STREAMED and body.get("stream") is True:
            kind = {"Content-Type": "text/event-stream", **behaviour.headers}
            self._send(behaviour.status, STREAMED[path](answer), kind)
            return
        self._send_json(behaviour.status, answer, behaviour.headers)

    def _proper_answer(self, path: str, body: Json, number: int, behaviour: Behaviour) -> Json:
        if path == EMBEDDINGS:
            return openai_embeddings_api.embeddings(body)
        backend = self.server.backend
        if path == TRANSCRIPTIONS:
            said = backend.transcript_of(body) if behaviour.text is None else behaviour.text
            return openai_audio_api.transcription(said)
        if path == RESPONSES:
            text = backend.answer_to(openai_responses_api.as_chat(body))
            made = {"number": number, "created": backend.now()}
            return openai_responses_api.response(body, **made, text=text)
        return openai_chat_api.completion(
            body,
            number=number,
            created=backend.now(),
            text=backend.answer_to(body) if behaviour.text is None else behaviour.text,
            finish_reason=behaviour.finish_reason,
        )

    def _read_body(self) -> Json | None:
        """The JSON object or the form that was sent; None for anything else."""
        length = self.headers.get("Content-Length", "0")
        content = self.rfile.read(int(length)) if length.isdigit() else b""
        form = openai_audio_api.read_form(self.headers.get("Content-Type", ""), content)
        if form is not None:
            return form
        try:
            body = json.loads(content)
        except ValueError:
            return None
        return body if isinstance(body, dict) else None

    def _send_json(self, status: int, body: Json, headers: dict[str, str] | None = None) -> None:
        self._send(status, json.dumps(body).encode(), headers or {})

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        shown = {"Content-Type": "application/json", "Connection": "close", **headers}
        shown.setdefault("Content-Length", str(len(content)))
        for name, text in shown.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(content)


def _unauthorized(authorization: str) -> Json:
    if not authorization:
        return error_object("You didn't provide an API key.", kind="invalid_request_error")
    return error_object(
        f"Incorrect API key provided: {authorization.removeprefix('Bearer ')[:2]}*****.",
        kind="invalid_request_error",
        code="invalid_api_key",
    )


def _no_route(method: str, path: str) -> Json:
    return error_object(f"Invalid URL ({method} {path})", kind="invalid_request_error")


def _unreadable() -> Json:
    message = "We could not parse the JSON body of your request."
    return error_object(message, kind="invalid_request_error")
