"""What streams of news tell, and to whom: the program `live` without its process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from memoryproject.staff_site.accounts.sessions import listener_of
from memoryproject.staff_site.live.stream_server import PATH, Database, Limits, Live, Times, newest
from sessions_app.models import Chat, ChatPause, Message
from tests.staff.people import person
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

PATIENCE_SECONDS = 60.0


@dataclass
class Page:
    """A page with a stream: the ASGI messages that it got, all or those up to the first news."""

    session: str
    got: list[dict[str, Any]] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    is_stuck: bool = False

    async def listen(self, live: Live) -> None:
        cookie = f"sessionid={self.session}".encode()
        scope = {
            "type": "http",
            "method": "GET",
            "path": PATH,
            "root_path": "",
            "query_string": b"",
            "headers": [(b"cookie", cookie)],
        }
        await live.routes(scope, self._receive, self._send)

    async def _receive(self) -> dict[str, Any]:
        await self.closed.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if self.is_stuck and self.news.is_set():
            await self.closed.wait()
        self.got.append(message)
        if b"data: news" in message.get("body", b""):
            self.news.set()

    @property
    def status(self) -> int:
        return int(self.got[0]["status"])

    @property
    def is_complete(self) -> bool:
        return not self.got[-1].get("more_body", False)


def with_live(scene: Callable[[Live, Database], Awaitable[None]]) -> None:
    """Act with a server that is impatient: it looks often whether its listeners are signed in."""

    async def acted() -> None:
        database = Database()
        try:
            await scene(Live(database, Limits(), Times(check=0.01, send=0.01)), database)
        finally:
            await database.ask(connections.close_all)

    asyncio.run(acted())


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def session_of(client: Client) -> str:
    return client.cookies["sessionid"].value


def be_idle(client: Client) -> None:
    session = client.session
    session["seen"] -= 24 * 60 * 60
    session.save()


def change_password(user: User) -> None:
    user.set_password("another one")
    user.save()


ENDS: dict[str, Callable[[Client, User], object]] = {
    "signed out": lambda client, user: client.logout(),
    "deactivated": lambda client, user: User.objects.filter(pk=user.pk).update(is_active=False),
    "no staff": lambda client, user: User.objects.filter(pk=user.pk).update(is_staff=False),
    "no right": lambda client, user: user.groups.clear(),
    "a new password": lambda client, user: change_password(user),
    "idle": lambda client, user: be_idle(client),
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("how", ENDS)
def test_a_stream_ends_with_its_session(how: str) -> None:
    user = person("dana", "Viewer")
    client = signed_in(user)
    page = Page(session_of(client))

    async def scene(live: Live, database: Database) -> None:
        stream = asyncio.create_task(page.listen(live))
        await asyncio.wait_for(page.news.wait(), PATIENCE_SECONDS)
        assert not stream.done()
        await database.ask(lambda: ENDS[how](client, user))
        await asyncio.wait_for(stream, PATIENCE_SECONDS)
        assert len(live.streams) == 0

    with_live(scene)
    assert page.status == 200
    assert page.is_complete


@pytest.mark.django_db(transaction=True)
def test_a_closed_page_leaves_nothing() -> None:
    page = Page(session_of(signed_in(person("dana", "Viewer"))))

    async def scene(live: Live, database: Database) -> None:
        stream = asyncio.create_task(page.listen(live))
        await asyncio.wait_for(page.news.wait(), PATIENCE_SECONDS)
        assert len(live.streams) == 1
        page.closed.set()
        await asyncio.wait_for(stream, PATIENCE_SECONDS)
        assert len(live.streams) == 0

    with_live(scene)


@pytest.mark.django_db(transaction=True)
def test_a_page_that_takes_nothing_more_is_given_up() -> None:
    user = person("dana", "Viewer")
    client = signed_in(user)
    page = Page(session_of(client), is_stuck=True)

    async def scene(live: Live, database: Database) -> None:
        stream = asyncio.create_task(page.listen(live))
        await asyncio.wait_for(page.news.wait(), PATIENCE_SECONDS)
        for each in live.streams:
            each.tell()
        await asyncio.wait_for(stream, PATIENCE_SECONDS)
        assert len(live.streams) == 0

    with_live(scene)
    assert not page.is_complete


@pytest.mark.django_db
def test_who_may_listen() -> None:
    dana = person("dana", "Viewer")
    assert listener_of(session_of(signed_in(dana))) == dana.pk
    for user in (
        person("without rights"),
        person("no staff", "Viewer", is_staff=False),
        person("left", "Viewer", is_active=False),
    ):
        assert listener_of(session_of(signed_in(user))) is None
    assert listener_of("invented") is None
    assert listener_of("") is None


@pytest.mark.django_db
def test_listening_keeps_no_session_alive() -> None:
    client = signed_in(person("dana", "Viewer"))
    session = client.session
    session["seen"] -= 120
    session.save()
    before = client.session["seen"]
    assert listener_of(session_of(client)) is not None
    assert client.session["seen"] == before


@pytest.mark.django_db
def test_where_only_django_serves_a_page_is_told_not_to_ask_again(client: Client) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert client.get(PATH).status_code == 204
        client.cookies["sessionid"] = "invented"
        assert client.get(PATH).status_code == 204
    assert len(queries) == 0
    assert client.post(PATH).status_code == 405


class Acts:
    """What is news, and what isn't."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.staff = signed_in(person("dana", "Reviewer"))

    @property
    def chat(self) -> Chat:
        return self.world.chat(CLIENT)

    def message(self) -> None:
        self.world.receive(message_from(CLIENT, "hello"))

    def other_chat(self) -> None:
        self.world.receive(message_from(OTHER_CLIENT, "hello"))

    def answer(self) -> None:
        self.world.say(CLIENT, "hello")

    def older_than_the_newest(self) -> None:
        """As if its transaction had been slower than those of later messages."""
        newest_one = Message.objects.order_by("-received_at").first()
        assert newest_one is not None
        newest_one.pk, newest_one.order_num = None, 99
        newest_one.received_at -= timedelta(seconds=5)
        newest_one.answers = newest_one.provider_message_id = None
        newest_one.save(force_insert=True)

    def tick(self) -> None:
        newest_one = Message.objects.order_by("-received_at").first()
        assert newest_one is not None
        Message.objects.filter(pk=newest_one.pk).update(delivery_status="read")

    def pause(self) -> None:
        address = reverse("admin:sessions_app_chat_takeover_pause", args=[self.chat.pk])
        assert self.staff.post(address, {"lasts": "open"}).status_code == 302
        assert ChatPause.objects.exists()

    def reading(self) -> None:
        address = f"/admin/sessions_app/chat/{self.chat.pk}/conversation/"
        assert self.staff.get(address).status_code == 200


NEWS = ("message", "other_chat", "answer", "older_than_the_newest", "tick", "pause")


@pytest.mark.django_db
@pytest.mark.parametrize("act", [*NEWS, "reading"])
def test_what_is_news(world: World, act: str) -> None:
    acts = Acts(world)
    world.say(CLIENT, "good morning")
    before = newest()
    assert newest() == before
    getattr(acts, act)()
    assert (newest() != before) == (act in NEWS)


@pytest.mark.django_db
def test_news_are_one_question_however_much_there_is(world: World) -> None:
    for number in range(3):
        world.say(CLIENT, f"text {number}")
    with CaptureQueriesContext(connection) as queries:
        newest()
    assert len(queries) == 1
