"""Fetching files from the stand-ins of both providers, and what may go wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import httpcore
import httpx
import pytest

from memoryproject.foundation.integrations.loopback.httpd import Answer
from memoryproject.foundation.integrations.loopback.providers import graph_error
from memoryproject.foundation.integrations.network.addresses import AddressRules
from memoryproject.foundation.integrations.whatsapp.base import MediaError, Recipient
from memoryproject.foundation.integrations.whatsapp.cloud.client import CloudProvider
from memoryproject.foundation.integrations.whatsapp.downloading import Source, download
from memoryproject.foundation.integrations.whatsapp.events import Media
from memoryproject.foundation.integrations.whatsapp.green.client import GreenProvider
from tests.loopback.graph import GraphServer
from tests.loopback.green import GreenServer
from tests.loopback.httpd import DrippingAnswer, Fault

CONTENT = b"%PDF-1.7 " + b"x" * 5000
CHAT = Recipient(whatsapp_chat="15550100123@c.us", phone="15550100123")


class Kept:
    """A sink that keeps everything."""

    def __init__(self) -> None:
        self.content = b""

    def write(self, block: bytes) -> None:
        self.content += block


@pytest.fixture
def graph() -> Iterator[GraphServer]:
    with GraphServer(access_token="secret-token") as server:
        yield server


@pytest.fixture
def green() -> Iterator[GreenServer]:
    with GreenServer(token="secret-token") as server:
        yield server


def from_cloud(graph: GraphServer, *, max_bytes: int = 10_000, **media: Any) -> bytes:
    provider = CloudProvider(
        api_url=f"{graph.url}/v24.0",
        phone_number_id=graph.phone_number_id,
        access_token="secret-token",
        timeout=5.0,
    )
    kept = Kept()
    provider.fetch_media(
        media=Media(**media),
        provider_message_id="wamid.1",
        chat=CHAT,
        into=kept,
        max_bytes=max_bytes,
    )
    return kept.content


def from_green(green: GreenServer, *, max_bytes: int = 10_000, **media: Any) -> bytes:
    provider = GreenProvider(
        api_url=green.url, id_instance=green.id_instance, token="secret-token", timeout=5.0
    )
    kept = Kept()
    provider.fetch_media(
        media=Media(**media),
        provider_message_id="MESSAGE1",
        chat=CHAT,
        into=kept,
        max_bytes=max_bytes,
    )
    return kept.content


def error_of(call: Callable[[], object]) -> MediaError:
    with pytest.raises(MediaError) as caught:
        call()
    assert "secret-token" not in str(caught.value)
    assert "http://" not in str(caught.value)
    return caught.value


def test_a_file_of_the_cloud_api(graph: GraphServer) -> None:
    file_id = graph.add_file(CONTENT)
    assert from_cloud(graph, media_id=file_id) == CONTENT
    paths = [request.path for request in graph.requests]
    assert paths == [f"/v24.0/{file_id}", f"/files/{file_id}"]
    tokens = {request.headers["authorization"] for request in graph.requests}
    assert tokens == {"Bearer secret-token"}


def test_a_file_of_green_api(green: GreenServer) -> None:
    file_id = green.add_file(CONTENT)
    assert from_green(green, url=green.file_url(file_id)) == CONTENT


def test_green_api_is_asked_for_a_new_address_where_the_old_one_is_over(green: GreenServer) -> None:
    file_id = green.add_file(CONTENT)
    green.files_of["MESSAGE1"] = file_id
    assert from_green(green, url=green.file_url("0")) == CONTENT
    asked = next(request for request in green.requests if request.body)
    assert asked.path.endswith("/downloadFile/secret-token")
    assert asked.body == {"chatId": "15550100123@c.us", "idMessage": "MESSAGE1"}


def test_a_file_that_is_gone(graph: GraphServer, green: GreenServer) -> None:
    for call in (
        lambda: from_cloud(graph, media_id="123456"),
        lambda: from_cloud(graph),
        lambda: from_green(green, url=green.file_url("0")),
    ):
        error = error_of(call)
        assert error.permanent
    assert error_of(lambda: from_cloud(graph, media_id="123456")).code == "gone"


def test_too_large_is_refused_before_the_download(graph: GraphServer) -> None:
    """Meta tells the size with the address."""
    file_id = graph.add_file(CONTENT)
    error = error_of(lambda: from_cloud(graph, media_id=file_id, max_bytes=100))
    assert (error.code, error.permanent) == ("too_large", True)
    assert [request.path for request in graph.requests] == [f"/v24.0/{file_id}"]


def test_a_body_without_a_length_is_cut_off_at_the_limit(green: GreenServer) -> None:
    endless = Answer(200, {}, {"Content-Length": ""}, content=b"x" * 20_000)
    green.fail_next_get(Fault(answer=endless))
    error = error_of(lambda: from_green(green, url=green.file_url("1")))
    assert error.code == "too_large" or "could not be fetched" in str(error)


def test_another_file_than_announced_is_not_taken(graph: GraphServer) -> None:
    file_id = graph.add_file(CONTENT)
    other = Answer(200, {}, content=b"%PDF-1.7 another")
    graph.fail_next_get(Fault(), Fault(answer=other))
    error = error_of(lambda: from_cloud(graph, media_id=file_id))
    assert "SHA-256" in str(error)
    assert not error.permanent


@pytest.mark.parametrize(
    ("fault", "permanent"),
    [
        (Fault(no_answer="reset"), False),
        (Fault(answer=Answer(500, {})), False),
        (Fault(answer=Answer(429, {}, {"Retry-After": "7"})), False),
        (Fault(answer=Answer(400, {})), True),
        (Fault(answer=graph_error(190, "expired", status=401)), True),
        (Fault(answer=Answer(200, {}, {"Content-Length": "5000"}, content=b"cut off")), False),
    ],
)
def test_what_passes_is_worth_another_try(
    fault: Fault, permanent: bool, green: GreenServer
) -> None:
    file_id = green.add_file(CONTENT)
    green.fail_next_get(fault)
    error = error_of(lambda: from_green(green, url=green.file_url(file_id)))
    assert error.permanent is permanent
    if fault.answer and "Retry-After" in fault.answer.headers:
        assert error.retry_after == 7.0


def test_a_file_that_only_drips_in_is_given_up(green: GreenServer) -> None:
    green.fail_next_get(Fault(answer=DrippingAnswer(200, {}, content=CONTENT, drip=0.05)))
    source = Source(green.url, timeout=5.0, longest=0.2)
    url = green.file_url("1")
    error = error_of(lambda: download(source, url, into=Kept(), max_bytes=10_000))
    assert "too slowly" in str(error)


def answering(*answers: httpx.Response) -> httpx.MockTransport:
    waiting = list(answers)
    return httpx.MockTransport(lambda request: waiting.pop(0))


def public(api_url: str = "https://graph.facebook.com/v24.0", *answers: httpx.Response) -> Source:
    return Source(api_url, transport=answering(*answers))


class Recorder(httpcore.MockBackend):
    """A network in which everyone serves the same file, and which records who was asked."""

    def __init__(self) -> None:
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
        super().__init__([answer])
        self.asked: list[tuple[str, int]] = []

    def connect_tcp(
        self, host: str, port: int, *options: Any, **named: Any
    ) -> httpcore.NetworkStream:
        self.asked.append((host, port))
        return super().connect_tcp(host, port, *options, **named)


class Resolver:
    """Each look-up gets the next of these answers; the last one stays."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)

    def __call__(self, host: str, port: int) -> list[str]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def in_the_open(network: Recorder, rules: AddressRules | None = None) -> Source:
    return Source("https://api.green-api.com", network=network, rules=rules or AddressRules())


@pytest.mark.parametrize(
    "url",
    [
        "http://192.0.2.1/file",
        "http://8.8.8.8/file",
        "http://files.example/file",
        "https://127.0.0.1/file",
        "https://127.1/file",
        "https://localhost/admin",
        "https://localhost:8000/admin",
        "https://10.0.0.5/file",
        "https://100.64.0.1/file",
        "https://169.254.169.254/latest/meta-data",
        "https://168.63.129.16/file",
        "https://[::1]/file",
        "https://[::127.0.0.1]/file",
        "https://[::ffff:127.0.0.1]/file",
        "https://[::ffff:8.8.8.8]/file",
        "https://[64:ff9b::a9fe:a9fe]/file",
        "https://[2002:7f00:1::]/file",
        "https://0.0.0.0/file",
        "https://224.0.0.1/file",
        "https://[fd00::1]/file",
        "https://2130706433/file",
        "https://0x7f000001/file",
        "https://8.8.8.8:22/file",
        "https://8.8.8.8:80/file",
        "https://8.8.8.8:99999/file",
        "https://8.8.8.8:port/file",
        "https://[8.8.8.8/file",
        "ftp://files.example/file",
        "file:///etc/passwd",
        "",
        "https://",
    ],
)
def test_no_address_behind_our_own_walls_is_asked(url: str) -> None:
    network = Recorder()
    error = error_of(lambda: download(in_the_open(network), url, into=Kept(), max_bytes=100))
    assert (error.code, error.permanent) == ("refused", True)
    assert network.asked == []


def test_a_file_is_fetched_from_the_address_that_was_checked() -> None:
    """Review L2: a name that was public when it was checked led to this machine afterwards."""
    network, kept = Recorder(), Kept()
    rules = AddressRules(resolve=Resolver(["8.8.8.8"], ["127.0.0.1"]))
    source = in_the_open(network, rules)
    download(source, "https://files.example/file", into=kept, max_bytes=100)
    assert (kept.content, network.asked) == (b"hello", [("8.8.8.8", 443)])

    error = error_of(lambda: download(source, "https://files.example/2", into=kept, max_bytes=100))
    assert (error.code, error.permanent) == ("refused", True)
    assert network.asked == [("8.8.8.8", 443)]


def test_one_private_address_of_a_name_is_enough_to_refuse_it() -> None:
    network = Recorder()
    rules = AddressRules(resolve=Resolver(["8.8.8.8", "127.0.0.1"]))
    source = in_the_open(network, rules)
    error = error_of(
        lambda: download(source, "https://files.example/file", into=Kept(), max_bytes=100)
    )
    assert error.code == "refused"
    assert network.asked == []


def test_a_redirect_is_checked_like_an_address_and_takes_no_token_to_another_host() -> None:
    inside = httpx.Response(302, headers={"Location": "http://127.0.0.1:8000/admin"})
    kept = Kept()
    error = error_of(lambda: download(public(answer_url(), inside), FILE, into=kept, max_bytes=100))
    assert error.code == "refused"

    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        if len(asked) == 1:
            return httpx.Response(302, headers={"Location": "https://1.1.1.1/file"})
        return httpx.Response(200, stream=httpx.ByteStream(b"text"))

    source = Source(answer_url(), transport=httpx.MockTransport(answer))
    download(
        source, FILE, into=kept, max_bytes=100, headers={"Authorization": "Bearer secret-token"}
    )
    assert kept.content == b"text"
    assert ["authorization" in request.headers for request in asked] == [True, False]


def test_endless_redirects_end() -> None:
    again = [httpx.Response(302, headers={"Location": FILE}) for _ in range(4)]
    error = error_of(
        lambda: download(public(answer_url(), *again), FILE, into=Kept(), max_bytes=100)
    )
    assert error.code == "refused"


# An address in digits needs no name server.
FILE = "https://8.8.8.8/file"


def answer_url() -> str:
    return "https://graph.facebook.com/v24.0"


def test_no_token_in_the_logs(
    graph: GraphServer, green: GreenServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    green.files_of["MESSAGE1"] = green.add_file(CONTENT)
    from_green(green, url="")
    from_cloud(graph, media_id=graph.add_file(CONTENT))
    assert "secret-token" not in caplog.text
