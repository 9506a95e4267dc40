"""The dashboard's page: who sees which figures, where they lead, and what it costs."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import Schedule

from memories_app.models import Memory
from memoryproject.foundation.admin_kit.periods import DAYS
from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.staff_site.dashboard.rollups import rollups_recount
from sessions_app.forgetting.execute import ForgetDependencies
from sessions_app.forgetting.forget_objects import object_forget
from sessions_app.models import ForgetReceipt, Message, Turn
from sessions_app.turns.pauses import chat_pause
from tests.remembering import remember
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, asked, message_from, new_world

pytestmark = pytest.mark.django_db

THIRD = "15550100789@c.us"
FRAGMENT = "/admin/dashboard/figures/"
TILE = re.compile(r'<li id="figure-(\w+)" class="figure([^"]*)".*?</li>', re.S)
LINK = re.compile(r'<a href="([^"]+)"[^>]*>([^<]+)</a>')


def person(*rights: str) -> Client:
    """A member of staff with these rights and no others."""
    user = get_user_model()._default_manager.create_user(username="somebody", is_staff=True)
    for right in rights:
        app_label, codename = right.split(".")
        user.user_permissions.add(
            Permission.objects.get(content_type__app_label=app_label, codename=codename)
        )
    client = Client()
    client.force_login(user)
    return client


def page(client: Client, period: str = "today") -> str:
    answer = client.get("/admin/", {"period": period})
    assert answer.status_code == 200
    return answer.content.decode()


def tiles(html: str) -> dict[str, str]:
    """What stands in each figure's place."""
    return {found[1]: found[0] for found in TILE.finditer(html)}


def html_text(address: str) -> str:
    return address.replace("&amp;", "&")


def text(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


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
    memory = Memory.objects.get(content__contains="Rex")
    object_forget(
        kind="memory",
        object_id=memory.pk,
        dependencies=ForgetDependencies(
            world.dependencies.embedder, world.dependencies.chat_memory
        ),
    )


@pytest.mark.parametrize("period", DAYS)
def test_each_figure_leads_to_its_list(busy: World, admin_client: Client, period: str) -> None:
    html = page(admin_client, period)
    for key in ("time", "tokens"):
        # They lead to the turns that they are of, which are others in number.
        html = html.replace(tiles(html)[key], "")
    links = [link for link in LINK.findall(html) if "when=" in link[0]]
    assert len(links) > 12
    for address, shown in links:
        answer = admin_client.get(address.replace("&amp;", "&"))
        assert answer.status_code == 200, address
        number = int(shown.split()[0].replace(",", ""))
        assert listed(answer.context) == number, address


def listed(context: Any) -> int:
    """How many rows a list has; the inbox is a page of its own."""
    return int(context["cl"].result_count if "cl" in context else context["page"].paginator.count)


def test_figures_in_words(busy: World, admin_client: Client) -> None:
    found = {key: text(tile) for key, tile in tiles(page(admin_client)).items()}
    assert found["messages"] == "Messages 11 6 from people 5 from the assistant"
    assert found["chats"] == "Active chats 3"
    assert found["answers"] == "Answers 5"
    assert found["failed"] == "Failed 1"
    assert found["missed"].startswith("Too late to answer 1")
    assert found["added"] == "Memories added 1"
    assert found["forgotten"] == "Erasures 1 with 1 memory"
    assert "95 % under" in found["time"]
    assert "no price set for scripted" in found["tokens"]
    with override_settings(MODEL_PRICES={"scripted": (1_000.0, 2_000.0)}):
        priced = text(tiles(page(admin_client))["tokens"])
    assert "estimated cost" in priced
    assert "no price set" not in priced


def test_how_well_the_assistant_did_leads_to_the_answers(busy: World, admin_client: Client) -> None:
    questions = [
        asked(busy, text, THIRD) for text in ("Where can I park?", "Do you have oat milk?")
    ]
    rates = ((questions[0], "good"), (questions[1], "bad"))
    for turn, verdict in rates:
        address = f"/admin/sessions_app/turn/{turn.pk}/rate/"
        admin_client.post(address, {"verdict": verdict, "reason": "unknown"})
    chat = busy.chat(THIRD)
    chat_pause(chat_id=chat.pk, until=None, by=None, actor=SYSTEM, now=timezone.now())
    asked(busy, "And cow's milk?", THIRD)
    html = page(admin_client)
    assert "Did the assistant do well today?" in html
    found = tiles(html)
    assert text(found["held"]) == "Handed over 1 left to a person"
    assert text(found["unknown"]) == "Unknown questions 2 nothing was recalled"
    assert text(found["rated_bad"]) == "Rated bad 1 1 rated good"
    lists = [LINK.findall(found[key]) for key in ("held", "rated_bad")]
    for address, _shown in [link for links in lists for link in links]:
        assert listed(admin_client.get(html_text(address)).context) == 1, address
    (questions_page,) = LINK.findall(found["unknown"])
    shown = admin_client.get(html_text(questions_page[0])).content.decode()
    assert "Do you have oat milk?" in shown
    # Who may not read messages isn't led to them.
    assert "href" not in tiles(page(person("sessions_app.view_turn")))["unknown"]


def test_today_is_compared_with_what_is_usual_by_this_time(
    busy: World, admin_client: Client
) -> None:
    assert "by this time" not in page(admin_client)
    Turn.objects.filter(state="sent").update(created_at=timezone.now() - timedelta(days=7))
    rollups_recount(now=timezone.now(), most_seconds=60)
    found = {key: text(tile) for key, tile in tiles(page(admin_client)).items()}
    assert found["answers"] == "Answers 0 usual by this time: 6"
    assert found["failed"] == "Failed 1 usual by this time: 0"
    assert "by this time" not in page(admin_client, "7")


def test_what_needs_somebody_stands_out(busy: World, admin_client: Client) -> None:
    busy.receive(message_from(CLIENT, "waiting"))
    Turn.objects.filter(state="pending").update(created_at=timezone.now() - timedelta(minutes=5))
    Schedule.objects.create(func="x", next_run=timezone.now() - timedelta(minutes=20))
    html = page(admin_client)
    found = {key: text(tile) for key, tile in tiles(html).items()}
    assert found["waiting"] == "Awaiting answer 1 the oldest for 5 minutes"
    assert found["schedules"] == "Schedules 1 late the latest by 20 minutes"
    assert found["workers"].startswith("Workers none running")
    assert "free on the disk" in found["storage"]
    tones = {match[1]: match[2].strip() for match in TILE.finditer(html)}
    assert tones["failed"] == tones["workers"] == tones["schedules"] == "bad"
    assert tones["missed"] == "warn"
    assert tones["messages"] == ""
    waiting = LINK.search(tiles(html)["waiting"])
    assert waiting
    answer = admin_client.get(waiting[1].replace("&amp;", "&"))
    assert answer.context["cl"].result_count == 1


def test_what_is_to_be_reviewed_leads_to_its_lists(busy: World, admin_client: Client) -> None:
    before = {key: text(tile) for key, tile in tiles(page(admin_client)).items()}
    assert before["review"].startswith("To review 0 ")
    remember("Perhaps Rex likes bones", proposed=True)
    html = page(admin_client)
    found = tiles(html)
    assert text(found["review"]).startswith("To review 1 ")
    # The one that failed.
    assert text(found["answers_review"]).startswith("Answers to review 1 ")
    tones = {match[1]: match[2].strip() for match in TILE.finditer(html)}
    assert tones["review"] == tones["answers_review"] == "warn"
    memories, answers = (LINK.search(found[key]) for key in ("review", "answers_review"))
    assert memories
    assert answers
    assert memories[1] == "/admin/memories_app/memory/waiting/"
    assert listed(admin_client.get(memories[1]).context) == 1
    assert listed(admin_client.get(answers[1]).context) == 1


@pytest.mark.parametrize(
    ("right", "keys"),
    [
        ("sessions_app.view_message", {"messages"}),
        ("sessions_app.view_chat", {"chats", "limits"}),
        (
            "sessions_app.view_turn",
            {"answers_review", "answers", "held", "failed", "missed", "unknown", "rated_bad"}
            | {"time", "tokens", "waiting"},
        ),
        ("memories_app.view_memory", {"review", "added"}),
        ("sessions_app.view_forgetreceipt", {"forgotten"}),
        ("dashboard.operate_server", {"queue", "workers", "schedules", "storage"}),
    ],
)
def test_a_person_sees_the_figures_of_what_the_person_may_view(
    busy: World, right: str, keys: set[str]
) -> None:
    client = person(right)
    html = page(client)
    assert set(tiles(html)) == keys
    assert set(tiles(client.get(FRAGMENT).content.decode())) == keys
    for address, _ in LINK.findall("".join(tiles(html).values())):
        assert client.get(address.replace("&amp;", "&")).status_code == 200, address


def test_an_auditor_sees_the_ways_and_no_figures(busy: World) -> None:
    client = person("audit.view_auditevent")
    html = page(client)
    assert tiles(html) == {}
    assert "/admin/audit/auditevent/" in html
    assert "/admin/sessions_app/" not in html
    assert client.get(FRAGMENT).status_code == 403


def test_nobody_else_gets_at_the_figures(client: Client, django_user_model: Any) -> None:
    assert client.get(FRAGMENT).status_code == 302
    client.force_login(django_user_model.objects.create_user("visitor"))
    assert client.get(FRAGMENT).status_code == 302
    assert client.post(FRAGMENT).status_code in (302, 403, 405)


def test_nothing_yet(admin_client: Client) -> None:
    html = page(admin_client)
    assert "Nothing has happened in this period yet" in html
    assert "<canvas" not in html


@pytest.mark.parametrize("period", ["", "yesterday", "\0", "9" * 400, "<script>"])
def test_an_unknown_period_is_today(admin_client: Client, period: str) -> None:
    assert 'href="?period=today" aria-current="page"' in page(admin_client, period)


@pytest.mark.parametrize("when", ["yesterday", "--", "\0", "9" * 400, "99991231T0000Z--x"])
@pytest.mark.parametrize("of", ["message", "turn", "chat", "forgetreceipt"])
def test_a_broken_filter_is_told(admin_client: Client, of: str, when: str) -> None:
    answer = admin_client.get(f"/admin/sessions_app/{of}/", {"when": when}, follow=True)
    assert answer.status_code in (200, 400)
    assert b"Traceback" not in answer.content


def test_the_fragment_comes_anew_only_where_something_changed(
    busy: World, admin_client: Client
) -> None:
    # What waits is told by how long: nothing waits here, so nothing changes by itself.
    first = admin_client.get(FRAGMENT)
    tag = first["ETag"]
    assert f'data-tag="{tag.replace(chr(34), "&quot;")}"' in page(admin_client)
    again = admin_client.get(FRAGMENT, headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    busy.say(CLIENT, "one more")
    changed = admin_client.get(FRAGMENT, headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert text(tiles(changed.content.decode())["messages"]).startswith("Messages 13")
    assert "no-store" in changed["Cache-Control"]


def test_sizes_on_the_disk_alone_are_no_news(busy: World, admin_client: Client) -> None:
    first = admin_client.get(FRAGMENT)
    size = text(tiles(first.content.decode())["storage"])
    with connection.cursor() as cursor:
        # Two megabytes and more, in a table of which no figure tells.
        cursor.execute(
            "CREATE TABLE filler AS "
            "SELECT repeat(md5(n::text), 30) FROM generate_series(1, 3000) AS n"
        )
    assert text(tiles(admin_client.get(FRAGMENT).content.decode())["storage"]) != size
    again = admin_client.get(FRAGMENT, headers={"If-None-Match": first["ETag"]})
    assert again.status_code == 304


@pytest.mark.slow
def test_the_number_of_queries_does_not_grow(world: World, admin_client: Client) -> None:
    world.say(CLIENT, "hello")

    def queries(period: str) -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            page(admin_client, period)
        return len(captured)

    page(admin_client)
    few = {period: queries(period) for period in DAYS}
    # Today is compared with what is usual.
    assert few["today"] - 1 == few["7"] == few["30"]
    for number in range(5):
        world.say(CLIENT, f"question {number}")
        world.say(OTHER_CLIENT, f"question {number}")
    for days, turn in enumerate(Turn.objects.all()):
        moment = timezone.now() - timedelta(days=days % 29)
        Turn.objects.filter(pk=turn.pk).update(created_at=moment)
    ForgetReceipt.objects.create(
        kind="memory", object_id=world.chat(CLIENT).pk, actor_kind="staff", content_hash="x"
    )
    assert {period: queries(period) for period in DAYS} == few
    rollups_recount(now=timezone.now(), most_seconds=60)
    assert {period: queries(period) for period in DAYS} == few


def test_no_script_stands_in_the_page(busy: World, admin_client: Client) -> None:
    html = page(admin_client)
    assert not re.search(r"<script(?![^>]*\bsrc=)", html)
    assert not re.search(r"\son\w+=|\sx-[a-z]+=", html)
    data = re.search(r'<canvas id="chart-messages"[^>]*data-value="([^"]+)"', html)
    assert data
    # Each chart is told as a table, too.
    assert html.count("<canvas") == html.count("<details><summary>As a table") == 6


def test_an_account_without_any_right_is_told_so() -> None:
    note = "Your account belongs to no group yet"
    assert note in page(person())


def test_an_account_with_other_rights_is_not() -> None:
    shown = page(person("audit.view_auditevent"))
    assert "belongs to no group" not in shown
    assert "Audit log" in shown
