"""Open streams of news, as the pages of staff have them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import httpx

from tests.processes.installation import Installation
from tests.processes.waiting import wait_until

PATH = "/admin/live/"
SIGN_IN = """
from django.contrib.auth.models import User
from django.test import Client
for number in range({sessions}):
    client = Client()
    client.force_login(User.objects.get_or_create(username="{name}", defaults={rights})[0])
    print(client.cookies["sessionid"].value)
"""
SUPERUSER = {"is_staff": True, "is_superuser": True}


def sign_in(installation: Installation, name: str, sessions: int = 1, **rights: bool) -> list[str]:
    """Sessions of an account, which is made; a superuser unless ``rights`` say something else."""
    code = SIGN_IN.format(sessions=sessions, name=name, rights=rights or SUPERUSER)
    return installation.manage("shell", "-v", "0", "-c", code).split()


class Listening:
    """A stream that is read in a thread of its own, and what has come by it so far."""

    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        self.news = self.heartbeats = 0
        self.is_open = self.status == httpx.codes.OK
        self._response = response
        self._thread = Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        try:
            for line in self._response.iter_lines():
                self.news += line == "data: news"
                self.heartbeats += line.startswith(":")
        except httpx.HTTPError:
            # It was cut off.
            pass
        self.is_open = False

    @contextmanager
    def told(self, what: str) -> Iterator[None]:
        """Wait until it is told what is done in the block."""
        before = self.news
        yield
        wait_until(lambda: self.news > before or not self.is_open, f"{what} is told")
        assert self.news > before, "the stream ended"

    def wait_for_the_first(self) -> Listening:
        """Wait for what is said to each stream when it begins."""
        wait_until(lambda: self.news or not self.is_open, "the first news")
        return self

    def wait_for_the_end(self) -> None:
        self._thread.join(120)
        assert not self.is_open


@contextmanager
def listening(installation: Installation, session: str) -> Iterator[Listening]:
    """A stream until the block ends."""
    with (
        httpx.Client(trust_env=False, verify=False, timeout=60) as client,
        client.stream(
            "GET", f"{installation.url}{PATH}", headers={"Cookie": f"sessionid={session}"}
        ) as response,
    ):
        yield Listening(response)


def status(installation: Installation, session: str) -> int:
    """What a page is told that wants a stream."""
    with listening(installation, session) as opened:
        return opened.status


def with_streams(installation: Installation) -> None:
    """The web servers, the front door and the program that keeps streams."""
    installation.prepare()
    installation.start_front_door()
    start_streams(installation)


def start_streams(installation: Installation) -> None:
    installation.start_program("live")
    # 503 while nobody listens there.
    wait_until(lambda: status(installation, "") == httpx.codes.FORBIDDEN, "streams are served")
