"""Addresses of the staff's pages with what nobody types on purpose."""

from __future__ import annotations

import re
from collections import Counter
from itertools import count
from typing import Any

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from tests.staff.expected import PAGES
from tests.staff.furnish import furnish, rows
from tests.staff.roles import Try, address_of, made, role_client, tries
from tests.world import new_world

pytestmark = pytest.mark.django_db

# What a page's links and fields give.
OFFERED = re.compile(r'(?:href="\?|&amp;|name=")(\w+)(?:=|")')
PARAMETERS = ("q", "p", "o", "state", "status", "action", "actor_kind", "object_type", "when")
READ_ALIKE = {"p", "o"}


def registered() -> dict[Any, Any]:
    # The lists are registered when the addresses are read.
    reverse("admin:index")
    return admin.site._registry


def lists() -> list[str]:
    return [
        reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for model in registered()
    ]


@pytest.mark.slow
def test_a_nul_in_the_address_breaks_no_list(admin_client: Client) -> None:
    """Within a text in each parameter that the list offers, and alone in all of them. All lists
    read a page and an order alike: those are tried with some of them."""
    everything = "&".join(f"{name}=%00" for name in PARAMETERS)
    opened: Counter[str] = Counter()
    for number, address in enumerate(lists()):
        page = admin_client.get(f"{address}?{everything}", follow=True)
        assert page.status_code == 200, address
        offered = {"q", "o", *OFFERED.findall(page.content.decode())}
        for name in offered.intersection(PARAMETERS) - (READ_ALIKE if number % 8 else set()):
            page = admin_client.get(f"{address}?{name}=a%00b", follow=True)
            assert page.status_code == 200, (address, name)
            opened[name] += 1
    assert opened["q"] == len(lists())
    assert opened["o"] > 3
    assert opened.keys() >= {"state", "status", "action", "actor_kind", "object_type"}


def test_nothing_is_done_with_what_a_nul_in_a_filter_leaves(admin_client: Client) -> None:
    # The inbox does things with the chats that are ticked, whatever its filters are; of the
    # profile and the opening hours there is but one, which the list leads to.
    others = (
        "admin:sessions_app_chat_changelist",
        "admin:sessions_app_assistantprofile_changelist",
        "admin:sessions_app_openinghours_changelist",
    )
    for address in {*lists()} - {*map(reverse, others)}:
        done = admin_client.post(f"{address}?id__exact=%00", {"action": "x", "select_across": "1"})
        assert done.status_code in (400, 403), address


def test_what_cant_be_asked_for_is_refused_in_words(admin_client: Client) -> None:
    page = admin_client.get("/admin/sessions_app/turn/?_to_field=password")
    assert page.status_code == 400
    assert "can't be looked up" in page.content.decode()


@pytest.mark.parametrize("year", ["9" * 30, "-1", "0", "10000"])
def test_a_year_that_is_none_breaks_no_list(admin_client: Client, year: str) -> None:
    for name in ("chatsession/?last_active", "forgetreceipt/?forgotten_at"):
        page = admin_client.get(f"/admin/sessions_app/{name}__year={year}", follow=True)
        assert page.status_code == 200


@pytest.mark.parametrize("key", [*("x", "a\x00"), pytest.param("9" * 40, marks=pytest.mark.slow)])
def test_a_key_that_is_none_breaks_no_action(admin_client: Client, key: str) -> None:
    for model, page in registered().items():
        actions = [each if isinstance(each, str) else each.__name__ for each in page.actions or ()]
        address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for action in actions:
            posted = {"action": action, "_selected_action": [key]}
            answer = admin_client.post(address, posted)
            # The list itself, or the way back to it.
            assert answer.status_code in (200, 302), (address, action)
            assert answer.get("Location", address) == address, action


# In the place of a row's key, which is a number or a UUID. The pages of a list look for their row
# alike, and each is asked with two of these, by turns; each other page with all.
NO_KEYS = ("0", "9" * 23, "x", "1e5", "٩" * 9, "-1", "%00", "00000000-0000-4000-8000-000000000001")
# Pages that show what they can, or the first page, whatever their address asks for.
ODD = {
    "contacts": ["q=%00&access=x&p=-3", "p=99999999999"],
    "sessions_app_chat_changelist": [
        *("p=x", "p=999999999999", "p=-1", "label=x", "label=99999999999999999999"),
        *("assigned=99999999999999999999", "assigned=%00", "provider=%00", "hits=99999999999999"),
        *("q=%00", "q=%25_%5C", "q=<script>", "unknown__lookup=1", "e=1"),
    ],
    "sessions_app_chat_conversation": [
        *("at=x", "at=00000000-0000-4000-8000-000000000000", "before=", "after=%00"),
        *("date=2026-13-45", "date=x", "q=%00", "q=%25", "q=<script>"),
    ],
    "memories_app_memory_changelist": [
        *("created_at__gte=soon", "p=0", "p=99", "o=99", "state=x", "tag=x", "chat=x", "q=%00"),
        *("tag=%00", "chat=%00", "visibility__exact=%00", "type=a%00", "q=%27;+--", "q=%25_%5C"),
        *(f"q={'א' * 2_000}", "q=<script>"),
    ],
    **dict.fromkeys(
        ["operations_queue", "operations_turns"],
        ["page=0", "page=99999999999", "page=x", "kind=%00", "kind=x"],
    ),
    "index": [f"period={each}" for each in ("", "yesterday", "%00", "9" * 400, "<script>")],
    "costs": ["period=nonsense", "period=%00"],
    "global_search": ["words=%00", "words=+++", "words=<script>"],
    **dict.fromkeys(
        [f"sessions_app_{each}_changelist" for each in ("message", "turn", "forgetreceipt")],
        [f"when={each}" for each in ("yesterday", "--", "%00", "9" * 400, "99991231T0000Z--x")],
    ),
}


@pytest.fixture(scope="module")
def furnished(module_rows: None) -> None:
    furnish(new_world())


@pytest.fixture
def superuser() -> Client:
    return role_client("S")[0]


def test_a_row_that_is_not_there_is_not_found(furnished: None, superuser: Client) -> None:
    """Whichever way its address asks for it, by GET and by POST."""
    keys, asked, turns = rows(), 0, count()
    for one in tries(keys):
        key = next((f"/{key}/" for key in keys.values() if f"/{key}/" in one.address), None)
        if "S" not in (one.may or "") or key is None:
            continue
        turn = next(turns) % len(NO_KEYS)
        own = NO_KEYS if one.name in PAGES else (NO_KEYS[turn], NO_KEYS[turn - 3])
        for number, wrong in enumerate(own):
            if one.method == "POST" and number % 4 == 3:
                continue
            address = one.address.replace(key, f"/{wrong}/")
            answer, written = made(superuser, Try(one.method, one.name, address, "S", one.data))
            refused = (302, 404) if one.method == "GET" else (302, 400, 404)
            assert answer.status_code in refused, (one.method, address, answer.status_code)
            assert not written, (one.method, address)
            asked += 1
    assert asked > 500


@pytest.mark.parametrize("name", ODD)
def test_what_makes_no_sense_is_left_out(furnished: None, superuser: Client, name: str) -> None:
    address = address_of(name, PAGES[name], rows()) if name in PAGES else reverse(f"admin:{name}")
    for query in ODD[name]:
        page = superuser.get(f"{address}?{query}", follow=True)
        assert page.status_code == 200, query
        assert "<script>" not in page.content.decode(), query
