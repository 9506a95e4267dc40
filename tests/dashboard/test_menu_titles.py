"""A list is called what the menu calls it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db


def words(html: str) -> str:
    """What is read of it; symbols are hidden from those who listen."""
    seen = re.sub(r'<span[^>]*aria-hidden="true"[^>]*>.*?</span>', "", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", seen)).strip()


@pytest.mark.parametrize("language", ["en", "he"])
def test_every_entry_of_the_menu_is_the_title_of_its_page(
    admin_client: Client, language: str
) -> None:
    headers: Any = {"accept-language": language}
    page = admin_client.get("/admin/", headers=headers).content.decode()
    (menu,) = re.findall(r'<nav id="nav-sidebar".*?</nav>', page, re.DOTALL)
    links = re.findall(r'<li><a href="([^"]+)"[^>]*>(.*?)</a></li>', menu, re.DOTALL)
    assert len(links) > 25
    called = {}
    for address, shown in links:
        answer = admin_client.get(address, headers=headers, follow=True).getvalue().decode()
        (title,) = re.findall(r"<h1[^>]*>(.*?)</h1>", answer, re.DOTALL)
        called[words(shown)] = words(title)
    assert called == {name: name for name in called}
