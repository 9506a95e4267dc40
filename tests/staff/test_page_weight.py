"""How much JavaScript a browser loads for a page, compressed as the front door sends it."""

from __future__ import annotations

import gzip
import re
from functools import lru_cache
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from tests.browser.every_page import addresses
from tests.staff.furnish import furnish
from tests.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
MAX_SCRIPT_BYTES = 100_000
SCRIPT = re.compile(r'<script[^>]*\ssrc="([^"]+)"')
STATIC = "/static/"


@lru_cache
def compressed_bytes(address: str) -> int:
    """The length of a static file as gzip; scripts that views make are not compressed."""
    found = finders.find(address.split("?")[0].removeprefix(STATIC))
    assert isinstance(found, str), address
    return len(gzip.compress(Path(found).read_bytes(), 6))


def test_no_page_loads_more_than_its_budget_of_scripts(admin_client: Client, world: World) -> None:
    furnish(world)
    too_heavy, pages = {}, 0
    for address in addresses():
        answer = admin_client.get(address)
        if answer.streaming or not answer.headers["Content-Type"].startswith("text/html"):
            continue
        scripts = SCRIPT.findall(answer.content.decode())
        made = sum(len(admin_client.get(each).content) for each in scripts if STATIC not in each)
        bytes_loaded = made + sum(compressed_bytes(each) for each in scripts if STATIC in each)
        pages += bool(scripts)
        if bytes_loaded > MAX_SCRIPT_BYTES:
            too_heavy[address] = bytes_loaded
    assert pages > 80
    assert not too_heavy
