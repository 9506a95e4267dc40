"""LOG_FORMAT=json: one object a line, with the ids of request, chat, turn and job."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from memoryproject.foundation.integrations.llm.base import ChatModelError
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.foundation.process.logfile import (
    ContentlessJsonFormatter,
    ContextFilter,
    log_context,
)
from memoryproject.settings import LOGGING
from sessions_app.models import Turn
from tests.world import CLIENT, World

SECRET_ROW = "ERROR\nDETAIL:  Key (content)=(the code of the safe is 1234) already exists."


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """The log as JSON, as the settings format it."""
    made = {name: value for name, value in LOGGING["formatters"]["json"].items() if name != "()"}
    handler = logging.StreamHandler(io.StringIO())
    handler.setFormatter(ContentlessJsonFormatter(**made))
    handler.addFilter(ContextFilter())
    root = logging.getLogger()
    root.addHandler(handler)
    yield handler.stream
    root.removeHandler(handler)


def read(lines: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.getvalue().splitlines()]


def test_a_line_is_one_object(lines: io.StringIO) -> None:
    with log_context(request="abc", chat=None):
        logging.getLogger("a.b").warning("Two\nlines and %s", "שלום")
    (line,) = read(lines)
    assert line.pop("time")
    assert line.pop("program") == "web"
    assert line == {
        "level": "WARNING",
        "logger": "a.b",
        "message": "Two\nlines and שלום",
        "request": "abc",
    }


def test_what_the_database_quotes_is_left_out(lines: io.StringIO) -> None:
    try:
        raise ValueError(SECRET_ROW)
    except ValueError:
        logging.getLogger("a").exception("It failed: %s", SECRET_ROW)
    (line,) = read(lines)
    assert "1234" not in json.dumps(line)
    assert "ValueError" in line["exc_info"]


def test_personal_data_is_redacted_and_ids_stay(lines: io.StringIO) -> None:
    with log_context(request="447700900123", chat="3f2b8c1e-0000-4000-8000-000000000000"):
        logging.getLogger("a").error("It refused %s.", "+44 7700 900123")
    (line,) = read(lines)
    assert line["message"] == "It refused [phone]."
    assert (line["request"], line["chat"][:8]) == ("447700900123", "3f2b8c1e")


def test_the_lines_of_an_answer_name_its_chat_and_turn(world: World, lines: io.StringIO) -> None:
    down = ScriptedChatModel([ChatModelError("the model is down")])
    world.use(chat_model=down)
    world.say(CLIENT, "Hello")
    turn = Turn.objects.get(message__isnull=False)
    (line,) = [line for line in read(lines) if line["level"] == "ERROR"]
    assert (line["chat"], line["turn"]) == (str(turn.chat_id), str(turn.turn_id))


@pytest.mark.parametrize(
    ("sent", "kept"), [("from-the-proxy.1", True), ("short", False), ("no spaces here", False)]
)
def test_a_request_has_an_id(client: Client, sent: str, kept: bool) -> None:
    answer = client.get("/healthz", headers={"x-request-id": sent})
    assert (answer["X-Request-ID"] == sent) is kept
    assert len(answer["X-Request-ID"]) >= 8
