"""What a browser loads on its first visit: little, compressed, and kept until it changes."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from django.test import Client
from django.urls import reverse

from docs.stylesheet import style_sheet
from memoryproject.staff_site.navigation import MENU, SETTINGS
from sessions_app.models import Chat
from sessions_app.presentation.message_kinds import KINDS
from tests.architecture.test_names import ROOT
from tests.dashboard.staff import page
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db
ADDRESS = re.compile(r"""(?:src|href)="(/static/[^"]+)"|url\("(/static/[^"]+)"\)""")
ICON = re.compile(r"material-symbols-outlined[^>]*>\s*([a-z][a-z0-9_]*)\s*<")
MAX_BYTES = 300_000
# The page with its styles: at 50 kB/s little more than half a second, without an answer's wait.
MAX_FIRST_BYTES = 28_000
PAGES = ("/admin/", "/admin/sessions_app/chat/", "/admin/sessions_app/turn/", "/admin/login/")


def body_of(answer: Any) -> bytes:
    body = b"".join(answer.streaming_content) if answer.streaming else bytes(answer.content)
    answer.close()
    return body


@pytest.mark.parametrize("address", PAGES)
def test_a_first_visit_is_small(admin_client: Client, address: str) -> None:
    client = Client() if "login" in address else admin_client
    shown = page(client, address)
    opened = client.get(address, headers={**OPENED, "Accept-Encoding": "gzip"})
    assert len(opened.content) < MAX_FIRST_BYTES
    files = {found[0] or found[1] for found in ADDRESS.findall(shown)}
    assert any(name.split("?")[0].endswith(".woff2") for name in files)
    answers = {name: client.get(name, headers={"Accept-Encoding": "gzip"}) for name in files}
    sizes = {name: len(body_of(answer)) for name, answer in answers.items()}
    assert sum(sizes.values()) + len(shown.encode()) < MAX_BYTES, sizes


def test_a_first_conversation_is_small(admin_client: Client, world: World) -> None:
    for number in range(8):
        world.say(CLIENT, f"Do you have bread no. {number} today? We would come at ten.")
    address = reverse("admin:sessions_app_chat_conversation", args=[Chat.objects.get().pk])
    # A wide window has the inbox beside it.
    admin_client.cookies["inbox-pane"] = ""
    opened = admin_client.get(address, headers={**OPENED, "Accept-Encoding": "gzip"})
    assert b"inbox-pane" in gzip.decompress(opened.content)
    assert len(opened.content) < MAX_FIRST_BYTES + 8_000


def test_files_are_compressed_and_kept_until_they_change(client: Client) -> None:
    shown = page(client, "/admin/login/")
    address = next(name for name, _ in ADDRESS.findall(shown) if "dashboard/admin.css" in name)
    answer = client.get(address, headers={"Accept-Encoding": "gzip"})
    assert answer["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in answer["Vary"]
    assert "immutable" in answer["Cache-Control"]
    file = Path(str(finders.find("dashboard/admin.css"))).read_bytes()
    assert gzip.decompress(body_of(answer)) == file
    plain = client.get(address)
    assert "Content-Encoding" not in plain
    assert body_of(plain) == file
    without = client.get(address.split("?")[0])
    assert "immutable" not in without["Cache-Control"], "it would stay after an upgrade"
    without.close()


def test_each_icon_is_in_the_font() -> None:
    font = set((ROOT / "memoryproject/static/dashboard/fonts/symbols.txt").read_text().split())
    used = {entry.icon for _, entries in (*MENU, *SETTINGS) for entry in entries}
    used |= {kind.icon for kind in KINDS.values()}
    for path in (ROOT / "templates").rglob("*.html"):
        used.update(ICON.findall(path.read_text(encoding="utf-8")))
    assert used - {""} <= font, "make fonts"


def test_the_style_sheet_has_the_classes_that_are_used() -> None:
    written = (ROOT / "memoryproject/static/dashboard/unfold.css").read_text(encoding="utf-8")
    assert style_sheet() == written, "make fonts"
    assert ".flex{" in written
    assert ".lg\\:w-1\\/4" not in written


@pytest.mark.parametrize("address", PAGES)
def test_a_page_is_shown_before_its_scripts_run(admin_client: Client, address: str) -> None:
    shown = page(Client() if "login" in address else admin_client, address)
    scripts = [each for each in re.findall("<script[^>]*>", shown) if "json" not in each]
    # The theme comes before the page, so that no light page flashes in the dark.
    assert [each for each in scripts if " defer" not in each and " async" not in each] == [
        each for each in scripts if "theme.js" in each
    ]
    assert "preload" not in shown
    # A browser asks for six files at once; until the styles are there, scripts that can wait don't
    # take their place.
    head = shown.split("</head>")[0]
    styles = re.findall(r'<link rel="stylesheet"[^>]*>', head)
    assert 2 <= len(styles) <= 5
    # The one that can't is asked for as soon as the page begins: styles may be within it.
    assert head.index("theme.js") < head.index(styles[0])


OPENED = {"Sec-Fetch-Dest": "document"}
STYLE = re.compile(r'<style data-address="([^"]+)" data-version="(\w+)">(.*?)</style>', re.DOTALL)
COMMENT = re.compile(r"/\*.*?\*/\s*", re.DOTALL)
LINKED = re.compile(r'<link rel="stylesheet" href="([^"?]+)\?v=(\w+)">')


@pytest.mark.parametrize("address", PAGES)
def test_a_first_page_needs_no_second_request_to_be_shown(
    admin_client: Client, address: str
) -> None:
    client = Client() if "login" in address else admin_client
    linked = LINKED.findall(page(client, address))
    answer = client.get(address, headers=OPENED)
    assert int(answer["Content-Length"]) == len(answer.content)
    shown = answer.content.decode()
    assert not LINKED.findall(shown)
    within = STYLE.findall(shown)
    assert [(name, version) for name, version, _css in within] == linked
    for name, _version, css in within:
        file = Path(str(finders.find(name.removeprefix("/static/")))).read_text(encoding="utf-8")
        assert css == COMMENT.sub("", file)
    # What the browser has kept, it is not sent again.
    first, *others = [version for _name, version in linked]
    client.cookies["styles"] = ".".join(["0123456789ab", *others])
    again = client.get(address, headers=OPENED).content.decode()
    assert [version for _name, version, _css in STYLE.findall(again)] == [first]
    assert [version for _name, version in LINKED.findall(again)] == others
    # Neither scripts that fetch a part of a page need it, nor do files of people.
    assert not STYLE.findall(client.get(address).content.decode())


def test_pages_are_compressed_and_files_of_people_are_not(admin_client: Client) -> None:
    wanted = {"Accept-Encoding": "gzip, deflate, br"}
    answer = admin_client.get("/admin/", headers=wanted)
    assert answer["Content-Encoding"] == "gzip"
    assert "Home" in gzip.decompress(answer.content).decode()
    assert "Content-Encoding" not in admin_client.get("/admin/", headers={"Accept-Encoding": "br"})
    exported = admin_client.get("/admin/sessions_app/message/?_export=csv", headers=wanted)
    assert "Content-Encoding" not in exported
