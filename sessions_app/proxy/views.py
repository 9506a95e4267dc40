"""``/v1/``: what a program calls that has this server's address in place of its model server's."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import path, re_path, reverse
from django.views.decorators.csrf import csrf_exempt
from rest_framework.exceptions import APIException, NotFound, PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from memoryproject.foundation.integrations.configured import forwarding, model_server
from memoryproject.foundation.process.own_address import absolute_url
from memoryproject.foundation.rest_kit.authentication import TokenAuthentication, require_scopes
from memoryproject.foundation.rest_kit.bodies import Json, drain
from memoryproject.foundation.rest_kit.errors import Unavailable, refuse
from memoryproject.foundation.rest_kit.models import READ, WRITE
from memoryproject.foundation.rest_kit.throttles import PlacedResponse, waiting_calls
from memoryproject.foundation.rest_kit.views import ApiView
from sessions_app.limits.intake import LimitReachedError
from sessions_app.presentation.access import names_of_bound
from sessions_app.proxy import responses
from sessions_app.proxy.exchange import Exchange, Given

# The longest that a model may take for its whole answer.
PATIENCE_SECONDS = 600.0
# What of a streamed answer is kept to be stored.
MAX_KEPT = 8 * 1024 * 1024
BROKE_OFF = "The model's server broke its answer off, or did not end it in time. Try again."
MODEL_SERVER = "model_server"
# What ends a stream, and the blank line behind it.
ENDS = re.compile(rb"^data: ?\[DONE\]", re.MULTILINE)
END_OF_EVENT = (b"\n\n", b"\r\n\r\n")
CHAT_HEADER = "X-Memory-Chat"
# What a model server says of our own key or account is no matter of the program's token.
OUR_ACCOUNT = {401, 402, 403}
ROLES = {"system", "developer", "user", "assistant", "tool", "function"}


class ModelServerError(APIException):
    """The model's server refused the call, or can't be reached."""

    status_code = 502
    default_code = MODEL_SERVER
    wait = 1
    # Which part of the call the server refused.
    param: str | None = None


class LimitReached(APIException):
    status_code = 429
    default_code = "limit_reached"


def _not_now(limit: Exception) -> APIException:
    """Return the refusal of a limit of the day, or of a chat that isn't answered at all."""
    if getattr(limit, "until", None) is not None:
        return LimitReached(str(limit))
    # Not 409 as for POST chat/: OpenAI's clients would try that again.
    return PermissionDenied(str(limit), code="not_answered")


class ProxyView(ApiView):
    """``v1``: errors have the form of OpenAI's, so that its clients show their words."""

    authentication_classes = [TokenAuthentication]
    renderer_classes = [Json]
    schema = None

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """Answer in JSON or as a stream, whatever the client accepts: the body says which."""
        return self.get_renderers()[0], Json.media_type

    def handle_exception(self, exc: Exception) -> Response:
        response = super().handle_exception(exc)
        first = response.data["errors"][0]
        response.data = {
            "error": {
                "message": first["detail"],
                "type": response.data["type"],
                "param": first["attr"] or getattr(exc, "param", None),
                "code": first["code"],
            }
        }
        return response

    def server(self) -> Any:
        """Return the SDK's client of the model's server. Raises Unavailable without one."""
        server = model_server()
        if settings.CHAT_MODEL != "openai" or server.needs_key:
            raise Unavailable(
                "No language model is configured: set CHAT_MODEL=openai, and OPENAI_API_KEY or "
                "OPENAI_BASE_URL.",
                "no_model",
            )
        return forwarding(server, PATIENCE_SECONDS)


class ModelsView(ProxyView):
    scopes = {"GET": READ}

    def get(self, request: Request, name: str = "") -> HttpResponseBase:
        """Return the models that the model's server has, as it lists them."""
        import httpx2  # noqa: PLC0415 with the SDK, slow

        if {".", ".."} & set(name.split("/")):
            # They would lead to other addresses of the server, which our key opens.
            raise NotFound("There is no model of this name.")
        connection = self.server()
        with _relayed(connection):
            answer = connection.client.get(
                f"/models/{quote(name)}" if name else "/models", cast_to=httpx2.Response
            )
        return HttpResponse(answer.content, content_type="application/json")


class CompletionsView(ProxyView):
    scopes = {"POST": WRITE}
    kinds = {"POST": "chat"}
    raises = {LimitReachedError: _not_now}
    ends = ENDS

    def post(self, request: Request) -> HttpResponseBase:
        """Pass a call on with what is remembered, and store it with its answer."""
        require_scopes(self.caller, [READ, WRITE], "the answer is made of what is stored.")
        body = self._checked()
        given = self._messages(body)
        connection = self.server()
        name = self._chat(body)
        body["model"] = body.get("model") or settings.OPENAI_MODEL
        streams = body.get("stream") is True
        with ExitStack() as stack:
            stack.enter_context(waiting_calls.place())
            exchange = Exchange.begin(self.caller, name, given, body["model"])
            with _relayed(connection):
                answer = stack.enter_context(self._asked(connection.client, body, exchange))
                content = b"" if streams else answer.read()
            kind = answer.headers.get("Content-Type", "application/json")
            headers = self._headers(exchange)
            if streams:
                ends = self.ends if "event-stream" in kind.lower() else None
                blocks = _passed_on(answer.iter_bytes(), exchange, ends)
                return PlacedResponse(stack.pop_all(), blocks, content_type=kind, headers=headers)
        exchange.finish(content)
        return HttpResponse(content, content_type=kind, headers=headers)

    def _messages(self, body: Mapping[str, Any]) -> Given:
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages:
            raise refuse("It must be a list of messages.", attr="messages")
        for place, each in enumerate(messages):
            _check_role(each, f"messages[{place}]")
        return messages

    def _asked(self, client: Any, body: dict[str, Any], exchange: Exchange) -> Any:
        """Return the call of the server, which begins when it is entered."""
        create = client.chat.completions.with_streaming_response.create
        named = {"model": body.pop("model"), "messages": exchange.sent}
        return create(**named, extra_body={**body, **named})

    def _checked(self) -> dict[str, Any]:
        body = self.request.data
        if not isinstance(body, Mapping):
            raise refuse("The body must be a JSON object.")
        if not isinstance(body.get("model") or "", str):
            raise refuse("It must be a text.", attr="model")
        return dict(body)

    def _chat(self, body: Mapping[str, Any]) -> str:
        """Return the name of the chat: of the header, of ``user``, or a bound token's only one."""
        # Django reads headers as Latin-1; programs send UTF-8.
        header = self.request.headers.get(CHAT_HEADER, "").encode("latin-1", "replace")
        user = body.get("user")
        name = header.decode(errors="replace") or (user if isinstance(user, str) else "")
        if name.strip():
            return name
        names = names_of_bound(self.caller)
        if len(names) != 1:
            bound = f" The token is bound to {', '.join(names)}: name one." if names else ""
            raise refuse(
                f"Say whose conversation this is: in the header {CHAT_HEADER}, or in `user`."
                f"{bound}",
                code="required",
                attr="user",
            )
        return names[0]

    def _headers(self, exchange: Exchange) -> dict[str, str]:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        if exchange.session is None:
            return headers
        turn_id = exchange.turn.turn_id
        link = absolute_url(reverse("api-turn", args=[turn_id]), self.request._request)
        return {
            **headers,
            CHAT_HEADER: exchange.turn.chat.whatsapp_chat,
            "X-Memory-Session": str(exchange.session.pk),
            "X-Memory-Replay": link,
        }


class ResponsesView(CompletionsView):
    """``v1/responses``: stored and read as chat completions, passed on in its own form."""

    ends = responses.ENDS

    def _messages(self, body: Mapping[str, Any]) -> Given:
        if body.get("background"):
            raise refuse("Nothing could be stored of such an answer.", attr="background")
        if not isinstance(body.get("instructions") or "", str):
            raise refuse("It must be a text.", attr="instructions")
        given = body.get("input")
        if not isinstance(given, (str, list)) or not given:
            raise refuse("It must be a text or a list of items.", attr="input")
        for place, each in enumerate([] if isinstance(given, str) else given):
            if not isinstance(each, Mapping) or "role" in each or "type" not in each:
                _check_role(each, f"input[{place}]")
        return responses.messages_of(body)

    def _asked(self, client: Any, body: dict[str, Any], exchange: Exchange) -> Any:
        exchange.as_completion = responses.completion_of
        if exchange.block:
            body = responses.with_memory(body, exchange.block)
        named = {"model": body["model"], "input": body["input"]}
        return client.responses.with_streaming_response.create(**named, extra_body=body)


def _check_role(message: object, attr: str) -> None:
    if not isinstance(message, Mapping) or str(message.get("role")) not in ROLES:
        roles = ", ".join(sorted(ROLES))
        raise refuse(f"It must be an object whose role is one of {roles}.", attr=attr)


@contextmanager
def _relayed(connection: Any) -> Iterator[None]:
    """Raise what the SDK raises as an error of ours, with the server's status and words."""
    import httpx2  # noqa: PLC0415 slow
    import openai  # noqa: PLC0415 slow

    try:
        yield
    except httpx2.HTTPError:
        raise ModelServerError(BROKE_OFF) from None
    except openai.APIStatusError as error:
        raise _refusal(connection, error) from None
    except openai.APITimeoutError:
        raise ModelServerError("The model's server did not answer in time.") from None
    except openai.APIConnectionError:
        raise ModelServerError("The model's server could not be reached.") from None


def _refusal(connection: Any, error: Any) -> APIException:
    from memoryproject.foundation.integrations.llm.reading import words_of  # noqa: PLC0415

    body, param = error.body, None
    if isinstance(body, Mapping) and isinstance(body.get("message"), str):
        # In OpenAI's form, which is passed on: programs decide by its code.
        param, body = error.param, {**body, "param": None}
    words = connection.without_secrets(words_of(body))
    message = words or f"The model's server answered {error.status_code}."
    refusal = ModelServerError(message)
    if error.status_code not in OUR_ACCOUNT:
        code = error.code if isinstance(error.code, str) else None
        refusal = ModelServerError(message, code=code)
        refusal.param = param if isinstance(param, str) else None
        refusal.status_code = error.status_code
        seconds = error.response.headers.get("Retry-After", "")
        refusal.wait = int(seconds) if seconds.isdecimal() else 1
    return refusal


def _passed_on(
    blocks: Iterator[bytes], exchange: Exchange, ends: re.Pattern[bytes] | None
) -> Iterator[bytes]:
    """Yield what the server sends as it comes; store it at the end, also if the program leaves.

    ``ends``: the event that ends it; None where it is no stream of events, in which a program could
    be told that it broke off.
    """
    import httpx2  # noqa: PLC0415 slow

    kept = bytearray()
    tail = b""
    is_ending = is_stored = False
    try:
        for block in blocks:
            if len(kept) < MAX_KEPT:
                kept += block
            tail = tail[-64:] + block
            is_ending = is_ending or bool(ends and ends.search(tail))
            if is_ending and not is_stored and tail.endswith(END_OF_EVENT):
                # Before the program knows the end: what it asks next finds this.
                is_stored = True
                exchange.finish(bytes(kept))
            yield block
    except httpx2.HTTPError:
        if ends is None:
            raise
        if not is_stored:
            is_stored = True
            exchange.finish(bytes(kept))
        error = {"message": BROKE_OFF, "type": "server_error", "param": None, "code": MODEL_SERVER}
        yield b"\n\ndata: " + json.dumps({"error": error}).encode() + b"\n\n"
    finally:
        if not is_stored:
            exchange.finish(bytes(kept))


@csrf_exempt
def elsewhere(request: HttpRequest) -> HttpResponse:
    """Return a 404 in the form of OpenAI's errors."""
    drain(request)
    error = {
        "message": "There is no such address. Those there are: /v1/chat/completions, "
        "/v1/responses, /v1/models.",
        "type": "client_error",
        "param": None,
        "code": "not_found",
    }
    return HttpResponse(json.dumps({"error": error}), status=404, content_type="application/json")


urlpatterns = [
    path("chat/completions", CompletionsView.as_view(), name="proxy-completions"),
    path("responses", ResponsesView.as_view(), name="proxy-responses"),
    path("models", ModelsView.as_view(), name="proxy-models"),
    path("models/<path:name>", ModelsView.as_view(), name="proxy-model"),
    re_path(r"^", elsewhere, name="proxy-nowhere"),
]
