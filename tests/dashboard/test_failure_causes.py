"""Failed answers by their cause, and what staff do to all answers of one cause."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.errors.stored_errors import ErrorText
from sessions_app.models import AnswerResolved, OutboundPart, Turn, TurnReplay
from sessions_app.turns.answer_review import GroupResult, group_act
from tests.dashboard.staff import staff_with
from tests.shown import words_of
from tests.world import CLIENT, World, new_world

pytestmark = pytest.mark.django_db
FAILURES = "/admin/sessions_app/turn/failures/"
ACT = f"{FAILURES}act/"
VIEW = "sessions_app.view_turn"


@pytest.fixture(scope="module")
def five(module_rows: None) -> None:
    """Three answers that failed with a timeout, one with another error, and a good one."""
    world = new_world()
    for number in range(5):
        world.say(CLIENT, f"Message {number}")
    turns = list(Turn.objects.order_by("id"))
    OutboundPart.objects.exclude(turn=turns[4]).update(state="failed", content="An answer")
    bad = Turn.objects.exclude(pk=turns[4].pk)
    for turn, seconds in zip(bad.order_by("id"), (30, 30, 45, 0), strict=True):
        error = ErrorText("model_timeout", seconds=seconds)
        Turn.objects.filter(pk=turn.pk).update(state="failed", error=error)
    Turn.objects.filter(pk=turns[3].pk).update(error=ErrorText("model_status", status=500))
    TurnReplay.objects.update(model="small")


@pytest.fixture
def failed(five: None) -> list[Turn]:
    return list(Turn.objects.order_by("id"))


def sections(answer: Any) -> list[str]:
    found = re.findall(r"<section.*?</section>", answer.content.decode(), re.S)
    return [words_of(each) for each in found]


def posted(client: Client, place: int = 0) -> dict[str, str]:
    """The hidden fields of the forms of a cause."""
    shown = client.get(FAILURES).content.decode()
    section = re.findall(r"<section.*?</section>", shown, re.S)[place]
    return dict(re.findall(r'type="hidden" name="(cause|until)" value="([^"]+)"', section))


def states(turns: list[Turn]) -> list[str]:
    found = dict(Turn.objects.values_list("pk", "state"))
    return [found[turn.pk] for turn in turns]


def test_the_same_error_and_model_are_one_group(admin_client: Client, failed: list[Turn]) -> None:
    shown = sections(admin_client.get(FAILURES))
    assert len(shown) == 2
    assert "3 answers small" in shown[0]
    assert "The model server gave no answer within 45 seconds." in shown[0], "the newest one's"
    assert "1 answer small" in shown[1]
    TurnReplay.objects.filter(turn=failed[0]).update(model="large")
    assert len(sections(admin_client.get(FAILURES))) == 3


def test_another_status_is_another_cause(admin_client: Client, failed: list[Turn]) -> None:
    Turn.objects.filter(pk=failed[0].pk).update(error=ErrorText("model_status", status=429))
    shown = sections(admin_client.get(FAILURES))
    assert sum("answered 500" in each for each in shown) == 1
    assert sum("answered 429" in each for each in shown) == 1


def test_all_of_a_cause_are_retried_and_no_other(
    admin_client: Client, failed: list[Turn], world: World
) -> None:
    answer = admin_client.post(ACT, {**posted(admin_client), "do": "retry"}, follow=True)
    assert "3 answers are retried." in answer.content.decode()
    assert states(failed) == ["replied", "replied", "replied", "failed", "sent"]
    sent = len(world.provider.sent)
    world.work()
    assert len(world.provider.sent) == sent + 3
    assert AuditEvent.objects.filter(action="turn.resend").count() == 3


def test_all_of_a_cause_are_marked_as_reviewed(admin_client: Client, failed: list[Turn]) -> None:
    answer = admin_client.post(ACT, {**posted(admin_client), "do": "resolve"}, follow=True)
    assert "3 answers are marked as reviewed." in answer.content.decode()
    resolved = set(AnswerResolved.objects.values_list("turn", flat=True))
    assert resolved == {turn.pk for turn in failed[:3]}
    assert len(sections(admin_client.get(FAILURES))) == 1
    assert AuditEvent.objects.filter(action="answer.resolve").count() == 3
    assert states(failed)[:3] == ["failed"] * 3


def test_one_that_failed_since_the_page_was_loaded_is_left_alone(
    admin_client: Client, failed: list[Turn]
) -> None:
    before = posted(admin_client)
    Turn.objects.filter(pk=failed[4].pk).update(
        state="failed", error=ErrorText("model_timeout", seconds=30)
    )
    admin_client.post(ACT, {**before, "do": "resolve"})
    assert not AnswerResolved.objects.filter(turn=failed[4].pk).exists()
    assert AnswerResolved.objects.count() == 3


def test_a_second_click_does_nothing(admin_client: Client, failed: list[Turn]) -> None:
    fields = {**posted(admin_client), "do": "retry"}
    admin_client.post(ACT, fields)
    answer = admin_client.post(ACT, fields, follow=True)
    assert "Nothing was done: a colleague was faster." in answer.content.decode()
    assert AuditEvent.objects.filter(action="turn.resend").count() == 3


def test_what_cannot_be_changed_does_not_keep_the_others_from_their_turn(
    admin_client: Client, failed: list[Turn]
) -> None:
    fields = posted(admin_client)
    tried: list[int] = []

    def act(turn_id: int) -> bool:
        tried.append(turn_id)
        return turn_id != failed[0].pk

    result = group_act(key=fields["cause"], until=int(fields["until"]), act=act, most=1)
    assert tried == [failed[0].pk, failed[1].pk]
    assert result == GroupResult(done=1, left_alone=1, left=1)


def test_the_list_shows_the_answers_of_a_cause(admin_client: Client, failed: list[Turn]) -> None:
    key = posted(admin_client)["cause"]
    shown = admin_client.get("/admin/sessions_app/turn/", {"cause": key}).content.decode()
    assert {int(each) for each in re.findall(r"/admin/sessions_app/turn/(\d+)/change/", shown)} == {
        turn.pk for turn in failed[:3]
    }
    assert f'href="{FAILURES}"' in shown


def test_who_may_only_look_gets_no_buttons(failed: list[Turn]) -> None:
    client = staff_with(VIEW)
    shown = client.get(FAILURES).content.decode()
    assert "3 answers" in shown
    assert ACT not in shown
    fields = {"cause": "0" * 16, "until": "1"}
    assert client.post(ACT, {**fields, "do": "retry"}).status_code == 403
    assert client.post(ACT, {**fields, "do": "resolve"}).status_code == 403
    retries = staff_with(VIEW, "sessions_app.rerun_turn", name="noa")
    assert retries.post(ACT, {**fields, "do": "resolve"}).status_code == 403
    assert retries.post(ACT, {**fields, "do": "retry"}).status_code == 302
    assert staff_with(name="eli").get(FAILURES).status_code == 403


def test_the_page_takes_as_many_queries_for_many_failures(
    admin_client: Client, failed: list[Turn], django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(20):
        admin_client.get(FAILURES)
    assert AuditEvent.objects.filter(details={"list": "failures"}).exists()
