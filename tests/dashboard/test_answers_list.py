"""The list of answers: failed ones by their cause, and what answers took and cost."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.errors.stored_errors import ErrorText
from sessions_app.models import AnswerResolved, OutboundPart, Turn, TurnReplay
from sessions_app.turns.answer_review import GroupResult, group_act
from tests.shown import words_of
from tests.world import CLIENT, World, new_world

pytestmark = pytest.mark.django_db


FAILURES = "/admin/sessions_app/turn/failures/"
ACT = f"{FAILURES}act/"


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
    of_cause = admin_client.get(ANSWERS, {"cause": posted(admin_client)["cause"]})
    assert set(listed(of_cause)) == {turn.pk for turn in failed[:3]}
    assert f'href="{FAILURES}"' in of_cause.content.decode()
    TurnReplay.objects.filter(turn=failed[0]).update(model="large")
    assert len(sections(admin_client.get(FAILURES))) == 3


def test_all_of_a_cause_are_retried(admin_client: Client, failed: list[Turn], world: World) -> None:
    """Or they are marked as reviewed."""
    fields = posted(admin_client)
    answer = admin_client.post(ACT, {**fields, "do": "resolve"}, follow=True)
    assert "3 answers are marked as reviewed." in answer.content.decode()
    resolved = AnswerResolved.objects.all()
    assert {each.turn_id for each in resolved} == {turn.pk for turn in failed[:3]}
    assert len(sections(admin_client.get(FAILURES))) == 1
    assert AuditEvent.objects.filter(action="answer.resolve").count() == 3
    assert states(failed) == [*["failed"] * 4, "sent"]
    resolved.delete()
    answer = admin_client.post(ACT, {**fields, "do": "retry"}, follow=True)
    assert "3 answers are retried." in answer.content.decode()
    assert states(failed) == ["replied", "replied", "replied", "failed", "sent"]
    sent = len(world.provider.sent)
    world.work()
    assert len(world.provider.sent) == sent + 3
    assert AuditEvent.objects.filter(action="turn.resend").count() == 3


def test_one_that_failed_meanwhile_is_left_alone(admin_client: Client, failed: list[Turn]) -> None:
    before = posted(admin_client)
    Turn.objects.filter(pk=failed[4].pk).update(
        state="failed", error=ErrorText("model_timeout", seconds=30)
    )
    admin_client.post(ACT, {**before, "do": "resolve"})
    assert not AnswerResolved.objects.filter(turn=failed[4].pk).exists()
    assert AnswerResolved.objects.count() == 3


def test_what_stays_as_it_is_holds_up_none(admin_client: Client, failed: list[Turn]) -> None:
    fields = posted(admin_client)
    tried: list[int] = []

    def act(turn_id: int) -> bool:
        tried.append(turn_id)
        return turn_id != failed[0].pk

    result = group_act(key=fields["cause"], until=int(fields["until"]), act=act, most=1)
    assert tried == [failed[0].pk, failed[1].pk]
    assert result == GroupResult(done=1, left_alone=1, left=1)


ANSWERS = "/admin/sessions_app/turn/"
COLUMNS = ("took", "cost")


@pytest.fixture
def answered(world: World, settings: Any) -> list[Turn]:
    """Answers of 1, 20 and 90 seconds; the second one's model has a dated name, and is dear."""
    settings.MODEL_PRICES = {"small": (1.0, 1.0), "gpt-4o": (100.0, 100.0)}
    settings.OPENAI_MODEL = "small"
    for text in ("One", "Two", "Three"):
        world.say(CLIENT, text)
    turns = list(Turn.objects.order_by("id"))
    for turn, seconds in zip(turns, (1, 20, 90), strict=True):
        end = F("created_at") + timedelta(seconds=seconds)
        Turn.objects.filter(pk=turn.pk).update(finished_at=end)
    TurnReplay.objects.update(model="small", prompt_tokens=1_000, completion_tokens=1_000)
    TurnReplay.objects.filter(turn=turns[1]).update(model="gpt-4o-2026-01-01")
    TurnReplay.objects.filter(turn=turns[2]).update(prompt_tokens=3_000)
    return turns


def listed(answer: Any) -> list[int]:
    found = re.findall(r"/admin/sessions_app/turn/(\d+)/change/", answer.content.decode())
    return list(dict.fromkeys(int(key) for key in found))


def columns(answer: Any) -> list[str]:
    """The names of the columns by which the list can be sorted."""
    found = re.findall(r'<a href="\?[^"]*\bo=[^"]*"[^>]*>(.*?)</a>', answer.content.decode(), re.S)
    names = [html.unescape(re.sub(r"<[^>]+>", "", name)).strip().lower() for name in found]
    return [name for name in names if name]


def keys(turns: list[Turn], *places: int) -> list[int]:
    return [turns[place].pk for place in places]


def test_the_cost_of_each_answer_is_shown_where_there_are_prices(
    admin_client: Client, answered: list[Turn], settings: Any
) -> None:
    page = html.unescape(admin_client.get(ANSWERS).content.decode())
    for cost in ("0.20", "0.0020", "0.0040"):
        assert f"USD\N{NO-BREAK SPACE}{cost}" in page
    settings.MODEL_PRICES = {}
    page = admin_client.get(ANSWERS).content.decode()
    assert "USD" not in page
    assert "dearest" not in page
    assert len(listed(admin_client.get(ANSWERS, {"cost": "dearest"}))) == 3


def test_slow_answers_are_found_and_sorted(admin_client: Client, answered: list[Turn]) -> None:
    assert listed(admin_client.get(ANSWERS, {"took": "5"})) == keys(answered, 2, 1)
    assert listed(admin_client.get(ANSWERS, {"took": "60"})) == keys(answered, 2)
    place = _place(admin_client, "took")
    slowest = admin_client.get(ANSWERS, {"took": "5", "o": f"-{place}"})
    assert listed(slowest) == keys(answered, 2, 1)
    fastest = admin_client.get(ANSWERS, {"took": "5", "o": str(place)})
    assert listed(fastest) == keys(answered, 1, 2)


def test_the_dearest_are_found_by_cost(
    admin_client: Client, answered: list[Turn], settings: Any
) -> None:
    TurnReplay.objects.filter(turn=answered[0]).update(prompt_tokens=None)
    answer = admin_client.get(ANSWERS, {"cost": "dearest"})
    assert listed(answer) == keys(answered, 2, 1), "what has no tokens has no cost"
    place = _place(admin_client, "cost")
    dearest = admin_client.get(ANSWERS, {"cost": "dearest", "o": f"-{place}"})
    assert listed(dearest) == keys(answered, 1, 2)
    settings.MODEL_PRICES = {"small": (100.0, 100.0), "gpt-4o": (1.0, 1.0)}
    dearest = admin_client.get(ANSWERS, {"cost": "dearest", "o": f"-{place}"})
    assert listed(dearest) == keys(answered, 2, 1), "by the prices of today"


def test_the_list_is_sorted_where_it_is_fast(admin_client: Client, answered: list[Turn]) -> None:
    assert not set(columns(admin_client.get(ANSWERS))) & set(COLUMNS)
    assert "took" in columns(admin_client.get(ANSWERS, {"took": "5"}))
    assert "cost" in columns(admin_client.get(ANSWERS, {"cost": "dearest"}))


def test_an_index_serves_the_slowest(admin_client: Client, answered: list[Turn]) -> None:
    place = _place(admin_client, "took")
    with CaptureQueriesContext(connection) as queries:
        admin_client.get(ANSWERS, {"took": "5", "o": f"-{place}"})
    order = 'ORDER BY ("sessions_app_turn"."finished_at" - "sessions_app_turn"."created_at")'
    rows = next(query["sql"] for query in queries if order in query["sql"])
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_sort = off")
        cursor.execute("EXPLAIN " + rows)
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "turns_by_duration" in plan


def _place(client: Client, name: str) -> int:
    """The number of a column in the address that sorts by it."""
    query = {"took": {"took": "5"}, "cost": {"cost": "dearest"}}[name]
    shown = html.unescape(client.get(ANSWERS, query).content.decode())
    found = re.findall(rf'<a href="\?[^"]*\bo=-?(\d+)[^"]*"[^>]*>\s*{name}', shown, re.I)
    return int(found[0])


class TestWhatTheListShows:
    """A row says what was asked, what was answered and what was recalled."""

    def rows(self, client: Client) -> list[str]:
        shown = client.get(ANSWERS).content.decode()
        return [words_of(row) for row in re.findall(r'<tr class="data-row">.*?</tr>', shown, re.S)]

    def test_question_answer_and_recalled(self, admin_client: Client) -> None:
        world = new_world()
        world.say(CLIENT, "/remember The gate code is 4321")
        world.say(CLIENT, "What is the gate code?")
        row = self.rows(admin_client)[0]
        reply = Turn.objects.order_by("id").last().reply
        assert "What is the gate code?" in row
        assert reply is not None
        assert reply.content[:100] in row
        assert "recalled: The gate code is 4321" in row

    def test_a_note_is_no_text_for_those_who_may_not_read(
        self, admin_client: Client, client: Client
    ) -> None:
        new_world().say(CLIENT, "A private question")
        reader = User.objects.create_user("reader", is_staff=True)
        reader.user_permissions.set(Permission.objects.filter(codename="view_turn"))
        client.force_login(reader)
        assert "A private question" in self.rows(admin_client)[0]
        assert "A private question" not in self.rows(client)[0]

    def test_a_long_list_costs_no_more_statements(self, admin_client: Client) -> None:
        world = new_world()
        counts = []
        for number in range(6):
            world.say(CLIENT, f"Question {number}?")
            if number in (0, 5):
                self.rows(admin_client)
                with CaptureQueriesContext(connection) as run:
                    self.rows(admin_client)
                counts.append(len(run))
        assert counts[0] == counts[1]
