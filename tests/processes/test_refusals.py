"""What webhooks refuse, and what they take though it is strange."""

from __future__ import annotations

from collections.abc import Mapping

import httpx
import pytest

from memoryproject.foundation.integrations.loopback.providers import (
    body_bytes,
    sign,
    signed_headers,
    token_headers,
)
from tests.processes.installation import Installation
from tests.processes.posting import (
    APP_SECRET,
    WEBHOOK_TOKEN,
    Poster,
    cloud_text,
    green_text,
    new_phone,
)
from tests.processes.stage import Stage

pytestmark = pytest.mark.processes

Headers = Mapping[str, str | bytes]

MAX_SIZE = 3 * 1024 * 1024
# Python's own reader takes them for numbers; they are no JSON.
NO_NUMBERS = [b'{"a": NaN}', b'{"a": -Infinity}']
# What JSON can say and PostgreSQL can't keep.
UNSTORABLE = ["half \ud800 a sign", "the other \udc00 half", "nothing \x00 at all"]
WRONG_HEADERS: dict[str, list[Headers]] = {
    "cloud": [
        {},
        {"X-Hub-Signature-256": ""},
        {"X-Hub-Signature-256": "sha256="},
        {"X-Hub-Signature-256": sign("another secret", b"{}")},
        {"X-Hub-Signature-256": sign(APP_SECRET, b"another body")},
        {"X-Hub-Signature-256": sign(APP_SECRET, b"{}").removeprefix("sha256=")},
        {"X-Hub-Signature-256": b"sha256=\xd7\x90"},
        {"X-Hub-Signature-256": sign("", b"{}")},
    ],
    "green": [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer another-token"},
        {"Authorization": f"Bearer {WEBHOOK_TOKEN}"[:-1]},
        {"Authorization": b"Bearer \xd7\x90"},
    ],
}
WRONG = [(provider, headers) for provider, each in WRONG_HEADERS.items() for headers in each]


def assert_shown_well(answer: httpx.Response, status: int) -> None:
    assert answer.status_code == status
    assert "Traceback" not in answer.text
    assert "<html" not in answer.text


@pytest.mark.parametrize(("provider", "headers"), WRONG)
def test_without_the_right_proof(live: Stage, provider: str, headers: Headers) -> None:
    assert_shown_well(live.post.raw(provider, b"{}", headers), 401)


def test_without_a_secret_nobody_gets_in(live: Stage) -> None:
    """An unset secret is no open door, not even for who signs with an empty one."""
    bare = Installation(
        live.installation.folder,
        **{
            **live.installation.environment,
            "WHATSAPP_CLOUD_APP_SECRET": "",
            "GREEN_API_WEBHOOK_TOKEN": "",
        },
    )
    try:
        bare.start_program("web")
        bare.wait_until_ready()
        post = Poster(bare.url)
        for provider, headers in [*WRONG, ("cloud", signed_headers(APP_SECRET, b"{}"))]:
            assert_shown_well(post.raw(provider, b"{}", headers), 401)
        assert_shown_well(post.raw("green", b"{}", token_headers(WEBHOOK_TOKEN)), 401)
    finally:
        bare.stop_processes()


def test_a_body_of_3_mb_is_taken_and_one_above_it_is_not(live: Stage) -> None:
    phone = new_phone()
    payload = cloud_text(phone, "a long letter")
    payload["padding"] = ""
    payload["padding"] = "x" * (MAX_SIZE - len(body_bytes(payload)))
    body = body_bytes(payload)
    assert len(body) == MAX_SIZE

    larger = body + b" "
    assert_shown_well(live.post.raw("cloud", larger, signed_headers(APP_SECRET, larger)), 413)
    assert_shown_well(live.post.raw("green", larger, token_headers(WEBHOOK_TOKEN)), 413)
    assert_shown_well(live.post.raw("cloud", body, signed_headers(APP_SECRET, body)), 200)
    assert live.wait_for_answers(phone, 1) == ["answer to: a long letter"]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"text"', b"\xff\xfe", b"[" * 100_000, *NO_NUMBERS],
    ids=repr,
)
def test_broken_json(live: Stage, body: bytes) -> None:
    assert_shown_well(live.post.raw("cloud", body, signed_headers(APP_SECRET, body)), 400)
    assert_shown_well(live.post.raw("green", body, token_headers(WEBHOOK_TOKEN)), 400)


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"object": "whatsapp_business_account", "entry": [{"changes": [{"field": "new"}]}]}',
        b'{"object": 7, "entry": {"changes": null}, "extra": [[[]]]}',
        b'{"typeWebhook": "somethingNew", "idMessage": null, "instanceData": []}',
        b'{"typeWebhook": "incomingMessageReceived", "messageData": {"typeMessage": 9}}',
    ],
    ids=repr,
)
def test_what_nobody_knows_is_taken(live: Stage, body: bytes) -> None:
    """Anything else than 200 would make the provider repeat it for days."""
    assert_shown_well(live.post.raw("cloud", body, signed_headers(APP_SECRET, body)), 200)
    assert_shown_well(live.post.raw("green", body, token_headers(WEBHOOK_TOKEN)), 200)


def test_unknown_fields_beside_a_text_do_not_hide_it(live: Stage) -> None:
    phone = new_phone()
    payload = cloud_text(phone, "with strange company")
    value = payload["entry"][0]["changes"][0]["value"]
    value["messages"][0]["mood"] = {"is": ["new"]}
    value["messages"].insert(0, "rubbish")
    value["future"] = True

    assert_shown_well(live.post.cloud(payload), 200)
    assert live.wait_for_answers(phone, 1) == ["answer to: with strange company"]


@pytest.mark.parametrize("text", UNSTORABLE, ids=ascii)
def test_texts_that_cannot_be_kept_as_they_are(live: Stage, text: str) -> None:
    """Whatever becomes of the strange character: the message is there, and answered once."""
    phone = new_phone()
    payload = cloud_text(phone, text)
    value = payload["entry"][0]["changes"][0]["value"]
    value["contacts"][0]["profile"]["name"] = text
    value["messages"][0]["id"] += text
    value["messages"][0][text] = text

    for _ in range(2):
        assert_shown_well(live.post.cloud(payload), 200)

    (answer,) = live.wait_for_answers(phone, 1)
    asked, answered = live.database.messages(f"{phone}@c.us")
    words = [word for word in text.split() if word.isalpha()]
    assert [word for word in asked["content"].split() if word in words] == words
    assert (answered["content"], answered["delivery_status"]) == (answer, "sent")


@pytest.mark.parametrize("text", UNSTORABLE, ids=ascii)
def test_the_same_from_the_other_provider(live: Stage, text: str) -> None:
    phone = new_phone()
    payload = green_text(phone, text)
    payload["idMessage"] += text
    payload["senderData"]["senderName"] = text

    for _ in range(2):
        assert_shown_well(live.post.green(payload), 200)

    live.wait_until_over(phone)
    asked, answered = live.database.messages(f"{phone}@c.us")
    sent = [each["message"] for each in live.green.sent if each["chatId"] == f"{phone}@c.us"]
    assert sent == [answered["content"]]
    assert asked["content"].split()[0] == text.split()[0]


def test_the_handshake(live: Stage) -> None:
    address = f"{live.installation.url}/webhooks/whatsapp/cloud/"
    asked = {"hub.mode": "subscribe", "hub.challenge": "<b>1158201444</b>"}

    right = {**asked, "hub.verify_token": "verify-token-of-tests"}
    answer = httpx.get(address, params=right, trust_env=False)
    assert (answer.status_code, answer.text) == (200, "<b>1158201444</b>")
    assert answer.headers["content-type"].startswith("text/plain")
    for wrong in ({}, {"hub.verify_token": ""}, {"hub.verify_token": "another"}):
        refused = httpx.get(address, params={**asked, **wrong}, trust_env=False)
        assert_shown_well(refused, 403)
