"""The dashboard's page: who sees which figures, where they lead, and what it costs."""

from __future__ import annotations

import csv
import html
import io
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, override_settings
from django.utils import timezone
from django_q.brokers import get_broker
from django_q.models import OrmQ, Schedule
from django_q.signing import SignedPackage

from memories_app.models import Memory, MergeProposal, ProposalMemory
from memoryproject.foundation.admin_kit.list_filters import DAYS
from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.llm.base import ChatModelError, ChatRequest
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.staff_site.dashboard.rollups import rollups_recount
from sessions_app.conversations.session_lifecycle import activity_recount
from sessions_app.models import (
    AnswerResolved,
    Chat,
    CheckQuestion,
    InboundDelivery,
    Message,
    Turn,
    TurnReplay,
    UsageDay,
)
from sessions_app.models.deliveries import UNPROCESSED
from sessions_app.models.messages import ASKING
from sessions_app.turns.answer_review import answer_rate
from tests.dashboard.staff import page, staff_with
from tests.remembering import remember
from tests.shown import words_of
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, message_from, new_world

pytestmark = pytest.mark.django_db

FRAGMENT, COSTS = "/admin/dashboard/figures/", "/admin/costs/"
TILE = re.compile(r'<li id="figure-(\w+)" class="figure([^"]*)".*?</li>', re.S)
LINK = re.compile(r'<a href="([^"]+)"[^>]*>([^<]+)</a>')
PRICES = {"scripted": (1_000.0, 2_000.0)}
# The figures that each right shows.
KEYS = {
    "sessions_app.view_message": "messages",
    "sessions_app.view_chat": "attention chats limits",
    "sessions_app.view_turn": "answers_review answers held failed missed unknown rated_bad"
    " helped time tokens waiting",
    "memories_app.view_memory": "attention promises added",
    "sessions_app.view_forgetreceipt": "forgotten",
    "dashboard.operate_server": "queue workers schedules storage",
}


def home(client: Client, period: str = "today") -> str:
    return page(client, "/admin/", period=period)


def tiles(shown: str) -> dict[str, str]:
    """What stands in each figure's place."""
    return {found[1]: found[0] for found in TILE.finditer(shown)}


def figures(shown: str) -> dict[str, str]:
    """The same in words."""
    return {key: words_of(tile) for key, tile in tiles(shown).items()}


def tones(shown: str) -> dict[str, str]:
    return {found[1]: found[2].strip() for found in TILE.finditer(shown)}


def led_to(client: Client, address: str) -> int:
    """How many rows the list has; the inbox is a page of its own."""
    answer = client.get(html.unescape(address))
    assert answer.status_code == 200, address
    context: Any = answer.context
    if "needs=1" in address:
        return answer.content.decode().count('<li class="chat')
    return int(context["cl"].result_count if "cl" in context else context["page"].paginator.count)


@pytest.fixture
def busy(busy_rows: None, world: World) -> World:
    return world


@pytest.fixture(scope="module")
def busy_rows(module_rows: None) -> None:
    """Something of everything, today and on earlier days."""
    world = new_world()
    for number in range(4):
        world.say(CLIENT, f"question {number}")
    world.remember(GODFATHER, "The shop opens at nine")
    world.remember(CLIENT, "My dog is called Rex")
    world.say(OTHER_CLIENT, "hello")
    world.receive(message_from(CLIENT, "too late", timestamp=timezone.now() - timedelta(days=2)))
    first, second, *_ = Turn.objects.order_by("id")
    Turn.objects.filter(pk=first.pk).update(state="failed")
    earlier = timezone.now() - timedelta(days=4)
    Turn.objects.filter(pk=second.pk).update(created_at=earlier)
    Message.objects.filter(pk__in=[second.message_id, second.reply_id]).update(received_at=earlier)
    key = Memory.objects.get(content__contains="Rex").pk
    world.forget("memory", key)


@pytest.mark.parametrize("period", DAYS)
def test_each_figure_leads_to_its_list(busy: World, admin_client: Client, period: str) -> None:
    shown = home(admin_client, period)
    for key in ("time", "tokens"):
        # They lead to the turns that they are of, which are others in number.
        shown = shown.replace(tiles(shown)[key], "")
    links = [link for link in LINK.findall(shown) if "when=" in link[0]]
    assert len(links) > 12
    for address, told in links:
        assert led_to(admin_client, address) == int(told.split()[0].replace(",", "")), address


@pytest.fixture
def all_waits(busy: World, admin_user: User) -> None:
    """Of each figure something that it counts, and something near it that it doesn't."""
    now = timezone.now()
    first, second, third = Turn.objects.filter(state="sent", by_hand=False).order_by("-id")[:3]
    Message.objects.filter(turn__in=[first, second, third]).update(terms=[ASKING])
    for turn, recalled in ((first, []), (second, [{"source": "memory", "nearest": True}])):
        TurnReplay.objects.update_or_create(
            turn=turn, defaults={"recalled": recalled, "model": "m"}
        )
    memory = [{"source": "memory"}]
    TurnReplay.objects.update_or_create(turn=third, defaults={"recalled": memory, "model": "m"})
    # It counts as unknown although staff saw to it.
    AnswerResolved.objects.create(turn=first, resolved_at=now)
    for state in ("held", "pending"):
        Turn.objects.create(chat=first.chat, provider="cloud", asked_at=now, state=state)
    for turn, is_good in ((third, False), (second, True)):
        answer_rate(turn_id=turn.pk, user=admin_user, is_good=is_good, reason="", actor=SYSTEM)
    for number in range(3):
        due = None if number == 2 else (timezone.localdate() - timedelta(days=number)).isoformat()
        promise = {"state": "open", "by": "assistant", "due": due}
        text = f"Promised: thing {number} of many"
        remember(text, type="promise", metadata={"promise": promise})
    remember("Perhaps Rex likes bones", proposed=True)
    parts = [remember(f"Dana likes tea {number}") for number in range(2)]
    made = MergeProposal.objects.create(kind="merge", content="x", similarity=0.9, alike_key="x")
    for number, each in enumerate(parts):
        ProposalMemory.objects.create(proposal=made, memory=each, number=number)
    fails = {"state": "fails", "since": now, "passed_at": now}
    CheckQuestion.objects.create(text="Where are you?", **fails)
    CheckQuestion.objects.create(text="When do you open?", state="fails", since=now)
    UsageDay.objects.filter(chat=first.chat).update(reached="limit_model_calls", is_owner=False)
    InboundDelivery.objects.create(provider="cloud", outcome=UNPROCESSED, delivery_key="x")
    for lock in (now - timedelta(minutes=1), now + timedelta(minutes=1)):
        OrmQ.objects.create(
            key=get_broker().list_key, payload=SignedPackage.dumps({"func": "x"}), lock=lock
        )


LED = (
    "attention answers_review promises regressed unknown held failed missed rated_bad answers"
    " messages chats added forgotten waiting limits unprocessed queue"
)


def test_each_figure_has_as_many_rows_behind_it(all_waits: None, admin_client: Client) -> None:
    shown = tiles(home(admin_client, "7"))
    for key in LED.split():
        links = [(found, re.search(r"[\d,]+", text)) for found, text in LINK.findall(shown[key])]
        numbers = [(address, int(text[0].replace(",", ""))) for address, text in links if text]
        assert numbers, key
        assert numbers[0][1] > 0, key
        # A note may lead to the one thing that it names.
        for address, number in (each for each in numbers if "/change/" not in each[0]):
            assert (key, led_to(admin_client, address)) == (key, number), address


def test_figures_and_charts_are_told_in_words(busy: World, admin_client: Client) -> None:
    shown = home(admin_client)
    assert (
        figures(shown).items()
        >= {
            "messages": "Messages 11 6 from people 5 from the assistant",
            "chats": "Active chats 3",
            "answers": "Answers 5",
            "failed": "Failed 1",
            "added": "Memories added 1",
            "forgotten": "Erasures 1 with 1 memory",
        }.items()
    )
    assert figures(shown)["missed"].startswith("Too late to answer 1")
    assert "95 % under" in figures(shown)["time"]
    assert "no price set for scripted" in figures(shown)["tokens"]
    with override_settings(MODEL_PRICES=PRICES):
        priced = figures(home(admin_client))["tokens"]
    assert ("estimated cost" in priced, "no price set" in priced) == (True, False)
    assert shown.count("<canvas") == shown.count("<details><summary>As a table") == 6


def test_today_is_compared_with_what_is_usual_by_now(busy: World, admin_client: Client) -> None:
    assert "by this time" not in home(admin_client)
    Turn.objects.filter(state="sent").update(created_at=timezone.now() - timedelta(days=7))
    rollups_recount(now=timezone.now(), most_seconds=60)
    found = figures(home(admin_client))
    assert found["answers"] == "Answers 0 usual by this time: 6"
    assert found["failed"] == "Failed 1 usual by this time: 0"
    assert "by this time" not in home(admin_client, "7")


def test_days_are_compared_with_those_before(busy: World, admin_client: Client) -> None:
    assert "days before" not in home(admin_client, "7")
    Turn.objects.filter(state="sent").update(created_at=timezone.now() - timedelta(days=9))
    found = figures(home(admin_client, "7"))
    assert found["answers"] == "Answers 0 the 7 days before: 6"
    assert found["unknown"].endswith("the 7 days before: 0")
    assert "days before" not in home(admin_client, "30")


def test_conversations_that_wait_for_a_person_come_first(busy: World, admin_client: Client) -> None:
    assert figures(home(admin_client))["attention"].startswith("Needs you 1 ")
    shown = home(admin_client)
    # Only what stops everything comes before: no workers run here.
    assert list(tiles(shown))[:3] == ["workers", "schedules", "attention"]
    link = LINK.search(tiles(shown)["attention"])
    assert link
    assert led_to(admin_client, link[1]) == 1


def test_an_answer_that_fails_for_a_program_counts_as_failed(
    busy: World, admin_client: Client
) -> None:
    """The program gets the apology; nobody else would hear of it."""

    def away(_request: ChatRequest) -> str:
        raise ChatModelError("connection refused", is_outside=True)

    busy.use(chat_model=ScriptedChatModel(away))
    before = figures(home(admin_client))
    told = busy.talk("Where is the garden?", "15550107777@c.us")
    assert told.reply.startswith("Sorry, I can't answer right now.")
    found = figures(home(admin_client))
    assert [each["attention"].split()[2] for each in (before, found)] == ["1", "2"]
    for key, number in (("failed", "2"), ("answers", before["answers"].split()[1])):
        assert found[key].split()[1] == number, key
    (address, _told), *_ = LINK.findall(tiles(home(admin_client))["failed"])
    assert led_to(admin_client, address) == 2
    shown = words_of(page(admin_client, f"/admin/sessions_app/turn/{told.turn.pk}/change/"))
    assert "The message could not be answered." in shown


def failed_in_chats(first: int, count: int) -> None:
    """A failed answer in each of so many new chats."""
    names = [f"155501{first + number:05}@c.us" for number in range(count)]
    chats = Chat.objects.bulk_create(Chat(whatsapp_chat=name, provider="cloud") for name in names)
    activity_recount(chat_ids=[chat.pk for chat in chats])
    now = timezone.now()
    fields = {"provider": "cloud", "asked_at": now, "finished_at": now, "state": "failed"}
    Turn.objects.bulk_create(Turn(chat=chat, **fields) for chat in chats)


def test_counts_that_end_say_so(admin_client: Client, world: World) -> None:
    failed_in_chats(0, 9)
    assert figures(home(admin_client))["attention"].startswith("Needs you 9 conversations: 9")
    failed_in_chats(9, 91)
    found = figures(home(admin_client))
    assert found["attention"].startswith("Needs you 99+ conversations: 99+")
    assert found["answers_review"].startswith("Answers to review 100 ")
    failed_in_chats(100, 900)
    assert figures(home(admin_client))["answers_review"].startswith("Answers to review 999+ ")


def test_what_needs_somebody_stands_out(busy: World, admin_client: Client) -> None:
    busy.receive(message_from(CLIENT, "waiting"))
    remember("Perhaps Rex likes bones", proposed=True)
    Turn.objects.filter(state="pending").update(created_at=timezone.now() - timedelta(minutes=5))
    Schedule.objects.create(func="x", next_run=timezone.now() - timedelta(minutes=20))
    shown = home(admin_client)
    found = figures(shown)
    assert found["waiting"] == "Awaiting answer 1 the oldest for 5 minutes"
    assert found["schedules"] == "Schedules 1 late the latest by 20 minutes"
    assert found["workers"].startswith("Workers none running")
    assert "free on the disk" in found["storage"]
    for key, tone in (
        *(("failed", "bad"), ("workers", "bad"), ("schedules", "bad"), ("messages", "")),
        *(("missed", "warn"), ("attention", "bad"), ("answers_review", "warn")),
    ):
        assert tones(shown)[key] == tone, key
    assert "suggested memories: 1" in found["attention"]
    for key in ("waiting", "answers_review"):
        link = LINK.search(tiles(shown)[key])
        assert link
        assert led_to(admin_client, link[1]) == 1


def test_each_figure_is_for_those_who_may_view_what_it_counts(busy: World) -> None:
    for right, keys in KEYS.items():
        client = staff_with(right, name=right)
        shown = home(client)
        for part in (shown, page(client, FRAGMENT)):
            assert set(tiles(part)) == set(keys.split())
        for address, _ in LINK.findall("".join(tiles(shown).values())):
            assert client.get(html.unescape(address)).status_code == 200, address
    assert "Your account belongs to no group yet" in home(staff_with(name="nobody"))
    auditor = staff_with("audit.view_auditevent", name="auditor")
    assert "belongs to no group" not in home(auditor)


def test_the_fragment_comes_anew_only_when_changed(busy: World, admin_client: Client) -> None:
    # What waits is told by how long: nothing waits here, so nothing changes by itself.
    first = admin_client.get(FRAGMENT)
    known = {"If-None-Match": first["ETag"]}
    assert f'data-tag="{html.escape(first["ETag"])}"' in home(admin_client)
    size = figures(first.content.decode())["storage"]
    with connection.cursor() as cursor:
        # Two megabytes and more, in a table of which no figure tells: sizes alone are no news.
        cursor.execute(
            "CREATE TABLE filler AS "
            "SELECT repeat(md5(n::text), 30) FROM generate_series(1, 3000) AS n"
        )
    assert figures(page(admin_client, FRAGMENT))["storage"] != size
    again = admin_client.get(FRAGMENT, headers=known)
    assert (again.status_code, again.content) == (304, b"")
    busy.say(CLIENT, "one more")
    changed = admin_client.get(FRAGMENT, headers=known)
    assert figures(changed.content.decode())["messages"].startswith("Messages 13")
    assert "no-store" in changed["Cache-Control"]


# Costs


def use(chat: Chat, days_ago: int, cost: str, calls: int) -> None:
    UsageDay.objects.create(
        chat=chat,
        day=timezone.localdate() - timedelta(days=days_ago),
        model_calls=calls,
        prompt_tokens=1_000 * calls,
        completion_tokens=10 * calls,
        cost=cost,
    )


@pytest.fixture
def used(busy: World, settings: Any) -> None:
    settings.MODEL_PRICES = PRICES
    Chat.objects.filter(whatsapp_chat=CLIENT).update(staff_name="Dana Sample")
    Chat.objects.filter(whatsapp_chat=OTHER_CLIENT).update(client_name="Omar Sample")
    UsageDay.objects.all().delete()
    use(busy.chat(CLIENT), 0, "0.40", 3)
    use(busy.chat(OTHER_CLIENT), 0, "1.10", 2)
    use(busy.chat(OTHER_CLIENT), 8, "2.25", 4)


def costs(client: Client, **query: str) -> str:
    return words_of(page(client, COSTS, **query)).replace("\xa0", " ")


def rows(client: Client, table: str, period: str) -> list[list[str]]:
    answer = client.get(COSTS, {"table": table, "period": period})
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert "attachment" in answer["Content-Disposition"]
    return list(csv.reader(io.StringIO(answer.getvalue().decode("utf-8-sig"))))


def test_costs_by_day_and_by_person(admin_client: Client, used: None, settings: Any) -> None:
    assert f'href="{COSTS}?period=today"' in tiles(home(admin_client))["tokens"]
    settings.MODEL_CURRENCY = "ILS"
    shown = costs(admin_client, period="7")
    assert "ILS 1.50 for answers" in shown
    assert shown.index("Omar Sample") < shown.index("Dana Sample"), "who cost most is first"
    assert "3.75" in costs(admin_client, period="30")
    # Who may not see people sees none.
    reader = staff_with("sessions_app.view_turn")
    shown = costs(reader)
    assert ("By day" in shown, "By person" in shown) == (True, False)
    assert CLIENT.partition("@")[0] not in shown
    assert reader.get(COSTS, {"table": "chats"}).status_code == 403
    settings.MODEL_PRICES = {}
    shown = page(admin_client, COSTS)
    for text in ("No prices are set", "no price", "/admin/operations/settings/"):
        assert text in shown
    assert "0.00" not in words_of(shown[shown.index("<main") :])


def test_each_table_is_a_csv_and_taking_it_is_audited(admin_client: Client, used: None) -> None:
    today = timezone.localdate()
    days = rows(admin_client, "days", "30")
    columns = "day model_calls prompt_tokens completion_tokens cost currency"
    assert days[0] == columns.split()
    assert len(days) == 31, "a day without any use has a row, too"
    assert days[1] == [today.isoformat(), "5", "5000", "50", "1.500000", "USD"]
    assert days[9][0] == (today - timedelta(days=8)).isoformat()
    assert days[9][4] == "2.250000"
    people = [(row[0], row[4]) for row in rows(admin_client, "chats", "30")[1:]]
    assert people == [(OTHER_CLIENT, "3.350000"), (CLIENT, "0.400000")]
    assert rows(admin_client, "models", "today")[1][0] == "scripted"
    taken = AuditEvent.objects.filter(action="export", object_type="costs").order_by("id")
    assert [(event.details["table"], event.details["rows"]) for event in taken] == [
        ("days", 30),
        ("chats", 2),
        ("models", 1),
    ]
    assert admin_client.get(COSTS, {"table": "nonsense"}).status_code == 400
