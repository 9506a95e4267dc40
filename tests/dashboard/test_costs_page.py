"""The page of costs: by day, model and person, in a currency, and as CSV."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memoryproject.foundation.admin_kit.display import cost_shown, small_cost_shown
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import Chat, UsageDay
from tests.dashboard.test_dashboard_page import page, person, text, tiles
from tests.world import CLIENT, OTHER_CLIENT, World

pytestmark = pytest.mark.django_db
COSTS = "/admin/costs/"
PRICES = {"scripted": (1_000.0, 2_000.0)}


def use(chat: Chat, days_ago: int, cost: str, calls: int = 1) -> None:
    UsageDay.objects.create(
        chat=chat,
        day=timezone.localdate() - timedelta(days=days_ago),
        model_calls=calls,
        prompt_tokens=1_000 * calls,
        completion_tokens=10 * calls,
        cost=Decimal(cost),
    )


@pytest.fixture
def used(world: World) -> World:
    world.say(CLIENT, "Hello")
    world.say(OTHER_CLIENT, "Hello")
    Chat.objects.filter(whatsapp_chat=CLIENT).update(staff_name="Dana Sample")
    Chat.objects.filter(whatsapp_chat=OTHER_CLIENT).update(client_name="Omar Sample")
    UsageDay.objects.all().delete()
    use(world.chat(CLIENT), 0, "0.40", 3)
    use(world.chat(OTHER_CLIENT), 0, "1.10", 2)
    use(world.chat(OTHER_CLIENT), 8, "2.25", 4)
    return world


def rows(client: Client, table: str, period: str) -> list[list[str]]:
    answer = client.get(COSTS, {"table": table, "period": period})
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert "attachment" in answer["Content-Disposition"]
    written = answer.getvalue().decode("utf-8-sig")
    return list(csv.reader(io.StringIO(written)))


@override_settings(MODEL_PRICES=PRICES, MODEL_CURRENCY="ILS")
def test_costs_of_a_period_by_day_and_by_person(admin_client: Client, used: World) -> None:
    shown = text(admin_client.get(COSTS, {"period": "7"}).content.decode())
    assert "ILS\xa01.50 for answers" in shown.replace("ILS 1.50", "ILS\xa01.50")
    assert shown.index("Omar Sample") < shown.index("Dana Sample"), "who cost most is first"
    month = text(admin_client.get(COSTS, {"period": "30"}).content.decode())
    assert "3.75" in month
    assert text(admin_client.get(COSTS, {"period": "nonsense"}).content.decode()) == month


@override_settings(MODEL_PRICES=PRICES)
def test_each_table_is_a_csv_and_taking_it_is_audited(admin_client: Client, used: World) -> None:
    today = timezone.localdate()
    days = rows(admin_client, "days", "30")
    assert days[0] == [
        *("day", "model_calls", "prompt_tokens", "completion_tokens", "cost", "currency")
    ]
    assert len(days) == 31, "a day without any use has a row, too"
    assert days[1] == [today.isoformat(), "5", "5000", "50", "1.500000", "USD"]
    assert days[9][0] == (today - timedelta(days=8)).isoformat()
    assert days[9][4] == "2.250000"
    chats = rows(admin_client, "chats", "30")
    assert [(row[0], row[4]) for row in chats[1:]] == [
        (OTHER_CLIENT, "3.350000"),
        (CLIENT, "0.400000"),
    ]
    assert rows(admin_client, "models", "today")[1][0] == "scripted"
    taken = AuditEvent.objects.filter(action="export", object_type="costs").order_by("id")
    assert [event.details for event in taken] == [
        {"table": "days", "rows": 30},
        {"table": "chats", "rows": 2},
        {"table": "models", "rows": 1},
    ]
    assert admin_client.get(COSTS, {"table": "nonsense"}).status_code == 400


def test_who_may_not_see_people_sees_no_people(used: World) -> None:
    reader = person("sessions_app.view_turn")
    shown = reader.get(COSTS).content.decode()
    assert "By day" in shown
    assert "By person" not in shown
    assert CLIENT.partition("@")[0] not in shown
    assert reader.get(COSTS, {"table": "chats"}).status_code == 403


@override_settings(MODEL_PRICES={})
def test_without_prices_the_page_says_what_to_set(admin_client: Client, used: World) -> None:
    shown = admin_client.get(COSTS).content.decode()
    assert "No prices are set" in shown
    assert "no price" in shown
    assert "0.00" not in text(shown[shown.index("<main") :])
    assert "/admin/operations/settings/" in shown


def test_an_empty_period_says_so(admin_client: Client) -> None:
    assert "No model was used in this period." in admin_client.get(COSTS).content.decode()


def test_home_leads_to_the_costs(admin_client: Client, used: World) -> None:
    assert 'href="/admin/costs/?period=today"' in tiles(page(admin_client))["tokens"]


def test_more_people_need_no_more_queries(admin_client: Client, used: World) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            admin_client.get(COSTS)
        return len(captured)

    admin_client.get(COSTS)
    before = queries()
    for number in range(8):
        use(Chat.objects.create(whatsapp_chat=f"1555022{number:04}@c.us"), 0, "0.1")
    assert queries() == before


def test_costs_have_a_currency_and_sensible_digits() -> None:
    def plain(shown: str) -> str:
        return shown.replace("\xa0", " ")

    assert plain(cost_shown(0)) == "USD 0.00"
    assert plain(cost_shown(0.00009)) == "under USD 0.01"
    assert plain(cost_shown(Decimal("1234.567"))) == "USD 1,234.57"
    assert plain(small_cost_shown(0.00009)) == "USD 0.000090"
    assert plain(small_cost_shown(0.0123)) == "USD 0.012"
    assert plain(small_cost_shown(2.5)) == "USD 2.50"
    assert plain(small_cost_shown(0)) == "USD 0.00"
