"""What a browser loads on its first visit: little, compressed, and kept until it changes."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from memoryproject.staff_site.navigation import MENU, SETTINGS
from sessions_app.presentation.message_kinds import KINDS
from tests.architecture.test_names import ROOT
from tests.dashboard.staff import page

pytestmark = pytest.mark.django_db
ADDRESS = re.compile(r"""(?:src|href)="(/static/[^"]+)"|url\("(/static/[^"]+)"\)""")
ICON = re.compile(r"material-symbols-outlined[^>]*>\s*([a-z][a-z0-9_]*)\s*<")
MAX_BYTES = 300_000
PAGES = ("/admin/", "/admin/sessions_app/chat/", "/admin/sessions_app/turn/", "/admin/login/")


def body_of(answer: Any) -> bytes:
    body = b"".join(answer.streaming_content) if answer.streaming else bytes(answer.content)
    answer.close()
    return body


@pytest.mark.parametrize("address", PAGES)
def test_a_first_visit_is_small(admin_client: Client, address: str) -> None:
    client = Client() if "login" in address else admin_client
    shown = page(client, address)
    files = {found[0] or found[1] for found in ADDRESS.findall(shown)}
    assert any(name.split("?")[0].endswith(".woff2") for name in files)
    answers = {name: client.get(name, headers={"Accept-Encoding": "gzip"}) for name in files}
    sizes = {name: len(body_of(answer)) for name, answer in answers.items()}
    assert sum(sizes.values()) + len(shown.encode()) < MAX_BYTES, sizes


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
