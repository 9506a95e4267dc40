"""A list is called what the menu calls it."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

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
def test_every_entry_of_the_menu_is_the_title_of_its_page(
    admin_client: Client, language: str
) -> None:
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
    ],
)
def test_the_breadcrumbs_name_a_list_as_the_menu_does(admin_client: Client, address: str) -> None:
    named = dict(re.findall(r'<li><a href="([^"]+)"[^>]*>(.*?)</a></li>', menu_of(admin_client)))
    page = admin_client.get(address, follow=True).content.decode()
    (crumbs,) = re.findall(r'<nav class="breadcrumbs".*?</nav>', page, re.DOTALL)
    _, (above, name), *_ = re.findall(r'<a href="([^"]+)">(.*?)</a>', crumbs)
    assert words(name) == words(named[above])


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


def test_the_menu_has_few_entries_and_opens_the_one_of_the_page(admin_client: Client) -> None:
    menu = menu_of(admin_client)
    assert re.findall(r"<details>\s*<summary>(.*?)</summary>", menu) == [
        "Knowledge",
        "Privacy &amp; audit",
        "Settings",
    ]
    page = admin_client.get("/admin/memories_app/memory/").content.decode()
    assert re.findall(r"<details open><summary>(.*?)</summary>", page)[:1] == ["Knowledge"]
    waiting = admin_client.get("/admin/memories_app/memory/waiting/").content.decode()
    assert re.findall(r'<li><a href="([^"]*)" aria-current="page"', waiting) == [
        "/admin/memories_app/memory/waiting/"
    ]


def test_raw_tables_are_for_those_who_operate_the_server_and_others_find_the_one_they_read(
    admin_client: Client, client: Client, django_user_model: Any
) -> None:
    reader = django_user_model.objects.create_user("reader", is_staff=True)
    rights = Permission.objects.filter(codename__in=("view_chatsession", "view_chat"))
    reader.user_permissions.set(rights)
    client.force_login(reader)
    menu = menu_of(client)
    assert "Raw tables" not in menu
    assert "Labels" in menu
    assert "Knowledge" not in menu
    assert "Raw tables" in menu_of(admin_client)
    there = client.get("/admin/sessions_app/chatsession/").content.decode().split("</nav>")[0]
    folded = there.split('<details class="inner" open><summary>Raw tables</summary>')[1]
    assert re.findall('href="(.*?)"', folded) == ["/admin/sessions_app/chatsession/"]


def test_settings_have_headings_and_everybody_has_an_own_account(
    admin_client: Client, client: Client, django_user_model: Any
) -> None:
    heading = r'<p class="menu-part"[^>]*>(.*?)</p>'
    assert re.findall(heading, menu_of(admin_client)) == [
        "Own account",
        "Team",
        "Labels and replies",
        "Integrations",
        "System",
    ]
    client.force_login(django_user_model.objects.create_user("new", "", "a-pass-1", is_staff=True))
    menu = menu_of(client)
    assert re.findall(heading, menu) == ["Own account"]
    assert "Change password" in words(menu)
    assert "Two-factor login" in words(client.get("/admin/").content.decode())
