"""Messages of a session over the API: getMessages, addMessages, clearMessages."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from rest_framework.serializers import Serializer

from sessions_app.history.dependencies import build_chat_memory
from sessions_app.models import ChatSession, Message
from sessions_app.presentation.serializers import MessageSerializer
from sessions_app.summaries.summarizer import Summarizer
from tests.api.calling import Api, error_of
from tests.api.test_sessions import opened
from tests.world import new_world

pytestmark = pytest.mark.django_db


@pytest.fixture
def path(api: Api) -> str:
    """A session's messages."""
    return f"sessions/{opened(api)['session_id']}/messages/"


def said(content: str, role: str = "user", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def store(api: Api, path: str, *messages: dict[str, Any]) -> Any:
    answer = api.post(path, {"messages": list(messages)})
    assert answer.status_code == 201, answer.content
    return answer.json()["messages"]


def contents(answer: Any) -> list[str]:
    return [message["content"] for message in answer.json()["results"]]


def test_messages_are_stored_in_order_and_read_as_they_were_given(api: Api, path: str) -> None:
    given_ones = [
        said("  with spaces  \n", timestamp="2026-01-10T12:00:00+02:00"),
        said("", "assistant", metadata={"a": [1, None, {"b": "c"}]}),
        said("שלום 🙂", "tool", sender="s", recipient="r"),
    ]
    stored = store(api, path, *given_ones)
    assert [message["order_num"] for message in stored] == [1, 2, 3]
    assert [message["content"] for message in stored] == [one["content"] for one in given_ones]
    assert stored[0]["timestamp"] == "2026-01-10T10:00:00Z"
    assert stored[1]["metadata"] == {"a": [1, None, {"b": "c"}]}
    assert (stored[2]["sender"], stored[2]["recipient"]) == ("s", "r")
    assert stored[2]["received_at"].endswith("Z")
    assert stored[2]["was_received"] is True
    assert api.get(path).json()["results"] == stored


def test_a_message_is_written_as_its_fields_say(api: Api, path: str) -> None:
    (stored,) = store(api, path, said("שלום", timestamp="2026-01-10T12:00:00.5+02:00"))
    message = Message.objects.get()
    by_fields = Serializer.to_representation(MessageSerializer(), message)
    # These are read from the metadata.
    of_its_form: dict[str, Any] = {
        "tool_calls": [],
        "tool_call_id": None,
        "name": None,
        "content_parts": None,
    }
    assert by_fields | of_its_form == MessageSerializer(message).data == stored


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    content=st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])),
    extra=st.dictionaries(
        st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])),
        st.none() | st.booleans() | st.integers(-(2**53), 2**53),
        max_size=3,
    ),
)
def test_any_content_comes_back(content: str, extra: dict[str, Any], api: Api, path: str) -> None:
    (stored,) = store(api, path, said(content, metadata=extra))
    assert stored["content"] == content
    assert stored["metadata"] == extra
    assert Message.objects.get(pk=stored["message_id"]).content == content
    assert api.get(f"{path}?limit=1").json()["results"] == [stored]


def test_the_newest_come_oldest_first_and_next_leads_to_older_ones(api: Api, path: str) -> None:
    store(api, path, *[said(str(number)) for number in range(1, 8)])
    first = api.get(f"{path}?limit=3")
    assert contents(first) == ["5", "6", "7"]
    assert first.json()["previous"] is None
    second = api.get(first.json()["next"].removeprefix("http://testserver"))
    assert contents(second) == ["2", "3", "4"]
    third = api.get(second.json()["next"].removeprefix("http://testserver"))
    assert contents(third) == ["1"]
    assert third.json()["next"] is None
    back = api.get(third.json()["previous"].removeprefix("http://testserver"))
    assert contents(back) == ["2", "3", "4"]


def test_messages_are_filtered_by_role(api: Api, path: str) -> None:
    store(api, path, said("a"), said("b", "assistant"), said("c", "summary"), said("d"), said("e"))
    assert contents(api.get(f"{path}?role=user")) == ["a", "d", "e"]
    assert contents(api.get(f"{path}?role=summary&role=assistant")) == ["b", "c"]
    newest = api.get(f"{path}?role=user&limit=2")
    assert contents(newest) == ["d", "e"]
    assert contents(api.get(newest.json()["next"].removeprefix("http://testserver"))) == ["a"]
    assert error_of(api.get(f"{path}?role=boss"), 400)["attr"] == "role"


def test_before_is_exclusive_and_reads_as_the_service_does(api: Api, path: str) -> None:
    times = [f"2026-01-10T12:00:{second:02}Z" for second in range(5)]
    store(api, path, *[said(time, timestamp=time) for time in times])
    assert contents(api.get(f"{path}?before={times[3]}")) == times[:3]
    assert contents(api.get(f"{path}?before={times[3]}&limit=2")) == times[1:3]
    assert contents(api.get(f"{path}?before=2026-01-10T14:00:03%2B02:00")) == times[:3]
    service = build_chat_memory().get_messages(conversation_id=UUID(path.split("/")[1]), limit=2)
    assert contents(api.get(f"{path}?limit=2")) == [message.content for message in service]


def test_a_thousand_are_stored_and_one_more_are_not(api: Api, path: str) -> None:
    many = [said(str(number)) for number in range(1000)]
    assert len(store(api, path, *many)) == 1000
    assert len(api.get(path).json()["results"]) == 1000
    error_of(api.post(path, {"messages": [*many, said("x")]}), 400)
    assert Message.objects.count() == 1000


def test_err_integration_004_a_time_without_a_zone_is_utc_with_a_warning(
    api: Api, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    (stored,) = store(api, path, said("x", timestamp="2026-01-10T12:00:00"))
    assert stored["timestamp"] == "2026-01-10T12:00:00Z"
    assert any("time zone" in record.message for record in caplog.records)


def test_reading_never_moves_last_active(api: Api, path: str) -> None:
    store(api, path, said("x"))
    before = ChatSession.objects.get().last_active
    api.get(path)
    api.post(path.replace("messages", "context"), {"query": "y"})
    assert ChatSession.objects.get().last_active == before


def test_an_archived_session_is_read_only(api: Api, path: str) -> None:
    api.post(path.replace("messages", "expire"))
    assert store(api, path, said("an expired one still takes messages"))
    ChatSession.objects.update(status="archived")
    assert "read-only" in error_of(api.post(path, {"messages": [said("x")]}), 409)["detail"]
    assert len(api.get(path).json()["results"]) == 1


def test_of_the_servers_summaries_the_newest_is_listed(api: Api, path: str) -> None:
    world = new_world()
    world.summarizing(2, summarizer=Summarizer())
    session_id = UUID(path.split("/")[1])
    for number in range(1, 4):
        store(api, path, said(f"Order {number} costs {number}00 ₪"), said("Fine.", "assistant"))
        world.rules.chat_memory.strategy.post_add_messages_hook(
            session=ChatSession.objects.get(pk=session_id)
        )
        assert world.rules.chat_memory.manage(conversation_id=session_id) == 1
    listed = api.get(path).json()["results"]
    (summary,) = [each["content"] for each in listed if each["role"] == "summary"]
    assert all(f"Order {number} costs" in summary for number in range(1, 4))
    assert len(listed) == 7
