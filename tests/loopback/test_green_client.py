"""The Green API client against its stand-in."""

import logging
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryproject.foundation.integrations.loopback.httpd import Answer
from memoryproject.foundation.integrations.whatsapp.base import OutgoingFile, Recipient, SendError
from memoryproject.foundation.integrations.whatsapp.green.client import GreenProvider
from tests.loopback.green import GreenServer, quota_error
from tests.loopback.httpd import Fault
from tests.processes.waiting import wait_until

TOKEN = "d75b3a66374942c5b3c019c698abc2067e151558acbd412345"
PHONE = Recipient(whatsapp_chat="15550100123@c.us", phone="15550100123")
GROUP = Recipient(whatsapp_chat="120363000000000002@g.us", group_id="120363000000000002")
LID = Recipient(whatsapp_chat="99887766554433@lid")


@pytest.fixture
def green() -> Iterator[GreenServer]:
    with GreenServer(token=TOKEN) as server:
        yield server


def provider_for(green: GreenServer, **changes: Any) -> GreenProvider:
    arguments: dict[str, Any] = {
        "api_url": green.url,
        "id_instance": green.id_instance,
        "token": TOKEN,
        "timeout": 10.0,
    }
    return GreenProvider(**{**arguments, **changes})


def failure(green: GreenServer, **changes: Any) -> SendError:
    with pytest.raises(SendError) as caught:
        provider_for(green, **changes).send_text(to=PHONE, text="hello", callback_id="1")
    return caught.value


@pytest.mark.parametrize("to", [PHONE, GROUP, LID])
def test_text_goes_out(green: GreenServer, to: Recipient) -> None:
    result = provider_for(green).send_text(to=to, text="שלום 👋", callback_id="1")

    assert green.sent == [
        {
            "chatId": to.whatsapp_chat,
            "message": "שלום 👋",
            "linkPreview": False,
            "idMessage": result.provider_message_id,
        }
    ]


def test_reply_names_the_message(green: GreenServer) -> None:
    provider_for(green).send_text(to=PHONE, text="yes", callback_id="1", reply_to="Q1")

    assert green.sent[0]["quotedMessageId"] == "Q1"


def test_the_phone_decides_where_the_chat_has_another_name(green: GreenServer) -> None:
    merged = Recipient(whatsapp_chat="US.1@bsuid", phone="15550100123", bsuid="US.1")

    provider_for(green).send_text(to=merged, text="hello", callback_id="1")

    assert green.sent[0]["chatId"] == "15550100123@c.us"


def test_a_person_known_by_metas_id_alone_is_out_of_reach(green: GreenServer) -> None:
    with pytest.raises(SendError) as caught:
        provider_for(green).send_text(
            to=Recipient("US.1@bsuid", bsuid="US.1"), text="hello", callback_id="1"
        )

    assert caught.value.permanent
    assert green.requests == []


@pytest.mark.parametrize("text", ["", " ", "x" * 20_001])
def test_texts_that_the_provider_would_refuse_are_not_sent(green: GreenServer, text: str) -> None:
    with pytest.raises(SendError) as caught:
        provider_for(green).send_text(to=PHONE, text=text, callback_id="1")

    assert caught.value.permanent
    assert green.requests == []


@pytest.mark.parametrize(("typing", "shown"), [(True, ["15550100123@c.us"]), (False, [])])
def test_mark_read(green: GreenServer, typing: bool, shown: list[str]) -> None:
    provider_for(green).mark_read(provider_message_id="Q1", to=PHONE, typing=typing)

    assert green.reads == ["Q1"]
    assert green.typing == shown


@pytest.mark.parametrize(
    ("answer", "permanent", "unknown", "alert", "retry_after"),
    [
        (Answer(429, {}), False, False, False, 1.0),
        (Answer(429, {}, {"Retry-After": "4"}), False, False, False, 4.0),
        (quota_error(), True, False, True, None),
        (Answer(400, {"message": "Validation failed"}), True, False, False, None),
        (Answer(400, {"message": "Instance not authorized"}), True, False, True, None),
        (
            Answer(400, {"message": "instance in starting process try later"}),
            True,
            False,
            True,
            None,
        ),
        (Answer(401, {}), True, False, True, None),
        (Answer(403, {}), True, False, True, None),
        (Answer(404, {}), True, False, True, None),
        (Answer(500, {}), False, True, False, None),
        (Answer(502, {}), False, True, False, None),
        (Answer(200, {}), False, True, False, None),
    ],
)
def test_policy_by_status(
    green: GreenServer,
    answer: Answer,
    permanent: bool,
    unknown: bool,
    alert: bool,
    retry_after: float | None,
) -> None:
    green.fail_next(Fault(answer=answer))

    error = failure(green)

    told = (error.permanent, error.outcome_unknown, error.alert, error.retry_after)
    assert told == (permanent, unknown, alert, retry_after)


def test_no_answer_in_time_leaves_the_outcome_unknown(green: GreenServer) -> None:
    green.fail_next(Fault(no_answer="hang", carried_out=True))

    assert failure(green, timeout=0.3).outcome_unknown
    wait_until(lambda: green.sent, "it was taken all the same")
    assert len(green.sent) == 1


def test_the_token_is_nowhere_to_be_read(
    green: GreenServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="httpx")
    caplog.set_level(logging.DEBUG, logger="httpcore")
    provider = provider_for(green)
    provider.send_text(to=PHONE, text="hello", callback_id="1")
    # The stand-in's errors repeat the path, with the token in it, as Green API's do.
    errors = [failure(green, id_instance="7")]
    for fault in (
        Fault(answer=Answer(400, {"message": f"Cannot POST /waInstance1/sendMessage/{TOKEN}"})),
        Fault(answer=Answer(502, {"path": f"/x/{TOKEN}"})),
        Fault(no_answer="reset"),
    ):
        green.fail_next(fault)
        errors.append(failure(green))
    errors.append(failure(green, api_url="nonsense://x"))

    shown = "".join("".join(traceback.format_exception(error)) for error in errors)
    assert TOKEN not in caplog.text + shown + repr(provider)
    assert "HTTP Request: POST" in caplog.text


def test_a_file_goes_out(green: GreenServer, tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_bytes(b"pixels")
    file = OutgoingFile("image", "image/png", "מנורה.png", lambda: place.open("rb"))
    result = provider_for(green).send_file(
        to=PHONE, file=file, caption="שלום 👋", callback_id="1", reply_to="Q1"
    )

    [sent] = green.sent
    assert green.files[sent.pop("file")].content == b"pixels"
    assert sent == {
        "chatId": PHONE.whatsapp_chat,
        "fileName": "מנורה.png",
        "caption": "שלום 👋",
        "quotedMessageId": "Q1",
        "idMessage": result.provider_message_id,
    }


@pytest.mark.parametrize(
    ("fault", "outcome_unknown"),
    [
        (Fault(no_answer="reset", carried_out=True), True),
        (Fault(answer=Answer(500, {})), True),
        (Fault(answer=Answer(429, {})), False),
    ],
)
def test_a_file_of_which_no_answer_came_may_have_gone_out(
    green: GreenServer, tmp_path: Path, fault: Fault, outcome_unknown: bool
) -> None:
    place = tmp_path / "file"
    place.write_bytes(b"pixels")
    green.fail_next(fault)
    file = OutgoingFile("image", "image/png", "a.png", lambda: place.open("rb"))
    with pytest.raises(SendError) as caught:
        provider_for(green).send_file(to=PHONE, file=file, caption="", callback_id="1")

    assert caught.value.outcome_unknown == outcome_unknown
    assert not caught.value.permanent
    assert TOKEN not in str(caught.value)
