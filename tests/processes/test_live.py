"""The program `live` behind the front door: pages hear of news without holding a thread."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from memoryproject.foundation.embedded_postgres.places import Places
from memoryproject.foundation.embedded_postgres.processes import postmaster_of
from tests.processes.installation import family, kill
from tests.processes.listening import (
    PATH,
    Listening,
    listening,
    sign_in,
    start_streams,
    status,
    with_streams,
)
from tests.processes.posting import new_phone
from tests.processes.stage import Stage, stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

# More than all threads of the web server.
MANY, OF_SESSION, OF_ACCOUNT = 52, 4, 20


@pytest.fixture(scope="module")
def front() -> Iterator[Stage]:
    # Streams are longer than any body may take.
    with stage(run=with_streams, MEMORY_BODY_TIME="2s") as started:
        yield started


@pytest.fixture(scope="module")
def session(front: Stage) -> str:
    return sign_in(front.installation, "dana")[0]


@pytest.fixture
def opened(front: Stage, session: str) -> Iterator[Listening]:
    """A stream that has told what it begins with."""
    with listening(front.installation, session) as stream:
        assert stream.status == httpx.codes.OK
        yield stream.wait_for_the_first()


def test_a_message_is_told(front: Stage, opened: Listening) -> None:
    for text in ("hello", "and again"):
        with opened.told("a message"):
            front.post.say(new_phone(), text)


def test_only_staff_who_may_see_the_inbox_are_told(front: Stage) -> None:
    installation = front.installation
    for refused in (
        "",
        "invented",
        *sign_in(installation, "nobody", is_staff=False),
        *sign_in(installation, "without rights", is_staff=True),
    ):
        assert status(installation, refused) == httpx.codes.FORBIDDEN


def test_a_stream_outlives_the_time_for_a_body(front: Stage, opened: Listening) -> None:
    """The front door's time for a request ends after two seconds, a heartbeat comes after 15."""
    before = opened.heartbeats
    wait_until(lambda: opened.heartbeats > before or not opened.is_open, "a heartbeat")
    with opened.told("a message"):
        front.post.say(new_phone(), "hello")


def test_many_open_streams_hold_no_thread_of_the_web_server(front: Stage) -> None:
    installation = front.installation
    with ExitStack() as stack:
        streams = [
            stack.enter_context(listening(installation, key))
            for account in range(0, MANY, OF_ACCOUNT)
            for key in sign_in(installation, f"account {account}", OF_ACCOUNT // OF_SESSION)
            for _ in range(OF_SESSION)
        ][:MANY]
        assert [stream.status for stream in streams] == [httpx.codes.OK] * MANY
        for stream in streams:
            stream.wait_for_the_first()
        (reader,) = sign_in(installation, "reader")
        for _ in range(3):
            page = httpx.get(
                f"{installation.url}/admin/sessions_app/chat/",
                headers={"Cookie": f"sessionid={reader}"},
                trust_env=False,
            )
            assert page.status_code == httpx.codes.OK
        before = [stream.news for stream in streams]
        front.post.say(new_phone(), "hello")
        wait_until(
            lambda: all(stream.news > count for stream, count in zip(streams, before, strict=True)),
            "each stream is told",
        )


def test_a_browser_keeps_connections_for_its_pages(front: Stage) -> None:
    """The page whose stream is refused asks by itself, until another one is closed."""
    installation = front.installation
    (key,) = sign_in(installation, "one browser")
    with ExitStack() as stack:
        for _ in range(OF_SESSION):
            last = stack.enter_context(ExitStack())
            assert last.enter_context(listening(installation, key)).status == httpx.codes.OK
        assert status(installation, key) == httpx.codes.SERVICE_UNAVAILABLE
        last.close()
        wait_until(lambda: status(installation, key) == httpx.codes.OK, "there is room again")


def test_streams_go_on_when_the_database_is_back(front: Stage, opened: Listening) -> None:
    installation = front.installation
    postmaster = postmaster_of(Places(installation.data_dir))
    assert postmaster is not None
    kill(family(postmaster))
    wait_until(lambda: installation.answer("/admin/login/") == httpx.codes.OK, "it is back")
    with opened.told("a message"):
        front.post.say(new_phone(), "hello")


def test_a_killed_program_ends_the_streams_and_a_new_one_tells_what_was_missed(
    front: Stage, session: str
) -> None:
    installation = front.installation
    with listening(installation, session) as stream:
        kill(family(installation.programs["live"]))
        stream.wait_for_the_end()
    front.post.say(new_phone(), "while nobody is told")
    assert status(installation, session) == httpx.codes.SERVICE_UNAVAILABLE
    start_streams(installation)
    with listening(installation, session) as stream:
        stream.wait_for_the_first()


def test_an_orderly_end_ends_the_streams(front: Stage, session: str) -> None:
    installation = front.installation
    with listening(installation, session) as stream:
        stream.wait_for_the_first()
        installation.programs["live"].send_signal(signal.SIGTERM)
        stream.wait_for_the_end()
    installation.programs["live"].wait(timeout=60)
    start_streams(installation)


def test_the_address_is_only_for_streams(front: Stage, session: str) -> None:
    cookie = {"Cookie": f"sessionid={session}"}
    url = f"{front.installation.url}{PATH}"
    assert httpx.post(url, headers=cookie, trust_env=False).status_code == 405
    assert httpx.head(url, headers=cookie, trust_env=False).status_code == httpx.codes.OK
