"""Traces of a real installation, as a collector on this machine gets them."""

from __future__ import annotations

import re
import sys
import uuid
from collections.abc import Iterator
from typing import get_args

import pytest

from memoryproject.foundation.integrations.loopback.httpd import Answer
from memoryproject.foundation.process.tracing import Attribute
from memoryproject.programs import GUNICORN_CONF
from tests.loopback.httpd import Fault
from tests.loopback.openai_behaviours import fails
from tests.processes import plain_http
from tests.processes.conftest import everything
from tests.processes.posting import APP_SECRET, NUMBER_ID, WEBHOOK_TOKEN, new_phone
from tests.processes.stage import ACCESS_TOKEN, GREEN_TOKEN, Stage, stage
from tests.processes.waiting import wait_until
from tests.tracing.needed import need_tracing_packages

need_tracing_packages()

from tests.tracing.collector import Collector, Received  # noqa: E402 needs the packages

pytestmark = pytest.mark.processes

KEY = "key-of-the-collector"
TOKEN = "token-in-the-path"
WEBHOOK = "POST /webhooks/whatsapp/cloud/"
IDS = {f"memory.{name}" for name in ("request", "chat", "turn", "job")}
SECRETS = (ACCESS_TOKEN, GREEN_TOKEN, APP_SECRET, WEBHOOK_TOKEN, NUMBER_ID, KEY)
# Longer than any test: spans that arrive were sent because there were many, or at the end.
NEVER = str(60 * 60 * 1000)


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with Collector() as started:
        yield started


@pytest.fixture(scope="module")
def traced(collector: Collector) -> Iterator[Stage]:
    with stage(
        run=everything,
        OTEL_EXPORTER_OTLP_ENDPOINT=f"{collector.url}/{TOKEN}",
        OTEL_EXPORTER_OTLP_HEADERS=f"x-key={KEY}",
        OTEL_BSP_SCHEDULE_DELAY="100",
    ) as started:
        yield started


def wait_for(collector: Collector, name: str, **ids: object) -> Received:
    """The one span with this name and these ids, once it has arrived."""
    (found,) = wait_until(lambda: collector.spans(name, **ids), f"the span {name}")
    return found


def wait_for_turn(collector: Collector, traced: Stage, phone: str) -> Received:
    """The span of the turn of a phone's only message. It ends after all of its parts."""
    turn, *_apology = traced.database.turns(f"{phone}@c.us")
    return wait_for(collector, "turn", turn=turn["turn_id"])


def test_one_webhook_is_one_trace_to_the_send(traced: Stage, collector: Collector) -> None:
    phone = new_phone()
    traced.post.say(phone, "How are you?")
    traced.wait_for_answers(phone, 1)
    answered = wait_for_turn(collector, traced, phone)
    (turn,) = traced.database.turns(f"{phone}@c.us")
    parts = {span.name: span for span in collector.spans(turn=turn["turn_id"])}

    assert set(parts) == {"turn", "recall", "search_memory", "prompt", "model", "send"}
    for span in parts.values():
        assert span.attributes["memory.chat"] == str(turn["chat_id"])
        assert span.trace == answered.trace
    (sent,) = [
        span
        for span in collector.spans("POST")
        if span.parent == parts["send"].id and span.attributes["http.response.status_code"] == 200
    ]

    def path_from_webhook() -> list[Received]:
        """The web server sends its own spans, perhaps later."""
        found = collector.path_to(sent)
        return found if found[0].name == WEBHOOK else []

    path = wait_until(path_from_webhook, "the span of the webhook")
    assert [span.name for span in path] == [WEBHOOK, "turn", "send", "POST"]
    assert [span.kind for span in path] == ["SERVER", "CONSUMER", "INTERNAL", "CLIENT"]
    assert not any(span.has_failed for span in path)
    assert sent.attributes["server.address"] == "127.0.0.1"
    assert sent.attributes["server.port"] == int(traced.graph.url.rpartition(":")[2])
    (chat,) = [each for each in collector.spans("chat gpt-4o-mini") if each.trace == answered.trace]
    assert (chat.kind, chat.parent) == ("CLIENT", parts["model"].id)
    assert chat.attributes["gen_ai.operation.name"] == "chat"
    assert chat.attributes["gen_ai.response.finish_reasons"] == "stop"
    assert int(chat.attributes["gen_ai.usage.input_tokens"]) > 0
    assert int(chat.attributes["gen_ai.usage.output_tokens"]) > 0
    searched = parts["search_memory"].attributes
    assert searched["gen_ai.operation.name"] == "search_memory"
    assert searched["gen_ai.memory.record.count"] == 0
    request = path[0]
    assert request.attributes["http.route"] == "/webhooks/whatsapp/cloud/"
    assert re.fullmatch("[0-9a-f]{32}", str(request.attributes["memory.request"]))
    # Two processes sent it, each by its own thread.
    assert request.process["service.instance.id"] != answered.process["service.instance.id"]
    assert request.process["service.name"] == answered.process["service.name"] == "whatsapp-memory"


def test_the_processes_that_fork_have_no_thread(traced: Stage, collector: Collector) -> None:
    phone = new_phone()
    traced.post.say(phone, "Is there a thread?")
    traced.wait_for_answers(phone, 1)
    wait_for_turn(collector, traced, phone)

    forking = [traced.installation.programs[name] for name in ("web", "qcluster")]
    assert [process.num_threads() for process in forking] == [1, 1]


def test_a_request_has_the_id_of_the_proxy(traced: Stage, collector: Collector) -> None:
    request_id = f"from-the-proxy.{uuid.uuid4().hex}"
    headers = {
        "X-Request-ID": request_id,
        # Anybody could send it: no proxy is trusted.
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    }
    path = "/api/v1/chats/15550100777@c.us/?search=marzipan"
    answer = plain_http.get(f"{traced.installation.url}{path}", headers=headers)

    assert answer.headers["X-Request-ID"] == request_id
    (span,) = wait_until(
        lambda: [each for each in collector.spans() if _id_of(each) == request_id], "the request"
    )
    assert span.attributes["http.response.status_code"] == answer.status_code
    assert span.parent == ""
    assert span.trace != "0af7651916cd43dd8448eb211c80319c"
    assert_no_content(collector, "15550100777", "marzipan")


def _id_of(span: Received) -> str:
    return str(span.attributes.get("memory.request"))


def test_neither_words_nor_secrets_are_sent(traced: Stage, collector: Collector) -> None:
    """In an answer, in a command, and where the model, the provider and a job fail."""
    phones = [new_phone() for _ in range(4)]
    plain, failing, refused, command = phones
    traced.post.say(plain, "My cat is called marzipan 4711001")
    traced.wait_for_answers(plain, 1)
    traced.post.say(command, "/remember the code of the safe is nougat 4711002")
    traced.wait_for_answers(command, 1)
    traced.openai.script_chat(fails(400, "You said: praline 4711003"))
    traced.post.say(failing, "praline 4711003")
    traced.wait_for_answers(failing, 1)
    traced.graph.fail_next(*[Fault(answer=Answer(400, {"error": {"message": "truffle"}}))] * 2)
    traced.post.say(refused, "truffle 4711004")
    traced.wait_until_over(refused)
    traced.installation.manage(
        "shell",
        "-c",
        "from memoryproject.foundation.process.jobs import enqueue\n"
        "enqueue('builtins.int', 'brittle 4711005', task_name='fudge 4711006')",
    )

    for phone in (plain, failing, refused):
        wait_for_turn(collector, traced, phone)
    job = wait_until(lambda: collector.spans("job int"), "the job that fails")[0]
    assert job.has_failed
    assert job.attributes["error.type"] == "_OTHER"
    kinds = {span.attributes["error.type"] for span in collector.spans() if span.has_failed}
    assert {"400", "ChatModelError", "_OTHER"} <= kinds
    words = ("marzipan", "nougat", "praline", "truffle", "brittle", "fudge")
    # Whole: shorter numbers are in some random id by chance.
    numbers = [str(4711001 + place) for place in range(len(words))]
    assert_no_content(collector, *words, *numbers, *phones)


def test_spans_hold_only_the_known_attributes(traced: Stage, collector: Collector) -> None:
    phone = new_phone()
    traced.post.say(phone, "What do you send?")
    traced.wait_for_answers(phone, 1)
    wait_for_turn(collector, traced, phone)

    for span in collector.spans():
        assert span.attributes.keys() <= {*get_args(Attribute), *IDS}, span
        assert span.free_texts == (), span

    def queries() -> list[str]:
        return [str(span.attributes.get("db.query.text", "")) for span in collector.spans()]

    stores = 'INSERT INTO "sessions_app_message"'
    wait_until(lambda: any(stores in query for query in queries()), "what the web server stores")
    assert not [query for query in queries() if "'" in query]
    assert {request.headers["x-key"] for request in collector.requests} == {KEY}


def test_the_spans_of_mcp_are_not_sent(traced: Stage, collector: Collector) -> None:
    """Its package makes spans of its own, with names that callers choose and with texts of errors.

    Those go to OpenTelemetry's global tracer, which is not ours.
    """
    token = traced.installation.manage("create_api_token", f"mcp-{uuid.uuid4().hex}").strip()
    call = {"name": "marshmallow", "arguments": {"text": "marshmallow"}}
    answer = plain_http.post(
        f"{traced.installation.url}/mcp/",
        json={"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call},
        headers={
            "Authorization": f"Bearer {token}",
            "Accept": "application/json, text/event-stream",
        },
        timeout=60,
    )

    assert answer.status_code == 200
    request_id = answer.headers["X-Request-ID"]
    wait_until(lambda: collector.spans("POST /mcp/?", request=request_id), "the request")
    assert_no_content(collector, "marshmallow", token)


def assert_no_content(collector: Collector, *words: str) -> None:
    for word in (*words, *SECRETS):
        assert word.encode() not in collector.bodies, word


def test_a_server_that_stops_sends_the_rest(traced: Stage, collector: Collector) -> None:
    """Its programs run with a delay after which nothing would be sent before their end."""
    installation = traced.installation
    commands = {
        "web": ["-m", "gunicorn", "--config", str(GUNICORN_CONF)],
        "answer": ["manage.py", "answer"],
    }
    for name, command in commands.items():
        installation.stop_program(name)
        started = installation.start_other(sys.executable, *command, OTEL_BSP_SCHEDULE_DELAY=NEVER)
        installation.programs[name] = started
    installation.wait_until_ready()
    phone = new_phone()
    traced.post.say(phone, "/help")
    traced.wait_for_answers(phone, 1)
    for name in commands:
        installation.stop_program(name)
    path = collector.path_to(wait_for_turn(collector, traced, phone))
    assert [span.name for span in path] == [WEBHOOK, "turn"]
    for name in commands:
        installation.start_program(name)
    installation.wait_until_ready()


def test_a_collector_that_is_down_delays_no_answer(traced: Stage, collector: Collector) -> None:
    """The last one: the collector doesn't come back."""
    collector.stop()
    phone = new_phone()
    traced.post.say(phone, "Are you there?")
    assert traced.wait_for_answers(phone, 1) == ["answer to: Are you there?"]
    wait_until(lambda: "opentelemetry" in traced.installation.output(), "it is logged")
    output = traced.installation.output()
    assert "ConnectionError" in output
    assert TOKEN not in output
