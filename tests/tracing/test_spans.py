"""Where spans begin and end, and what they hold, whatever they are sent with."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from memories_app.store.change import memory_patch
from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.process.logfile import log_context
from memoryproject.foundation.process.traced_work import query_shown
from memoryproject.foundation.process.tracing import (
    NO_SPAN,
    Kind,
    call_span,
    current_span,
    note_status,
    span,
    use_tracer,
)
from tests.tables import table
from tests.tracing.recorder import Recorder
from tests.world import CLIENT, World, remember

PROJECT = Path(__file__).resolve().parents[2]
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    made = Recorder()
    use_tracer(made)
    yield made
    use_tracer(None)


def test_nothing_is_traced_without_a_tracer() -> None:
    with span("turn") as traced, call_span("GET", "http://127.0.0.1/") as call:
        assert traced is call is NO_SPAN
        assert current_span() is None


def test_a_span_belongs_to_the_one_around_it_and_has_the_ids_of_the_log(recorder: Recorder) -> None:
    with log_context(chat="c1"), span("outer"), log_context(turn="t1"), span("inner"):
        pass
    with span("later"):
        pass

    outer, inner, later = recorder.spans
    assert (outer.parent, inner.parent, later.parent) == (None, outer, None)
    assert outer.attributes == {"memory.chat": "c1"}
    assert inner.attributes == {"memory.chat": "c1", "memory.turn": "t1"}
    assert later.attributes == {}
    assert all(each.ended for each in recorder.spans)


def test_of_an_error_only_its_class_is_kept(recorder: Recorder) -> None:
    with pytest.raises(ValueError, match="the code"), span("outer"), span("inner"):
        raise ValueError("the code of the safe is 1234")

    assert [each.failed for each in recorder.spans] == [["ValueError"], ["ValueError"]]
    assert "1234" not in repr(recorder.spans)
    assert current_span() is None


def test_a_call_is_traced_as_a_part_only_and_without_its_path(recorder: Recorder) -> None:
    url = "https://user:word@api.example:8443/waInstance1/sendMessage/token?key=word"
    with call_span("POST", url):
        pass
    assert recorder.spans == []
    with span("send"), call_span("POST", url) as call:
        note_status(call, 503)

    _, sent = recorder.spans
    assert (sent.name, sent.kind, sent.failed) == ("POST", Kind.CLIENT, ["503"])
    assert sent.attributes == {
        "http.request.method": "POST",
        "server.address": "api.example",
        "server.port": 8443,
        "http.response.status_code": 503,
    }


@pytest.mark.parametrize("url", ["http://[::1", "http://host:port/", "", "no address"])
def test_a_broken_address_is_no_error_of_the_trace(recorder: Recorder, url: str) -> None:
    with span("send"), call_span("GET", url):
        pass
    assert recorder.spans[1].attributes == {"http.request.method": "GET"}


@table(
    ("sql", "name", "text"),
    [
        (
            'SELECT "a"."id" FROM "chats" WHERE "a"."id" = %s LIMIT 21',
            "SELECT chats",
            'SELECT "a"."id" FROM "chats" WHERE "a"."id" = %s LIMIT ?',
        ),
        ('INSERT INTO "chats" VALUES (%s)', "INSERT chats", 'INSERT INTO "chats" VALUES (%s)'),
        ("SELECT 'it''s secret', 15550100123", "SELECT", "SELECT ??, ?"),
        (r"SELECT E'a \' secret'", "SELECT", None),
        (r"SELECT E'a \' secret\''", "SELECT", None),
        ("SELECT $$secret$$", "SELECT", None),
        ("SELECT 'not closed secret", "SELECT", None),
        ("secret", "_OTHER", None),
        (b"SELECT 'secret'", "_OTHER", None),
    ],
)
def test_a_query_is_shown_without_values(sql: object, name: str, text: str | None) -> None:
    shown_name, attributes = query_shown(sql)
    assert shown_name == name
    assert attributes.get("db.query.text") == text
    assert "secret" not in repr(attributes)


def test_a_long_query_is_cut() -> None:
    _, attributes = query_shown("SELECT " + "%s, " * 100_000)
    assert len(str(attributes["db.query.text"])) == 2_000


@pytest.mark.parametrize(
    ("path", "method", "name", "route"),
    [
        ("/api/v1/chats/15550100123@c.us/", "GET", "GET /api/", "/api/"),
        ("/marzipan/", "GET", "GET", None),
        ("/mcp/", "MARZIPAN", "_OTHER /mcp/?", "/mcp/?"),
    ],
)
@pytest.mark.django_db
def test_a_request_is_named_by_its_route(
    client: Client, recorder: Recorder, path: str, method: str, name: str, route: str | None
) -> None:
    answer = client.generic(method, path)

    (request,) = recorder.spans
    assert request.kind is Kind.SERVER
    assert request.name.startswith(name)
    assert str(request.attributes.get("http.route", "")).startswith(route or "")
    assert request.attributes["http.response.status_code"] == answer.status_code
    assert request.attributes["memory.request"] == answer["X-Request-ID"]
    assert not {"15550100123", "marzipan", "MARZIPAN"} & set(repr(request).split("/"))


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
@pytest.mark.django_db
def test_what_is_asked_for_all_the_time_is_not_traced(
    client: Client, recorder: Recorder, path: str
) -> None:
    client.get(path)
    assert recorder.spans == []


@pytest.mark.parametrize(("proxies", "parent"), [(0, None), (1, TRACEPARENT)])
@pytest.mark.django_db
def test_a_callers_trace_is_continued_only_behind_a_proxy(
    client: Client, recorder: Recorder, settings: Any, proxies: int, parent: str | None
) -> None:
    settings.TRUSTED_PROXIES = proxies
    client.get("/", headers={"traceparent": TRACEPARENT})
    assert recorder.spans[0].parent == parent


@pytest.mark.django_db
def test_queries_are_not_traced_while_traces_are_off() -> None:
    assert connection.execute_wrappers == []


@pytest.mark.django_db
def test_operations_on_memories_have_the_names_of_the_conventions(
    world: World, recorder: Recorder
) -> None:
    """And numbers, but no words."""
    memory = remember(world, "The code of the safe is 4711", visibility="public")
    memory_patch(
        memory_id=memory.pk,
        changes={"content": "The code of the safe is 4712"},
        actor=SYSTEM,
        embedder=world.dependencies.embedder,
    )
    world.say(CLIENT, "What is the code of the safe?")
    world.forget("memory", memory.pk)

    named: dict[str, int] = {}
    for each in recorder.spans:
        if operation := each.attributes.get("gen_ai.operation.name"):
            assert (each.name, each.kind) == (operation, Kind.INTERNAL)
            assert each.attributes["gen_ai.provider.name"] == "whatsapp-memory"
            # Of the searches, the first: the last ones show that nothing is found any more.
            named.setdefault(each.name, int(str(each.attributes["gen_ai.memory.record.count"])))
    assert named == {"create_memory": 1, "update_memory": 1, "search_memory": 1, "delete_memory": 1}
    assert not {"safe", "4711", "4712"} & set(re.findall(r"\w+", repr(recorder.spans)))


@pytest.mark.processes
def test_without_the_packages_the_start_says_how_to_install_them(tmp_path: Path) -> None:
    """In a Python of its own, in which they can't be found."""
    ended = _check(tmp_path, hidden="opentelemetry.sdk")
    assert ended.returncode != 0
    assert "OTEL_EXPORTER_OTLP_ENDPOINT is set, but the packages" in ended.stderr
    assert "pip install --require-hashes --no-deps -r requirements-tracing.txt" in ended.stderr


@pytest.mark.processes
def test_where_traces_are_disabled_no_package_is_needed(tmp_path: Path) -> None:
    ended = _check(tmp_path, hidden="opentelemetry", OTEL_SDK_DISABLED="true")
    assert ended.returncode == 0, ended.stderr


def _check(folder: Path, *, hidden: str, **environment: str) -> subprocess.CompletedProcess[str]:
    code = (
        f"import sys; sys.modules[{hidden!r}] = None\n"
        "from django.core.management import execute_from_command_line\n"
        "execute_from_command_line(['manage.py', 'check'])"
    )
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=PROJECT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "memoryproject.settings",
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
            "DATA_DIR": str(folder / "data"),
            "LOG_DIR": str(folder / "logs"),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
