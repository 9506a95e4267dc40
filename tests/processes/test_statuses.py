"""What the providers report about our messages, in whatever order it comes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.processes.posting import green_text, new_phone
from tests.processes.stage import Stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes


def answer_in(live: Stage, phone: str) -> tuple[str, bool]:
    """Delivery status and was_received of a chat's last message."""
    message = live.database.messages(f"{phone}@c.us")[-1]
    return message["delivery_status"], message["was_received"]


def report(live: Stage, sent: dict[str, Any], status: str) -> None:
    payload = live.graph.status_payload(sent["id"], status, sent)
    assert live.post.cloud(payload).status_code == 200


def test_statuses_move_up_and_never_down(live: Stage) -> None:
    phone = new_phone()
    live.post.say(phone, "how far did it get")
    live.wait_for_answers(phone, 1)
    (sent,) = live.graph.sent_with("how far did it get")
    seen = [answer_in(live, phone)]

    for status in ("delivered", "sent", "read", "delivered"):
        report(live, sent, status)
        seen.append(answer_in(live, phone))

    assert seen == [
        ("sent", False),
        ("delivered", True),
        ("delivered", True),
        ("read", True),
        ("read", True),
    ]


def test_a_failure_is_final(live: Stage) -> None:
    phone = new_phone()
    live.post.say(phone, "will not arrive")
    live.wait_for_answers(phone, 1)
    (sent,) = live.graph.sent_with("will not arrive")

    for status in ("failed", "delivered"):
        report(live, sent, status)

    assert answer_in(live, phone) == ("failed", False)


@pytest.mark.parametrize("with_our_id", [True, False])
def test_statuses_before_our_own_commit(live: Stage, with_our_id: bool) -> None:
    """Meta may report on a message before we have stored that it took it."""
    phone = new_phone()
    text = f"faster than us {with_our_id}"
    hold = live.graph.hold_answer(text)
    live.post.say(phone, text)
    wait_until(lambda: hold.reached, "the answer is being sent")
    (sent,) = live.graph.sent_with(text)
    if not with_our_id:
        sent = {**sent, "biz_opaque_callback_data": ""}

    for status in ("read", "sent", "delivered"):
        report(live, sent, status)
    hold.release()
    live.wait_for_answers(phone, 1)

    wait_until(lambda: answer_in(live, phone) == ("read", True), "the statuses count")
    (part,) = live.database.parts(f"{phone}@c.us")
    assert (part["state"], part["provider_message_id"]) == ("sent", sent["id"])
    assert live.database.messages(f"{phone}@c.us")[-1]["provider_message_id"] == sent["id"]


def test_meta_reports_by_itself(live: Stage) -> None:
    phone = new_phone()
    live.graph.statuses = ("sent", "delivered", "read")
    live.post.say(phone, "reported by itself")
    live.wait_for_answers(phone, 1)
    live.graph.statuses = ()

    wait_until(lambda: answer_in(live, phone) == ("read", True), "all three were reported")
    live.graph.wait_until_reported()
    assert set(live.graph.outcomes) == {200}
    assert len(live.graph.texts_to(phone)) == 1


def test_green_api_shows_our_own_message_and_reports(live: Stage) -> None:
    """Its webhook about what we sent must not be taken for somebody's message."""
    phone = new_phone()
    live.green.statuses = ("sent", "delivered", "read")
    live.green.webhook_url = f"{live.installation.url}/webhooks/whatsapp/green/"
    live.post.green(green_text(phone, "by the other provider"))
    wait_until(lambda: live.green.sent, "an answer by Green API")
    wait_until(lambda: answer_in(live, phone) == ("read", True), "all three were reported")
    live.green.statuses = ()
    live.green.webhook_url = ""
    live.wait_until_over(phone)

    to_them = [sent["message"] for sent in live.green.sent if sent["chatId"] == f"{phone}@c.us"]
    assert to_them == ["answer to: by the other provider"]
    assert len(live.database.messages(f"{phone}@c.us")) == 2
    assert live.graph.texts_to(phone) == []
