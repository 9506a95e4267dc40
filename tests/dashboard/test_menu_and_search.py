"""What stands on every page: the menu, by whose entries lists are called, and the search."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from html import unescape
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django_q.models import Schedule

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.rest_kit.models import ApiToken
from sessions_app.models import ChatSession, CheckQuestion, Message
from tests.dashboard.staff import page, staff_with
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, message_from, write_as

pytestmark = pytest.mark.django_db


def words(html: str) -> str:
    """What is read of it; symbols are hidden from those who listen."""
    seen = re.sub(r'<span[^>]*aria-hidden="true"[^>]*>.*?</span>', "", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", seen))).strip()


def menu_of(client: Client, **headers: Any) -> str:
    page = client.get("/admin/", headers=headers).content.decode()
    (menu,) = re.findall(r'<nav id="nav-sidebar".*?</nav>', page, re.DOTALL)
    # A count of what needs attention is no part of an entry's name.
    return re.sub(r'<span class="badge menu-count".*?</a>', "</a>", menu, flags=re.DOTALL)


@pytest.mark.parametrize("language", ["en", "he"])
def test_every_menu_entry_is_the_title_of_its_page(admin_client: Client, language: str) -> None:
    headers: Any = {"accept-language": language}
    menu = menu_of(admin_client, **headers)
    links = re.findall(r'<li><a href="([^"]+)"[^>]*>(.*?)</a></li>', menu, re.DOTALL)
    assert len(links) > 25
    called = {}
    for address, shown in links:
        answer = admin_client.get(address, headers=headers, follow=True).getvalue().decode()
        (title,) = re.findall(r"<h1[^>]*>(.*?)</h1>", answer, re.DOTALL)
        called[words(shown)] = words(title)
    assert called == {name: name for name in called}


@pytest.mark.parametrize(
    "address",
    [
        "/admin/audit/auditevent/verify/",
        "/admin/sessions_app/assistantprofile/",
        "/admin/sessions_app/forgetrun/search/",
        "/admin/sessions_app/label/add/",
        "/admin/hooks/webhookendpoint/add/",
        "/admin/sessions_app/checkquestion/import/",
        "/admin/memories_app/memory/import/",
    ],
)
def test_the_breadcrumbs_name_a_list_as_the_menu_does(admin_client: Client, address: str) -> None:
    named = dict(re.findall(r'<li><a href="([^"]+)"[^>]*>(.*?)</a></li>', menu_of(admin_client)))
    page = admin_client.get(address, follow=True).content.decode()
    (crumbs,) = re.findall(r'<nav class="breadcrumbs".*?</nav>', page, re.DOTALL)
    _, (above, name), *_ = re.findall(r'<a href="([^"]+)">(.*?)</a>', crumbs)
    assert words(name) == words(named[above])


def head_of(client: Client, address: str, **headers: Any) -> tuple[str, list[str]]:
    """The name of a row's page, and what stands above and below it."""
    page = client.get(address, headers=headers, follow=True).content.decode()
    (name,) = re.findall(r'<div class="page-name">(.*?)</div>', page, re.DOTALL)
    (title,) = re.findall(r"<h1[^>]*>(.*?)</h1>", name, re.DOTALL)
    above_and_below = re.sub(r"<h1.*?</h1>", "", name, flags=re.DOTALL)
    around = re.findall(r"<(a|bdi|p)\b[^>]*>(.*?)</\1>", above_and_below, re.DOTALL)
    return words(title), [words(each) for _tag, each in around]


def test_a_row_is_called_as_people_would(admin_client: Client, world: World, settings: Any) -> None:
    settings.BUSINESS_TIME_ZONE = "Asia/Jerusalem"
    world.say(CLIENT, "hello")
    session = ChatSession.objects.select_related("chat").get()
    address = reverse("admin:sessions_app_chatsession_change", args=[session.pk])
    title, around = head_of(admin_client, address)
    day = date_format(localtime(session.created_at, ZoneInfo("Asia/Jerusalem")), "j M Y, H:i")
    assert title == f"{session.chat}, {day}"
    assert around == ["Home", "Sessions", title, "Session"]
    job = Schedule.objects.create(name="Judge", func="sessions_app.tasks.judge_sessions")
    address = reverse("admin:django_q_schedule_change", args=[job.pk])
    assert head_of(admin_client, address)[0] == "Judge whether conversations helped"
    group = Group.objects.get(name="Administrator")
    address = reverse("admin:auth_group_change", args=[group.pk])
    assert head_of(admin_client, address, **{"accept-language": "he"})[0] == "מנהל"
    # The only one of its kind isn't named three times.
    assert head_of(admin_client, reverse("admin:sessions_app_openinghours_changelist")) == (
        "Opening hours",
        ["Home", "Opening hours"],
    )


def test_a_page_that_deletes_stands_below_its_list(admin_client: Client) -> None:
    question = CheckQuestion.objects.create(text="Open on Sunday?", expected="closed")
    address = reverse("admin:sessions_app_checkquestion_delete", args=[question.pk])
    assert head_of(admin_client, address)[1][:2] == ["Home", "Question set"]


def test_a_tokens_end_is_shown_as_other_times_are(admin_client: Client) -> None:
    end = datetime(2031, 5, 6, 7, 8, 9, tzinfo=timezone.utc)
    token = ApiToken.objects.create(
        name="Till", digest="0" * 64, prefix="mem_", scopes=["read"], expires_at=end
    )
    shown = words(page(admin_client, reverse("admin:api_apitoken_change", args=[token.pk])))
    assert "Expires at 6 May 2031, 07:08" in shown


def test_the_docs_name_entries_that_the_menu_has(admin_client: Client) -> None:
    """*Group → Entry*, and what follows is on that page or in that folded part."""
    menu = menu_of(admin_client)
    has = set()
    for part in re.split(r"(?=<details)", menu)[1:]:
        heading = re.match(r"<details[^>]*>(<summary)[^>]*>(.*?)</summary>", part, re.DOTALL)
        assert heading is not None
        if part.startswith('<details class="inner"'):
            has.add(("Settings", words(heading[2])))
        for shown in re.findall(r"<li><a [^>]*>(.*?)</a></li>", part, re.DOTALL):
            has.add((words(heading[2]), words(shown)))
    root = Path(__file__).parents[2]
    texts = [root / "README.md", root / "CHANGELOG.md", *sorted((root / "docs").glob("*.md"))]
    named = {
        (path.name, *named)
        for path in texts
        for named in re.findall(r"\*([^*→\n]+) → ([^*→\n]+)(?: → [^*\n]+)?\*", path.read_text())
    }
    assert len(named) > 20
    assert {each for each in named if each[1:] not in has} == set(), sorted(has)


def test_raw_tables_are_on_operations_and_not_in_the_menu(
    admin_client: Client, client: Client, django_user_model: Any
) -> None:
    reader = django_user_model.objects.create_user("reader", is_staff=True)
    rights = Permission.objects.filter(codename__in=("view_chatsession", "view_chat"))
    reader.user_permissions.set(rights)
    client.force_login(reader)
    menu = menu_of(client)
    assert "Labels" in menu
    assert "Knowledge" not in menu
    sessions = 'href="/admin/sessions_app/chatsession/"'
    assert sessions not in menu + menu_of(admin_client)
    assert client.get("/admin/sessions_app/chatsession/").status_code == 200
    page = admin_client.get("/admin/operations/").content.decode()
    assert sessions in page.split('id="raw-tables"')[1]


SEARCH = "/admin/search/"
OMAR = "972550100101@c.us"
TYPED = {"X-Search": "yes"}


def found(client: Client, words: str, **headers: str) -> str:
    answer = client.get(SEARCH, {"words": words}, headers=headers)
    assert answer.status_code == 200
    return answer.content.decode()


def group(shown: str, title: str) -> str:
    """The part of a page with the hits of one kind; empty if there is none."""
    part = re.search(
        rf'<div class="search-group" role="group" aria-label="{title}">.*?</div>', shown, re.S
    )
    return part[0] if part else ""


def links(shown: str) -> list[str]:
    return re.findall(r'class="search-hit" href="([^"]*)"', shown)


def test_messages_and_memories_are_found_in_any_script(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "Where is the lighthouse?")
    world.remember(GODFATHER, "The lighthouse is white")
    write_as(world, OTHER_CLIENT, "דנה", "איפה המגדלור הלבן?")
    english = found(admin_client, "lighthouses")
    message = Message.objects.get(content="Where is the lighthouse?")
    said, known = group(english, "Messages"), group(english, "Memories")
    assert any(f"at={message.pk}#m-{message.pk}" in link for link in links(said))
    assert "<mark>lighthouse</mark>" in said
    assert "The <mark>lighthouse</mark> is white" in known
    assert links(known)[0].startswith("/admin/memories_app/memory/")
    hebrew = group(found(admin_client, "מגדלור"), "Messages")
    assert "<mark>המגדלור</mark>" in hebrew
    assert 'dir="auto"' in hebrew
    assert "<bdi>דנה</bdi>" in hebrew


def test_the_box_gets_the_first_hits_and_the_page_more(admin_client: Client, world: World) -> None:
    for number in range(7):
        world.receive(message_from(CLIENT, f"lighthouse number {number}"))
    typed = found(admin_client, "lighthouse", **TYPED)
    assert "<html" not in typed
    assert len(links(group(typed, "Messages"))) == 5
    assert "/admin/sessions_app/chat/?q=lighthouse#hits" in typed
    # Kinds without hits take no room below the box.
    assert group(typed, "Memories") == ""
    page = found(admin_client, "lighthouse")
    assert "<html" in page
    assert len(links(group(page, "Messages"))) == 7
    assert "None." in group(page, "Memories")
    for headers in ({}, TYPED):
        assert "Nothing matches" in found(admin_client, "zyqorvane", **headers)
    for nothing in ("   ", "\x00"):
        assert links(found(admin_client, nothing)) == []


@pytest.mark.parametrize(
    ("rights", "titles"),
    [
        (["sessions_app.view_chat"], ["Contacts"]),
        (["sessions_app.view_chat", "sessions_app.view_message"], ["Contacts", "Messages"]),
        (["memories_app.view_memory"], ["Memories"]),
        (["sessions_app.view_message", "memories_app.view_memory"], ["Memories"]),
    ],
)
def test_each_kind_is_found_by_who_may(world: World, rights: list[str], titles: list[str]) -> None:
    write_as(world, OMAR, "Lighthouse keeper", "my lighthouse secret")
    world.remember(GODFATHER, "The lighthouse is white")
    client = staff_with(*rights)
    assert 'class="search-box"' in client.get("/admin/").content.decode()
    for headers in ({}, TYPED):
        shown = found(client, "lighthouse", **headers)
        there = [title for title in ("Contacts", "Messages", "Memories") if group(shown, title)]
        assert there == titles
        assert ("secret" in shown) == ("Messages" in titles)
        assert ("is white" in shown) == (titles != ["Contacts"])
    if titles == ["Contacts"]:
        # Who may not read the conversation comes to the contact's page.
        assert links(shown) == [reverse("admin:contact", args=[world.chat(OMAR).pk])]


def test_a_search_is_audited_without_its_words(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "lighthouse")
    found(admin_client, "lighthouse", **TYPED)
    event = AuditEvent.objects.get(action="conversation.read")
    assert event.details == {"list": "global search", "searched": True}
    assert "lighthouse" not in str(AuditEvent.objects.values_list())
    found(staff_with("memories_app.view_memory"), "lighthouse")
    found(admin_client, "")
    assert AuditEvent.objects.filter(action="conversation.read").count() == 1
