"""The Cloud API client against the stand-in for Graph API."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from memoryproject.foundation.integrations.loopback.httpd import Answer
from memoryproject.foundation.integrations.loopback.providers import graph_error
from memoryproject.foundation.integrations.whatsapp.base import (
    Choice,
    OutgoingFile,
    Recipient,
    SendError,
)
from memoryproject.foundation.integrations.whatsapp.cloud.client import CloudProvider
from tests.loopback.graph import GraphServer
from tests.loopback.httpd import Fault
from tests.processes.waiting import wait_until

PHONE = Recipient(whatsapp_chat="15550100123@c.us", phone="15550100123", bsuid="US.1")
USER_ID = Recipient(whatsapp_chat="US.1@bsuid", bsuid="US.1")
GROUP = Recipient(whatsapp_chat="group-1@g.us", group_id="group-1")


@pytest.fixture
def graph() -> Iterator[GraphServer]:
    with GraphServer(access_token="secret-token") as server:
        yield server


def provider_for(graph: GraphServer, **changes: Any) -> CloudProvider:
    arguments: dict[str, Any] = {
        "api_url": f"{graph.url}/v24.0",
        "phone_number_id": graph.phone_number_id,
        "access_token": "secret-token",
        "timeout": 10.0,
    }
    return CloudProvider(**{**arguments, **changes})


def failure(graph: GraphServer, **changes: Any) -> SendError:
    with pytest.raises(SendError) as caught:
        provider_for(graph, **changes).send_text(to=PHONE, text="hello", callback_id="turn-1")
    return caught.value


def test_text_goes_out(graph: GraphServer) -> None:
    result = provider_for(graph).send_text(to=PHONE, text="שלום 👋", callback_id="turn-1")

    [sent] = graph.sent
    assert sent.pop("id") == result.provider_message_id
    assert sent == {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": "15550100123",
        "type": "text",
        "text": {"preview_url": False, "body": "שלום 👋"},
        "biz_opaque_callback_data": "turn-1",
    }
    assert result.provider_message_id.startswith("wamid.")


@pytest.mark.parametrize(
    ("titles", "text", "kind", "shown"),
    [
        (["Yes", "No"], "Sure?", "button", ["Yes", "No"]),
        (["one"] * 3, "Which?", "button", ["1. one", "2. one", "3. one"]),
        (["👍🏽" * 9], "Which?", "button", ["👍🏽" * 4 + "…"]),
        (["שם ארוך מאוד של מוצר מיוחד"], "?", "button", ["שם ארוך מאוד של מוצ…"]),
        (list("abcd"), "Which?", "list", list("abcd")),
        (list("ab"), "long " * 300, "list", list("ab")),
    ],
)
def test_choices_go_out_as_buttons_or_a_list(
    graph: GraphServer, titles: list[str], text: str, kind: str, shown: list[str]
) -> None:
    choices = [Choice(f"id-{number}", title) for number, title in enumerate(titles)]
    provider_for(graph).send_choices(
        to=PHONE, text=text, choices=choices, opener="Choose", callback_id="1"
    )

    about = graph.sent[0]["interactive"]
    assert (about["type"], about["body"]) == (kind, {"text": text})
    action = about["action"]
    offered = (
        [button["reply"] for button in action["buttons"]]
        if kind == "button"
        else action["sections"][0]["rows"]
    )
    assert [each["title"] for each in offered] == shown
    assert [each["id"] for each in offered] == [choice.id for choice in choices]
    assert action.get("button") == (None if kind == "button" else "Choose")


def test_reply_names_the_message(graph: GraphServer) -> None:
    provider_for(graph).send_text(to=PHONE, text="yes", callback_id="1", reply_to="wamid.Q")

    assert graph.sent[0]["context"] == {"message_id": "wamid.Q"}


def test_a_person_without_a_phone_is_reached_by_user_id(graph: GraphServer) -> None:
    provider_for(graph).send_text(to=USER_ID, text="hello", callback_id="1")

    assert graph.sent[0]["recipient"] == "US.1"
    assert "to" not in graph.sent[0]


def test_a_group_is_reached_as_a_group(graph: GraphServer) -> None:
    provider_for(graph).send_text(to=replace(GROUP, phone="1"), text="hello", callback_id="1")

    assert graph.sent[0]["recipient_type"] == "group"
    assert graph.sent[0]["to"] == "group-1"


@pytest.mark.parametrize("text", ["", "  \n", "x" * 4097, "👍" * 2049])
def test_texts_that_the_provider_would_refuse_are_not_sent(graph: GraphServer, text: str) -> None:
    with pytest.raises(SendError) as caught:
        provider_for(graph).send_text(to=PHONE, text=text, callback_id="1")

    assert caught.value.permanent
    assert graph.requests == []


def test_a_chat_without_an_address_that_meta_knows(graph: GraphServer) -> None:
    with pytest.raises(SendError) as caught:
        provider_for(graph).send_text(to=Recipient("9@lid"), text="hello", callback_id="1")

    assert caught.value.permanent


@pytest.mark.parametrize("typing", [True, False])
def test_mark_read(graph: GraphServer, typing: bool) -> None:
    provider_for(graph).mark_read(provider_message_id="wamid.Q", typing=typing)

    assert graph.reads == ["wamid.Q"]
    shown = {"typing_indicator": {"type": "text"}} if typing else {}
    assert graph.requests[0].body == {
        "messaging_product": "whatsapp",
        "status": "read",
        "message_id": "wamid.Q",
        **shown,
    }


@pytest.mark.parametrize(
    ("code", "permanent", "alert", "retry_after"),
    [
        (131047, True, False, None),
        (131026, True, False, None),
        (131030, True, False, None),
        (100, True, False, None),
        (190, True, True, None),
        (0, True, True, None),
        (10, True, True, None),
        (230, True, True, None),
        (368, True, True, None),
        (131031, True, True, None),
        (131037, True, True, None),
        (131042, True, True, None),
        (131056, False, False, 6.0),
        (130429, False, False, 5.0),
        (131049, False, False, 86_400.0),
        (4, False, False, 60.0),
        (80007, False, False, 60.0),
        (131000, False, False, None),
        (131016, False, False, None),
        (2, False, False, None),
        (999_999, True, False, None),
    ],
)
def test_policy_by_code(
    graph: GraphServer, code: int, permanent: bool, alert: bool, retry_after: float | None
) -> None:
    graph.fail_next(Fault(answer=graph_error(code, "(#) It failed", details="the details")))

    error = failure(graph)

    told = (error.code, error.permanent, error.alert, error.retry_after, error.outcome_unknown)
    assert told == (code, permanent, alert, retry_after, False)
    assert "the details" in str(error)


@pytest.mark.parametrize(
    ("answer", "permanent", "unknown", "alert", "retry_after"),
    [
        (Answer(429, {}), False, False, False, None),
        (Answer(429, {}, {"Retry-After": "7"}), False, False, False, 7.0),
        (Answer(429, {}, {"Retry-After": "soon"}), False, False, False, None),
        (Answer(500, {}), False, True, False, None),
        (Answer(503, {"error": "down"}), False, True, False, None),
        (graph_error(999_999, "broken", status=500), False, False, False, None),
        (graph_error(131000, "broken", status=500), False, False, False, None),
        (Answer(400, {"error": {"code": 77, "is_transient": True}}), False, False, False, None),
        (Answer(400, {"error": {"code": 100, "error_subcode": 33}}), True, False, True, None),
        (Answer(401, {}), True, False, True, None),
        (Answer(403, {}), True, False, True, None),
        (Answer(404, {}), True, False, False, None),
        (Answer(302, {}, {"Location": "/"}), True, False, False, None),
        (Answer(200, {}), False, True, False, None),
        (Answer(200, {"messages": [{"id": ""}]}), False, True, False, None),
    ],
)
def test_policy_by_status(
    graph: GraphServer,
    answer: Answer,
    permanent: bool,
    unknown: bool,
    alert: bool,
    retry_after: float | None,
) -> None:
    graph.fail_next(Fault(answer=answer))

    error = failure(graph)

    told = (error.permanent, error.outcome_unknown, error.alert, error.retry_after)
    assert told == (permanent, unknown, alert, retry_after)


def test_wrong_token_needs_staff(graph: GraphServer) -> None:
    error = failure(graph, access_token="old-token")

    assert (error.code, error.permanent, error.alert) == (190, True, True)
    assert "old-token" not in str(error)


def test_no_answer_in_time_leaves_the_outcome_unknown(graph: GraphServer) -> None:
    graph.fail_next(Fault(no_answer="hang", carried_out=True))

    error = failure(graph, timeout=0.3)

    assert error.outcome_unknown
    assert not error.permanent
    wait_until(lambda: graph.sent, "it was taken all the same")
    assert len(graph.sent) == 1


def test_a_reset_after_the_request_leaves_the_outcome_unknown(graph: GraphServer) -> None:
    graph.fail_next(Fault(no_answer="reset"))

    error = failure(graph)

    assert error.outcome_unknown
    assert graph.sent == []


@pytest.mark.parametrize(
    "raised",
    [httpx.ConnectTimeout("slow"), httpx.ConnectError("no such name"), httpx.PoolTimeout("")],
)
def test_what_fails_before_sending_is_safe_to_repeat(
    graph: GraphServer, raised: httpx.HTTPError
) -> None:
    error = failure(graph, transport=failing(raised))

    assert not error.permanent
    assert not error.outcome_unknown


@pytest.mark.parametrize(
    "raised",
    [
        httpx.ReadTimeout(""),
        httpx.WriteTimeout(""),
        httpx.ReadError(""),
        httpx.WriteError(""),
        httpx.RemoteProtocolError(""),
    ],
)
def test_what_fails_later_leaves_the_outcome_unknown(
    graph: GraphServer, raised: httpx.HTTPError
) -> None:
    assert failure(graph, transport=failing(raised)).outcome_unknown


def failing(error: httpx.HTTPError) -> httpx.MockTransport:
    def answer(request: httpx.Request) -> httpx.Response:
        raise error

    return httpx.MockTransport(answer)


@pytest.mark.parametrize(
    "url", ["", "graph.example", "ftp://127.0.0.1", "http://[x", "http://\x00"]
)
def test_an_unusable_url_needs_staff(graph: GraphServer, url: str) -> None:
    error = failure(graph, api_url=url)

    assert error.permanent


def test_the_token_is_nowhere_to_be_read(
    graph: GraphServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    graph.fail_next(Fault(answer=Answer(500, {})))

    error = failure(graph)
    provider_for(graph).send_text(to=PHONE, text="hello", callback_id="1")

    assert "secret-token" not in caplog.text + str(error) + repr(provider_for(graph))


def a_file(tmp_path: Path, content: bytes = b"%PDF-1.7", **changes: Any) -> OutgoingFile:
    place = tmp_path / "file"
    place.write_bytes(content)
    file = OutgoingFile("document", "application/pdf", "חשבון.pdf", lambda: place.open("rb"))
    return replace(file, **changes)


def test_a_file_is_uploaded_and_then_named(graph: GraphServer, tmp_path: Path) -> None:
    result = provider_for(graph).send_file(
        to=PHONE, file=a_file(tmp_path), caption="bill", callback_id="turn-1", reply_to="wamid.Q"
    )

    upload, message = graph.requests
    assert upload.path == f"/v24.0/{graph.phone_number_id}/media"
    [sent] = graph.sent
    assert sent.pop("id") == result.provider_message_id
    media_id = sent["document"]["id"]
    assert graph.files[media_id].content == b"%PDF-1.7"
    assert sent == {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": "15550100123",
        "type": "document",
        "document": {"id": media_id, "caption": "bill", "filename": "חשבון.pdf"},
        "context": {"message_id": "wamid.Q"},
        "biz_opaque_callback_data": "turn-1",
    }


@pytest.mark.parametrize(
    ("fault", "permanent"),
    [
        (Fault(no_answer="reset", carried_out=True), False),
        (Fault(answer=Answer(502, {})), False),
        (Fault(answer=graph_error(131000, "Something went wrong", status=500)), False),
        (Fault(answer=graph_error(100, "Invalid parameter")), True),
        (Fault(answer=Answer(200, {})), False),
    ],
)
def test_a_failed_upload_reaches_nobody(
    graph: GraphServer, tmp_path: Path, fault: Fault, permanent: bool
) -> None:
    graph.fail_next(fault)
    with pytest.raises(SendError) as caught:
        provider_for(graph).send_file(to=PHONE, file=a_file(tmp_path), caption="", callback_id="1")

    assert (caught.value.permanent, caught.value.outcome_unknown) == (permanent, False)
    assert graph.sent == []
