"""The front door: hundreds of slow clients, slow models and restarts, and webhooks go on."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from memoryproject.foundation.integrations.loopback.providers import body_bytes, signed_headers
from memoryproject.foundation.process.narrowing import present
from tests.processes import plain_http
from tests.processes.front_door import EVERYBODY, FrontDoor
from tests.processes.installation import Installation, family, kill
from tests.processes.posting import APP_SECRET, cloud_text, new_phone
from tests.processes.sockets import HALF_A_HEADER, begun_body, begun_chunks, held_sockets
from tests.processes.stage import Stage, stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

CLOUD = "/webhooks/whatsapp/cloud/"
SIGNED = "X-Hub-Signature-256: sha256=" + "0" * 64
HALF_A_CHUNK = begun_chunks(CLOUD, SIGNED)
FORM = "Content-Type: application/x-www-form-urlencoded"
# Without it, the check of the form's token refuses the form before it reads it.
COOKIE = "Cookie: csrftoken=" + "a" * 32
ASKING = 40
PEOPLE = 2
PAUSE_SECONDS = 0.02


# Caddy is the one proxy before the web servers.
BEHIND: dict[str, Any] = {"TRUSTED_PROXIES": "1", "HTTPS_ONLY": "false"}


def behind_the_front_door(installation: Installation) -> None:
    installation.prepare()
    FrontDoor(installation).start()


@pytest.fixture(scope="module")
def front() -> Iterator[Stage]:
    times: dict[str, Any] = {
        "MEMORY_HEADER_TIME": "5s",
        "MEMORY_BODY_TIME": "10s",
        # A loaded machine may need longer than 15 seconds to start a web server.
        "MEMORY_WEBHOOKS_WAIT": "100s",
    }
    with stage(run=behind_the_front_door, **BEHIND, **times) as started:
        yield started


@contextmanager
def talking(front: Stage) -> Iterator[None]:
    """People write again and again until the block ends; each of their texts is taken."""
    stopping = Event()

    def talk() -> int:
        said = 0
        while not stopping.wait(PAUSE_SECONDS):
            front.post.say(new_phone(), "hello")
            said += 1
        return said

    with ThreadPoolExecutor(PEOPLE) as pool:
        talkers = [pool.submit(talk) for _ in range(PEOPLE)]
        try:
            yield
        finally:
            stopping.set()
        assert all(talker.result() for talker in talkers)


def assert_everything_is_served(front: Stage) -> None:
    """Health, a webhook of each provider, staff's pages and the API."""
    assert front.installation.answer("/healthz") == 200
    front.post.say(new_phone(), "hello")
    assert front.installation.answer("/admin/login/") == 200
    assert front.installation.answer("/api/v1/sessions/") == 401


LARGE_FILE = "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js"
SLOW_CLIENTS = (
    HALF_A_HEADER,
    b"",
    begun_body(CLOUD),
    begun_body(CLOUD, SIGNED),
    HALF_A_CHUNK,
    begun_body("/api/v1/chat/"),
    begun_chunks("/api/v1/chat/"),
    begun_body("/api/v1/chat/", length=5_000_000),
    begun_body("/admin/login/", FORM),
    begun_body("/admin/login/", FORM, COOKIE, length=5_000_000),
    # It reads slowly.
    f"GET {LARGE_FILE} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(),
)


def test_slow_clients_hold_nobody_else_up(front: Stage) -> None:
    """Of each kind more than the web servers have threads, all at once."""
    with ExitStack() as stack:
        for begun in SLOW_CLIENTS:
            stack.enter_context(held_sockets(front.installation.url, begun, 50))
            assert_everything_is_served(front)


def test_files_and_pages_are_compressed_pages_to_a_random_length(front: Stage) -> None:
    base = front.installation.url
    asking = {"Accept-Encoding": "gzip"}
    script = plain_http.get(f"{base}/static/unfold/js/app.js", headers=asking)
    assert script.headers["Content-Encoding"] == "gzip"
    assert script.text == plain_http.get(script.url, headers={"Accept-Encoding": "identity"}).text
    # So that nobody guesses a secret by how well a page is compressed.
    pages = [plain_http.get(f"{base}/admin/login/", headers=asking) for _ in range(8)]
    assert {page.headers["Content-Encoding"] for page in pages} == {"gzip"}
    assert len({page.headers["Content-Length"] for page in pages}) > 1


def test_a_client_that_never_ends_its_request_is_sent_away(front: Stage) -> None:
    """A header, a webhook and a form, all at once: each may take seconds."""
    requests = [HALF_A_HEADER, begun_body(CLOUD, SIGNED), begun_body("/admin/login/")]
    with ExitStack() as stack:
        held = [held_sockets(front.installation.url, begun, 1) for begun in requests]
        for (client,) in [stack.enter_context(each) for each in held]:
            client.settimeout(60)
            # Either a response that says so, or just the end.
            assert client.recv(1024)[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 499", b"")


def test_webhooks_are_answered_while_forty_calls_wait_for_a_slow_model(front: Stage) -> None:
    secret = front.installation.manage("create_api_token", "slow").strip()
    hold = front.openai.hold_chat("slowly")

    def ask(number: int) -> httpx.Response:
        return plain_http.post(
            f"{front.installation.url}/api/v1/chat/",
            json={"whatsapp_chat": f"{new_phone()}@c.us", "content": f"slowly {number}"},
            headers={"Authorization": f"Token {secret}"},
            timeout=120,
        )

    with ThreadPoolExecutor(ASKING) as pool:
        calls = [pool.submit(ask, number) for number in range(ASKING)]
        try:
            # Those that found a place reach the model, the others are sent away at once.
            def refused() -> list[Any]:
                return [call for call in calls if call.done()]

            wait_until(lambda: hold.reached + len(refused()) == ASKING, "all have asked")
            assert 0 < hold.reached <= 28
            for _ in range(3):
                assert_everything_is_served(front)
        finally:
            hold.release()
        answers = [call.result() for call in calls]
    assert [answer.status_code for answer in answers].count(200) == hold.reached
    for answer in answers:
        if answer.status_code != 200:
            assert answer.status_code == 503
            assert answer.json()["errors"][0]["code"] == "overloaded"
            assert int(answer.headers["Retry-After"]) >= 1


def test_an_unsigned_flood_reaches_no_database(front: Stage) -> None:
    """PostgreSQL counts the transactions: there is none, even with a cookie that looks real."""
    # The database starts with the first request that needs it.
    front.post.say(new_phone(), "hello")
    before = transactions(front)
    with httpx.Client(trust_env=False, verify=False, timeout=60) as client:
        for _ in range(200):
            answer = client.post(
                front.installation.url + CLOUD,
                content=b"x" * 10_000,
                headers={"Cookie": "sessionid=invented"},
            )
            assert answer.status_code == 401
    assert transactions(front) - before < 100


def transactions(front: Stage) -> int:
    (row,) = front.database.rows(
        "SELECT pg_stat_clear_snapshot(),"
        " (SELECT xact_commit + xact_rollback FROM pg_stat_database"
        " WHERE datname = current_database()) AS count"
    )
    return int(row["count"])


def test_a_larger_body_is_refused_in_the_usual_shape(front: Stage) -> None:
    for size in (3 * 1024 * 1024 + 1, 6 * 1024 * 1024):
        answer = front.post.raw("cloud", b"x" * size, {"X-Hub-Signature-256": SIGNED[21:]})
        assert answer.status_code == 413
        assert answer.json()["type"] == "client_error"
    signed = {"X-Hub-Signature-256": SIGNED[21:]}
    assert front.post.raw("cloud", blocks(6), signed).status_code == 413


@pytest.mark.parametrize("size", [9_000, 20_000, 66_000, 650_000])
@pytest.mark.parametrize("path", ["/api/v1/sessions/", "/healthz", "/admin/"])
def test_larger_headers_are_refused_in_the_usual_shape(front: Stage, path: str, size: int) -> None:
    url = front.installation.url + path
    answer = plain_http.get(url, headers={"X-Large": "x" * size}, timeout=60)
    assert answer.status_code == 431
    assert answer.json()["errors"][0]["code"] == "headers_too_large"


def test_a_longer_address_is_refused_in_the_usual_shape(front: Stage) -> None:
    for size in (9_000, 60_000):
        url = f"{front.installation.url}/api/v1/sessions/?since={'x' * size}"
        answer = plain_http.get(url, timeout=60)
        assert answer.status_code == 414
        assert answer.json()["errors"][0]["code"] == "address_too_long"


def blocks(megabytes: int) -> Iterator[bytes]:
    """A body without a length."""
    for _ in range(megabytes):
        yield b"x" * 1024 * 1024


def test_large_bodies_of_strangers_change_no_other_body(front: Stage) -> None:
    """Caddy gave two requests one buffer: signed webhooks had parts of a stranger's body.

    With the real web servers; test_front_door_bodies.py looks for each way to such a buffer.
    """
    installation = front.installation
    with talking(front), ExitStack() as stack:
        for begun in (begun_body(CLOUD, SIGNED), begun_body("/api/v1/chat/"), HALF_A_CHUNK):
            stack.enter_context(held_sockets(installation.url, begun, 50))
        for _ in range(2):
            for path in (CLOUD, "/api/v1/memories/", "/admin/login/"):
                for body in (b"x" * 6_000_000, blocks(6)):
                    try:
                        answer = plain_http.post(installation.url + path, content=body, timeout=60)
                    except (httpx.ReadError, httpx.WriteError):
                        # The connection ended at the refusal, before the client had read it.
                        continue
                    # 503: the refusal came while the body was still being passed on.
                    assert answer.status_code in (302, 401, 403, 413, 503)


def test_a_body_without_a_length_is_read(front: Stage) -> None:
    """Some clients, such as those of .NET, send JSON in chunks."""
    payload = body_bytes(cloud_text(new_phone(), "in chunks"))
    headers = signed_headers(APP_SECRET, payload)
    assert front.post.raw("cloud", iter([payload[:10], payload[10:]]), headers).status_code == 200
    secret = front.installation.manage("create_api_token", "chunks", "--scope", "write")
    answer = plain_http.post(
        f"{front.installation.url}/api/v1/memories/",
        content=iter([b'{"content": "We open ', b'at 9", "visibility": "public"}']),
        headers={"Authorization": f"Token {secret.strip()}", "Content-Type": "application/json"},
        timeout=60,
    )
    assert answer.status_code == 201, answer.text


def test_a_webhook_waits_for_a_web_server_that_restarts(front: Stage) -> None:
    """Nothing is refused: the front door holds it until the new one listens."""
    installation = front.installation
    kill(family(installation.programs["webhooks"]))
    installation.programs["webhooks"].wait()
    with ThreadPoolExecutor(1) as pool:
        said = pool.submit(front.post.say, new_phone(), "hello again")
        assert installation.answer("/admin/login/") == 200
        installation.start_program("webhooks")
        assert said.result().startswith("wamid.")


def test_an_upgrade_loses_no_webhook(front: Stage) -> None:
    """A web server that is asked to stop finishes what it has, and the rest waits."""
    installation = front.installation
    with talking(front):
        for name in ("webhooks", "web"):
            installation.programs[name].send_signal(signal.SIGTERM)
            installation.programs[name].wait(timeout=60)
            installation.start_program(name)
            wait_until(lambda: installation.answer("/api/schema/") == 200, "it is back")


def test_without_its_web_server_the_answer_is_still_an_error_of_the_api(front: Stage) -> None:
    installation = front.installation
    kill(family(installation.programs["web"]))
    installation.programs["web"].wait()
    try:
        answer = plain_http.get(f"{installation.url}/api/v1/sessions/", timeout=60)
        assert answer.status_code == 503
        assert answer.headers["Retry-After"] == "5"
        assert answer.json()["errors"][0]["code"] == "unavailable"
        front.post.say(new_phone(), "webhooks go on")
    finally:
        installation.start_program("web")
        wait_until(lambda: installation.answer("/api/schema/") == 200, "it is back")


def fail_to_log_in(front: Stage, **headers: str) -> set[str]:
    """Type a wrong password; return the addresses of all failed logins so far."""
    url = f"{front.installation.url}/admin/login/"
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with httpx.Client(trust_env=False, verify=False, headers=named, timeout=60) as browser:
        browser.get(url)
        typed = {"username": f"nobody-{len(named)}", "password": "wrong"}
        token = browser.cookies["csrftoken"]
        posted = browser.post(
            url, data={**typed, "csrfmiddlewaretoken": token}, headers={"Referer": url}
        )
    assert posted.status_code == 200
    rows = front.database.rows(
        "SELECT DISTINCT ip_address::text AS address FROM axes_accessattempt"
    )
    return {row["address"].partition("/")[0] for row in rows}


def test_nobody_can_invent_an_address(front: Stage) -> None:
    """Without proxies of one's own, X-Forwarded-For and X-Forwarded-Proto count for nothing."""
    assert fail_to_log_in(front) == {"127.0.0.1"}
    invented = {"X_Forwarded_For": "203.0.113.9", "X_Forwarded_Proto": "https"}
    assert fail_to_log_in(front, **invented) == {"127.0.0.1"}


def test_a_proxy_of_ones_own_gives_the_address() -> None:
    with stage(
        run=behind_the_front_door,
        TRUSTED_PROXIES="2",
        HTTPS_ONLY="false",
        MEMORY_OUTER_PROXIES=EVERYBODY,
    ) as started:
        forwarded = {"X_Forwarded_For": "198.51.100.1, 203.0.113.9"}
        assert fail_to_log_in(started, **forwarded) == {"203.0.113.9"}


def test_the_log_has_neither_searches_nor_keys(front: Stage) -> None:
    installation = front.installation
    address = urlsplit(installation.url)
    with socket.create_connection((address.hostname, present(address.port))) as client:
        client.sendall(
            b"POST /webhooks/whatsapp/cloud/?q=secret-search HTTP/1.1\r\nHost: localhost\r\n"
            b"Authorization: secret-token\r\nX-Key: secret-key\r\nContent-Length: 9999999\r\n\r\n"
        )
        client.recv(1024)
    printed = installation.output()
    for secret in ("secret-search", "secret-token", "secret-key", APP_SECRET):
        assert secret not in printed


def test_a_question_for_the_headers_alone_is_no_warning(front: Stage) -> None:
    """Programs that watch a server often ask so, every few seconds."""
    for path in ("/healthz", "/admin/login/"):
        answer = httpx.head(front.installation.url + path, trust_env=False, timeout=60)
        assert (answer.status_code, answer.content) == (200, b"")
    assert "no-body" not in front.installation.output()
