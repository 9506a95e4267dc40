"""REST view of one whole turn: a message to the assistant and its answer."""

import logging
import re
from collections.abc import Iterator
from concurrent.futures import TimeoutError as NotYet
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

from django.http import StreamingHttpResponse
from django.utils import timezone
from rest_framework import serializers
from rest_framework.exceptions import APIException, NotFound
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from memoryproject.foundation.process.jobs import ConnectionClosingExecutor
from memoryproject.foundation.rest_kit import authentication, bodies, views
from memoryproject.foundation.rest_kit.errors import AnotherBody, Conflict, Unavailable
from memoryproject.foundation.rest_kit.idempotency import Once, UnkeptResponse, idempotent
from memoryproject.foundation.rest_kit.models import FORGET, READ, WRITE
from memoryproject.foundation.rest_kit.operations import WAIT, Refusal, conflicting, described
from memoryproject.foundation.rest_kit.serializers import Strict, Text, Truth
from memoryproject.foundation.rest_kit.throttles import PlacedResponse, waiting_calls
from sessions_app.conversations.buttons import command_of
from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.inbound.synchronous_chat import (
    NoAnswerError,
    NotYetAnsweredError,
    Talk,
    is_group,
    talk_begin,
    talk_finish,
)
from sessions_app.models import Outcome, Turn, TurnReplay
from sessions_app.presentation import access, message_forms
from sessions_app.presentation.serializers import WhatsAppChat
from sessions_app.turns.dependencies import build_turn_dependencies
from sessions_app.turns.facade import Dependencies

# Serializers of a whole turn by the API.


class AskSerializer(Strict):
    """A message to the assistant in a chat."""

    whatsapp_chat = WhatsAppChat(required=False)
    # The limit bounds the work that one call causes; WhatsApp's own limit is lower.
    content = Text(allow_blank=True, max_length=65_536)
    stream = Truth(default=False)


class ChatAnswerSerializer(serializers.Serializer[Any]):
    """One whole turn. Where memory is off the ids are null."""

    reply = serializers.CharField()
    session_id = serializers.UUIDField(allow_null=True)
    message_id = serializers.UUIDField(allow_null=True)
    reply_message_id = serializers.UUIDField(allow_null=True)
    turn_id = serializers.UUIDField(allow_null=True)
    outcome = serializers.ChoiceField(Outcome.choices)
    error_code = serializers.CharField(allow_null=True)
    memories = serializers.ListField(child=message_forms.RecalledField())


def answer_of(talk: Talk) -> dict[str, Any]:
    """Return a turn's answer in the form of ChatAnswerSerializer."""
    turn = talk.turn
    answer = {
        "reply": talk.reply,
        **accepted_of(turn),
        "reply_message_id": turn.reply_id,
        "outcome": turn.outcome,
        "error_code": turn.error_code,
        "memories": TurnReplay.of(turn).recalled,
    }
    return dict(ChatAnswerSerializer(answer).data)


def accepted_of(turn: Turn) -> dict[str, Any]:
    """Return the ids that are known as soon as the message is stored.

    Where memory is off they are None.
    """
    remembered = turn.session_id is not None
    return {
        "session_id": turn.session_id,
        "message_id": turn.message_id,
        "turn_id": turn.turn_id if remembered else None,
    }


PATIENCE = timedelta(minutes=5)
EVENT = {
    "type": "object",
    "description": "One of the events, which follow one another.",
    "properties": {
        "event": {"type": "string", "enum": ["accepted", "delta", "done", "error"]},
        "data": {"type": "string", "description": "An object of JSON."},
    },
    "required": ["event", "data"],
    "additionalProperties": False,
}


class NotAnswered(Conflict):
    default_code = "not_answered"


def not_answered(error: Exception) -> APIException:
    return NotAnswered(str(error))


def not_yet(error: Exception) -> APIException:
    detail = f"{error} Ask again with the same Idempotency-Key: it is not said twice."
    return Unavailable(detail, "busy")


class AskView(views.ApiView):
    """``scopes``: what every message needs; ``required_scopes`` adds what its content needs."""

    scopes = {"POST": WRITE}
    kinds = {"POST": "chat"}
    answers = {
        "POST": [
            conflicting(
                "Nothing is answered there; what was said is stored.",
                "Nothing is answered in this group: GROUP_POLICY is never.",
                code="not_answered",
            ),
            Refusal(
                503,
                "Others keep the chat busy; or `overloaded`: too many calls wait for an answer, "
                "and nothing was stored.",
                kind="server_error",
                code="busy",
                detail="The answer isn't there yet. Ask again with the same Idempotency-Key: it "
                "is not said twice.",
                always=WAIT,
            ),
        ]
    }
    raises = {NotYetAnsweredError: not_yet, NoAnswerError: not_answered}
    renderer_classes = (bodies.Json, bodies.EventStream)

    @described(
        operation_id="chat",
        request=AskSerializer,
        responses={
            (200, "application/json"): ChatAnswerSerializer,
            (200, "text/event-stream"): EVENT,
        },
    )
    def post(self, request: Request) -> Any:
        """Run one whole turn, after those that wait in that chat already.

        Commands such as /remember work, too. Nothing is sent to WhatsApp. A message whose answer
        may show memories needs the scope read, too, and /forget also the scope forget.

        `outcome` says whether the reply is an answer. A failed one leaves its Idempotency-Key
        free: the same call with the same key answers the same message anew.

        With `stream` the answer comes as server-sent events: `accepted`, `delta` for each piece of
        the reply, `done`; or `error`. The reply is streamed once it is stored, so that nothing of
        it is taken back.
        """
        body = self._asked()
        needed, why = required_scopes(body["content"], in_group=is_group(body["whatsapp_chat"]))
        authentication.require_scopes(self.caller, needed, why)
        access.check_chat(self.caller, body["whatsapp_chat"])
        if body["stream"] or isinstance(request.accepted_renderer, bodies.EventStream):
            return self._stream(body)
        return self._whole(request)

    def _asked(self) -> dict[str, Any]:
        body = self.body(AskSerializer)
        return {**body, "whatsapp_chat": access.chat_or_own(self.caller, body.get("whatsapp_chat"))}

    post.takes_idempotency_key = True  # type: ignore[attr-defined]

    # After a crash, a retry finds the turn by the key and continues with it.
    @idempotent(atomic=False)
    def _whole(self, request: Request) -> Response:
        with waiting_calls.place():
            turn = self._begin(self._asked(), self.idempotency_ref)
            talk = talk_finish(turn=turn, dependencies=build_turn_dependencies(), patience=PATIENCE)
        kind = UnkeptResponse if talk.turn.outcome == Outcome.FAILED else Response
        return kind(answer_of(talk))

    def _stream(self, body: dict[str, Any]) -> StreamingHttpResponse:
        """Stream the answer; requests with the same key get the answer of the same turn."""
        key = self.request.headers.get("Idempotency-Key")
        with ExitStack() as place:
            place.enter_context(waiting_calls.place())
            turn = self._begin(body, None if key is None else Once.of(self.request, key).key_hash)
            if turn.message is not None and turn.message.content != body["content"]:
                raise AnotherBody("This Idempotency-Key was used for something else that was said.")
            dependencies = build_turn_dependencies()
            return PlacedResponse(
                place.pop_all(),
                answer_events(turn=turn, dependencies=dependencies, patience=PATIENCE),
                content_type="text/event-stream",
                headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
            )

    def _begin(self, body: dict[str, Any], ref: str | None) -> Turn:
        turn = talk_begin(
            whatsapp_chat=body["whatsapp_chat"],
            content=body["content"],
            rules=build_intake_rules(),
            now=timezone.now(),
            ref=ref,
            speaker=access.speaker_of(self.caller),
        )
        if not self.caller.may_see(turn.chat_id):
            # The number changed hands at this very moment.
            raise NotFound(f"There is no chat {body['whatsapp_chat']}.")
        return turn


# Stream an answer as server-sent events.

logger = logging.getLogger(__name__)

# Proxies close silent connections, many after a minute.
HEARTBEAT_SECONDS = 10.0
HEARTBEAT = ": still at work\n\n"
# A piece has up to eight words, with the white space after them.
# A text that ends in white space ends in a piece of it: without that, each place of it is tried.
PIECE = re.compile(r"\s*(?:\S+\s*){1,8}|\s+")


def answer_events(*, turn: Turn, dependencies: Dependencies, patience: timedelta) -> Iterator[str]:
    """Yield ``accepted``, then the reply in pieces (``delta``), then ``done`` with the answer.

    ``accepted`` comes at once. Where there is no answer, ``error`` comes instead of ``delta`` and
    ``done``, in the shape of all errors. A client that closes the connection doesn't stop the turn.
    """
    yield _event("accepted", accepted_of(turn))
    worker = ConnectionClosingExecutor(max_workers=1, thread_name_prefix="answer-events")
    try:
        future = worker.submit(talk_finish, turn=turn, dependencies=dependencies, patience=patience)
        while True:
            try:
                talk = future.result(timeout=HEARTBEAT_SECONDS)
                break
            except NotYet:
                yield HEARTBEAT
    except NoAnswerError as error:
        yield _error("client_error", "not_answered", str(error))
        return
    except Exception:
        logger.exception("A streamed answer failed.")
        yield _error("server_error", "error", "The answer could not be made. Try again.")
        return
    finally:
        worker.shutdown(wait=False)
    for piece in pieces(talk.reply):
        yield _event("delta", {"text": piece})
    yield _event("done", answer_of(talk))


def pieces(reply: str) -> Iterator[str]:
    """Yield the reply in pieces of a few words, which together are exactly the reply."""
    end = 0
    for found in PIECE.finditer(reply):
        yield found[0]
        end = found.end()
    if reply[end:]:
        yield reply[end:]


def _event(name: str, data: Any) -> str:
    text = JSONRenderer().render(data).decode()
    return f"event: {name}\ndata: {text}\n\n"


def _error(kind: str, code: str, detail: str) -> str:
    return _event(
        "error", {"type": kind, "errors": [{"code": code, "detail": detail, "attr": None}]}
    )


# The scopes that a message needs, by what its answer shows and does.


# Every message is stored, so all of them need the scope write.
_OF_COMMANDS = {
    "remember": (WRITE,),
    "reset": (WRITE,),
    "help": (WRITE,),
    "memories": (READ, WRITE),
    "search": (READ, WRITE),
    "export": (READ, WRITE),
    # Where several memories match, the answer lists them.
    "forget": (READ, WRITE, FORGET),
}
_OF_MESSAGES = (READ, WRITE)


def required_scopes(content: str, *, in_group: bool) -> tuple[tuple[str, ...], str]:
    """Return the scopes that saying this needs, and a sentence with the reason.

    ``in_group``: see ``command_of``. A command that is not listed here needs them all.
    """
    command = command_of(content, in_group=in_group)
    if command is None:
        return _OF_MESSAGES, "the answer to a message may hold memories and earlier messages."
    needed = _OF_COMMANDS.get(command.name, (READ, WRITE, FORGET))
    return needed, f"/{command.name} needs {_listed(needed)}."


def _listed(names: tuple[str, ...]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
