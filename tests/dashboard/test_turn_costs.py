"""What answers took and cost, in the list of answers: shown, filtered and sorted."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext

from sessions_app.models import Turn, TurnReplay
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db
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


def test_the_cost_of_each_answer_is_shown(admin_client: Client, answered: list[Turn]) -> None:
    page = html.unescape(admin_client.get(ANSWERS).content.decode())
    assert "USD\N{NO-BREAK SPACE}0.20" in page
    assert "USD\N{NO-BREAK SPACE}0.0020" in page
    assert "USD\N{NO-BREAK SPACE}0.0040" in page


def test_without_prices_there_is_no_cost(
    admin_client: Client, answered: list[Turn], settings: Any
) -> None:
    settings.MODEL_PRICES = {}
    answer = admin_client.get(ANSWERS)
    assert "USD" not in answer.content.decode()
    assert "dearest" not in answer.content.decode()
    assert len(listed(admin_client.get(ANSWERS, {"cost": "dearest"}))) == 3


def test_slow_answers_are_found_and_sorted_by_their_time(
    admin_client: Client, answered: list[Turn]
) -> None:
    assert listed(admin_client.get(ANSWERS, {"took": "5"})) == keys(answered, 2, 1)
    assert listed(admin_client.get(ANSWERS, {"took": "60"})) == keys(answered, 2)
    place = _place(admin_client, "took")
    slowest = admin_client.get(ANSWERS, {"took": "5", "o": f"-{place}"})
    assert listed(slowest) == keys(answered, 2, 1)
    fastest = admin_client.get(ANSWERS, {"took": "5", "o": str(place)})
    assert listed(fastest) == keys(answered, 1, 2)


def test_only_answers_that_went_out_are_slow(admin_client: Client, answered: list[Turn]) -> None:
    Turn.objects.filter(pk=answered[2].pk).update(state="failed")
    assert listed(admin_client.get(ANSWERS, {"took": "5"})) == keys(answered, 1)


def test_the_dearest_are_found_and_sorted_by_their_cost(
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


def test_the_list_is_sorted_by_time_and_cost_only_where_that_is_fast(
    admin_client: Client, answered: list[Turn]
) -> None:
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
