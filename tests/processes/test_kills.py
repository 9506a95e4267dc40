"""kill -9 anywhere: afterwards each message has exactly one answer, or is known as unconfirmed.

The stage has no schedules, so all that is taken up again is taken up by the program that answers,
which is started again here as a process manager would.
"""

from __future__ import annotations

import pytest

from tests.processes.installation import kill
from tests.processes.posting import cloud_value, new_phone
from tests.processes.stage import Stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

PAUSE = """
from django.utils import timezone
from memoryproject.foundation.audit.audit_events import SYSTEM
from sessions_app.models import Chat
from sessions_app.turns.turn_claims import chat_pause
chat_id = Chat.objects.get(whatsapp_chat="{phone}@c.us").pk
chat_pause(chat_id=chat_id, until=None, by=None, actor=SYSTEM, now=timezone.now())
"""


def kill_worker_in(live: Stage, phone: str) -> None:
    """kill -9 of the program that holds the lease of a chat's turn; then it is started again."""
    turns = live.database.turns(f"{phone}@c.us")
    owner = next(turn["lease_owner"] for turn in turns if turn["lease_token"])
    live.installation.kill_owner(owner)


def post_status(live: Stage, answer: str, status: str) -> None:
    """Meta's word on the one message with this text."""
    (sent,) = live.graph.sent_with(answer)
    payload = live.graph.status_payload(sent["id"], status, sent)
    assert live.post.cloud(payload).status_code == 200


def test_killed_during_the_model_call(live: Stage) -> None:
    phone = new_phone()
    hold = live.openai.hold_chat("killed in the call")
    for text in ("killed in the call", "said after it"):
        live.post.say(phone, text)
    wait_until(lambda: hold.reached, "the model is asked")

    kill_worker_in(live, phone)
    hold.release()

    answers = live.wait_for_answers(phone, 2)
    assert answers == ["answer to: killed in the call", "answer to: said after it"]
    said = live.database.messages(f"{phone}@c.us")
    assert [message["role"] for message in said].count("assistant") == 2
    first, _ = live.database.turns(f"{phone}@c.us")
    assert (first["state"], first["attempts"]) == ("sent", 2)


def test_killed_between_two_parts_of_a_long_answer(live: Stage) -> None:
    """The part that went out is not sent again, the one that did not is sent."""
    phone = new_phone()
    live.graph.refused.add("the second part")
    live.post.say(phone, "many words " * 400 + "the second part")
    wait_until(
        lambda: sum("the second part" in text for text in live.graph.tries) >= 2,
        "the second part is refused twice",
    )
    wait_until(
        lambda: (
            [part["state"] for part in live.database.parts(f"{phone}@c.us")] == ["sent", "waiting"]
        ),
        "it is on record that one part is out and the other is not",
    )

    kill_worker_in(live, phone)
    live.graph.refused.remove("the second part")

    first, second = live.wait_for_answers(phone, 2)
    assert first.startswith("answer to: many words")
    assert second.endswith("the second part")
    assert live.database.states(f"{phone}@c.us") == ["sent"]


def test_killed_inside_the_send_a_status_confirms_it(live: Stage) -> None:
    phone = new_phone()
    answer = "answer to: killed in the send"
    hold = live.graph.hold_answer(answer)
    live.post.say(phone, "killed in the send")
    wait_until(lambda: hold.reached, "the answer is being sent")

    kill_worker_in(live, phone)
    hold.release()
    live.post.say(phone, "and then")

    wait_until(lambda: len(live.graph.texts_to(phone)) >= 2, "the chat is not held up")
    wait_until(
        lambda: live.database.states(f"{phone}@c.us") == ["sending", "sent"],
        "the first answer's fate is unknown",
    )
    post_status(live, answer, "delivered")

    assert live.database.states(f"{phone}@c.us") == ["sent", "sent"]
    first = live.database.messages(f"{phone}@c.us")[1]
    assert (first["delivery_status"], first["was_received"]) == ("delivered", True)
    assert live.graph.texts_to(phone) == [answer, "answer to: and then"]


def test_killed_inside_the_send_and_never_confirmed(live: Stage) -> None:
    phone = new_phone()
    answer = "answer to: never confirmed"
    hold = live.graph.hold_answer(answer)
    live.post.say(phone, "never confirmed")
    wait_until(lambda: hold.reached, "the answer is being sent")

    kill_worker_in(live, phone)
    hold.release()
    live.sweep(unconfirmed_after_seconds=3600)
    assert live.database.states(f"{phone}@c.us") == ["sending"]
    live.sweep(unconfirmed_after_seconds=0)

    assert live.database.states(f"{phone}@c.us") == ["unconfirmed"]
    live.post.say(phone, "goes on")
    assert live.wait_for_answers(phone, 2) == [answer, "answer to: goes on"]
    post_status(live, answer, "sent")
    assert live.database.states(f"{phone}@c.us") == ["sent", "sent"]


def test_killed_when_its_answer_has_just_gone_out(live: Stage) -> None:
    phone = new_phone()
    for number in range(1, 4):
        live.post.say(phone, f"its end {number}")
        wanted = [f"answer to: its end {each}" for each in range(1, number + 1)]
        wait_until(lambda: live.graph.texts_to(phone), "an answer is out")
        kill([live.installation.programs["answer"]])
        live.installation.restart_dead()
        wait_until(lambda: len(live.graph.texts_to(phone)) >= number, "the answers are out")  # noqa: B023
        assert live.graph.texts_to(phone) == wanted
    # Killed before it noted that the answer is out, it leaves a send of unknown outcome.
    live.sweep(unconfirmed_after_seconds=0.0)
    live.wait_until_over(phone)


def test_killed_while_staff_pause_the_chat_the_answer_stays_held(live: Stage) -> None:
    phone, other = new_phone(), new_phone()
    hold = live.openai.hold_chat("paused meanwhile")
    live.post.say(phone, "paused meanwhile")
    wait_until(lambda: hold.reached, "the model is asked")
    (turn,) = live.database.turns(f"{phone}@c.us")

    live.installation.manage("shell", "-v", "0", "-c", PAUSE.format(phone=phone))
    live.installation.kill_owner(turn["lease_owner"])
    hold.release()

    live.post.say(phone, "and this")
    live.post.say(other, "somebody else")
    live.wait_for_answers(other, 1)
    live.wait_until_over(phone)
    assert live.database.states(f"{phone}@c.us") == ["held", "held"]
    assert live.graph.texts_to(phone) == []


def test_the_whole_cluster_is_killed_and_started_again(live: Stage) -> None:
    first, second = new_phone(), new_phone()
    hold = live.openai.hold_chat("cluster")
    for text in ("cluster one", "cluster two"):
        live.post.say(first, text)
    live.post.say(second, "cluster three")
    wait_until(lambda: hold.reached >= 2, "both chats are being answered")

    live.installation.kill_workers()
    hold.release()
    live.post.say(first, "nobody is there")
    live.installation.start_workers()

    answers = [f"answer to: {text}" for text in ("cluster one", "cluster two", "nobody is there")]
    assert live.wait_for_answers(first, 3) == answers
    assert live.wait_for_answers(second, 1) == ["answer to: cluster three"]


def test_everything_is_killed_with_postgresql_and_started_again(live: Stage) -> None:
    phone = new_phone()
    live.post.say(phone, "before the power cut")
    live.wait_for_answers(phone, 1)
    hold = live.openai.hold_chat("while it is cut")
    live.post.say(phone, "while it is cut")
    wait_until(lambda: hold.reached, "the model is asked")

    live.installation.kill_everything()
    hold.release()
    live.installation.start()

    answers = ["answer to: before the power cut", "answer to: while it is cut"]
    assert live.wait_for_answers(phone, 2) == answers
    said = [message["content"] for message in live.database.messages(f"{phone}@c.us")]
    assert said == ["before the power cut", answers[0], "while it is cut", answers[1]]
    assert live.post.cloud(cloud_value()).status_code == 200
