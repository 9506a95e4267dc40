"""Staff's list of promises, and promises in the API."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django_q.models import OrmQ

from memories_app.facts.validation import NewMemory
from memories_app.models import Memory
from memories_app.store.remember import memory_remember
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import ChatSession
from sessions_app.promises.store import today
from sessions_app.tasks import read_promises
from tests.api.calling import Api, api_with
from tests.dashboard.staff import page, staff_with
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db

LIST = "/admin/memories_app/memory/promises/"
MARK = f"{LIST}mark/"


def promised(world: World, text: str, *, days: int | None = None, state: str = "open") -> Memory:
    """A promise to the client that is to be kept in so many days."""
    due = None if days is None else (today() + timedelta(days=days)).isoformat()
    return memory_remember(
        NewMemory(
            content=text,
            visibility="chat",
            chat_id=world.chat(CLIENT).pk,
            type="promise",
            source="extraction",
            source_message_id=world.messages(CLIENT)[-1].pk,
            metadata={"promise": {"state": state, "by": "assistant", "due": due}},
        ),
        embedder=world.dependencies.embedder,
    ).memory


@pytest.fixture
def five(world: World) -> list[Memory]:
    world.say(CLIENT, "hi")
    return [
        promised(world, "Promised: no day"),
        promised(world, "Promised: next week", days=7),
        promised(world, "Promised: late quote", days=-2),
        promised(world, "Promised: for today", days=0),
        promised(world, "Promised: kept call", days=-3, state="kept"),
    ]


def order(shown: str, memories: list[Memory]) -> list[int]:
    places = {shown.find(str(memory.content)): number for number, memory in enumerate(memories)}
    return [places[place] for place in sorted(places) if place >= 0]


def state(memory: Memory) -> str:
    memory.refresh_from_db()
    return str(memory.metadata["promise"]["state"])


class TestList:
    def test_open_ones_come_first_by_their_day(
        self, admin_client: Client, five: list[Memory]
    ) -> None:
        assert order(page(admin_client, LIST), five) == [2, 3, 1, 0]
        assert order(page(admin_client, LIST, state="all"), five) == [2, 3, 1, 0, 4]
        assert order(page(admin_client, LIST, state="overdue"), five) == [2]
        assert order(page(admin_client, LIST, state="kept"), five) == [4]
        assert order(page(admin_client, LIST, state="nonsense"), five) == [2, 3, 1, 0]

    def test_each_leads_to_its_message(
        self, admin_client: Client, five: list[Memory], world: World
    ) -> None:
        shown = page(admin_client, LIST)
        assert shown.count("overdue</span>") == 1
        assert shown.count("due today</span>") == 1
        message = five[0].source_message_id
        assert f"/chat/{world.chat(CLIENT).pk}/conversation/?at={message}#m-{message}" in shown

    def test_each_says_what_was_asked(self, admin_client: Client, world: World) -> None:
        """ "I'll ask the owner" alone says nothing."""
        world.say(CLIENT, "do you bake without gluten?")
        promised(world, "Promised: I'll ask the owner")
        shown = page(admin_client, LIST)
        assert "They wrote: <bdi>do you bake without gluten?</bdi>" in shown
        read = AuditEvent.objects.filter(details__list="message").count()
        assert read == 1
        world.messages(CLIENT)[0].delete()
        assert "They wrote:" not in page(admin_client, LIST)
        no_messages = staff_with("memories_app.view_memory")
        assert "They wrote:" not in page(no_messages, LIST)

    def test_home_and_the_menu_count_what_is_due(
        self, admin_client: Client, five: list[Memory]
    ) -> None:
        shown = " ".join(page(admin_client, "/admin/").split())
        assert "overdue or due today" in shown
        assert LIST in shown

    def test_nothing_is_promised(self, admin_client: Client) -> None:
        assert "No promises." in page(admin_client, LIST)
        assert "No promise has this state." in page(admin_client, LIST, state="kept")

    def test_pages(self, admin_client: Client, world: World) -> None:
        world.say(CLIENT, "hi")
        for number in range(26):
            promised(world, f"Promised: thing {number:02} of many", days=number)
        assert "thing 25 of" not in page(admin_client, LIST)
        assert "thing 25 of" in page(admin_client, LIST, p=2)


class TestMarking:
    def test_several_at_once(self, admin_client: Client, five: list[Memory]) -> None:
        ticked = [str(each.pk) for each in five[:2]]
        answer = admin_client.post(f"{MARK}?state=open", {"ticked": ticked, "state": "kept"})
        assert answer["Location"] == f"{LIST}?state=open"
        assert [state(each) for each in five] == ["kept", "kept", "open", "open", "kept"]
        assert AuditEvent.objects.filter(action="memory.update", actor_kind="staff").count() == 2

    def test_one_is_dropped_and_opened_again(
        self, admin_client: Client, five: list[Memory]
    ) -> None:
        for chosen in ("dropped", "open"):
            admin_client.post(MARK, {"one": f"{five[0].pk} {chosen}"})
            assert state(five[0]) == chosen
        assert five[0].metadata["promise"]["due"] is None

    @pytest.mark.parametrize(
        "posted", [{"one": "x kept"}, {"state": "burnt"}, {"ticked": "", "state": "kept"}, {}]
    )
    def test_nonsense_is_refused(self, admin_client: Client, posted: Any) -> None:
        assert admin_client.post(MARK, posted).status_code == 400

    @pytest.mark.parametrize("gone", [True, False])
    def test_what_is_no_promise_is_skipped(
        self, admin_client: Client, world: World, gone: bool
    ) -> None:
        world.say(CLIENT, "/remember my locker is 17")
        key = uuid4() if gone else Memory.objects.get().pk
        answer: Any = admin_client.post(MARK, {"one": f"{key} kept"}, follow=True)
        assert "1 skipped" in answer.content.decode()

    def test_who_may_only_read_changes_nothing(self, five: list[Memory]) -> None:
        reader = staff_with("memories_app.view_memory")
        assert (
            "<button class"
            not in page(reader, LIST).partition("<article")[2].partition("</form>")[0]
        )
        posted = {"one": f"{five[0].pk} kept"}
        assert reader.post(MARK, posted).status_code == 403
        assert state(five[0]) == "open"


class TestApi:
    def test_listed_and_changed(self, world: World, five: list[Memory]) -> None:
        api = api_with()
        listed = api.get("memories/?type=promise").json()["results"]
        assert len(listed) == 5
        query = '{"promise": {"state": "kept"}}'
        (kept,) = api.get(f"memories/?type=promise&metadata={query}").json()["results"]
        assert kept["content"] == five[4].content
        answer = api.call(
            "PATCH", f"memories/{five[2].pk}/", {"metadata": {"promise": {"state": "kept"}}}
        )
        assert answer.status_code == 200
        assert state(five[2]) == "kept"
        assert five[2].metadata["promise"]["due"] == (today() - timedelta(days=2)).isoformat()
        # What becomes a promise is an open one.
        fact = api.post("memories/", {"content": "We'll bring the keys", "visibility": "owner"})
        changed = api.call("PATCH", f"memories/{fact.json()['memory_id']}/", {"type": "promise"})
        assert changed.json()["metadata"]["promise"]["state"] == "open"
        # Other metadata leaves the promise.
        api.call("PATCH", f"memories/{five[2].pk}/", {"metadata": {"sku": 7}})
        assert state(five[2]) == "kept"

    @pytest.mark.parametrize(
        "promise",
        [{"state": "burnt"}, {"due": "soon"}, {"due": 5}, {"due": "20260308"}, "kept", ["kept"]],
    )
    def test_a_wrong_state_is_refused(self, five: list[Memory], promise: Any) -> None:
        body = {"metadata": {"promise": promise}}
        answer = api_with().call("PATCH", f"memories/{five[0].pk}/", body)
        assert answer.status_code == 400, answer.content
        assert state(five[0]) == "open"

    @pytest.mark.parametrize(
        ("learn", "count"), [({}, 1), ({"learn": True}, 1), ({"learn": False}, 0)]
    )
    def test_an_answer_of_another_model(
        self,
        settings: Any,
        api: Api,
        learn: dict[str, bool],
        count: int,
        django_capture_on_commit_callbacks: Any,
    ) -> None:
        settings.ENABLE_MEMORY_SYSTEM = True
        session = api.post("sessions/", {"whatsapp_chat": CLIENT}).json()["session_id"]
        body = {"query": "And the quote?", "reply": "I'll send it tomorrow.", **learn}
        with django_capture_on_commit_callbacks(execute=True):
            assert api.post(f"sessions/{session}/exchanges/", body).status_code == 201
        assert "sessions_app.tasks.read_promises" in [
            job.task["func"] for job in OrmQ.objects.all()
        ]
        assert read_promises(session) == count
        assert ChatSession.objects.get(pk=session).promises_until == 2


@pytest.fixture
def api(db: None) -> Api:
    return api_with()
