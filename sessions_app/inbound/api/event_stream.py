"""Stream an answer as server-sent events."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from concurrent.futures import TimeoutError as NotYet
from datetime import timedelta
from typing import Any

from rest_framework.renderers import JSONRenderer

from memoryproject.foundation.process.connection_closing import ConnectionClosingExecutor
from sessions_app.inbound.api.chat_serializers import accepted_of, answer_of
from sessions_app.inbound.synchronous_chat import NoAnswerError, talk_finish
from sessions_app.models import Turn
from sessions_app.turns.facade import Dependencies

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
