"""Addresses of the staff's pages with what nobody types on purpose."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from tests.world import CLIENT, World

# What a page's links and fields give.
OFFERED = re.compile(r'(?:href="\?|&amp;|name=")(\w+)(?:=|")')
PARAMETERS = ("q", "p", "o", "state", "status", "action", "actor_kind", "object_type", "when")


def registered() -> dict[Any, Any]:
    # The lists are registered when the addresses are read.
    reverse("admin:index")
    return admin.site._registry


def lists() -> list[str]:
    return [
        reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for model in registered()
    ]


@pytest.mark.django_db
@pytest.mark.slow
def test_a_nul_in_the_address_breaks_no_list(admin_client: Client) -> None:
    """Within a text in each parameter that the list offers, and alone in all of them."""
    everything = "&".join(f"{name}=%00" for name in PARAMETERS)
    opened: Counter[str] = Counter()
    for address in lists():
        page = admin_client.get(f"{address}?{everything}", follow=True)
        assert page.status_code == 200, address
        offered = {"q", "o", *OFFERED.findall(page.content.decode())}
        for name in offered.intersection(PARAMETERS):
            page = admin_client.get(f"{address}?{name}=a%00b", follow=True)
            assert page.status_code == 200, (address, name)
            opened[name] += 1
    assert opened["q"] == opened["o"] == len(lists())
    assert opened.keys() >= {"state", "status", "action", "actor_kind", "object_type"}


@pytest.mark.django_db
def test_nothing_is_done_with_what_a_nul_in_a_filter_leaves(admin_client: Client) -> None:
    # The inbox does things with the chats that are ticked, whatever its filters are; of the
    # profile there is but one, which its list leads to.
    others = (
        "admin:sessions_app_chat_changelist",
        "admin:sessions_app_assistantprofile_changelist",
    )
    for address in {*lists()} - {*map(reverse, others)}:
        done = admin_client.post(f"{address}?id__exact=%00", {"action": "x", "select_across": "1"})
        assert done.status_code in (400, 403), address


@pytest.mark.django_db
def test_what_cant_be_asked_for_is_refused_in_words(admin_client: Client) -> None:
    page = admin_client.get("/admin/sessions_app/turn/?_to_field=password")
    assert page.status_code == 400
    assert "can't be looked up" in page.content.decode()


@pytest.mark.django_db
def test_a_hebrew_name_and_the_number_behind_it_run_each_its_own_way(world: World) -> None:
    world.say(CLIENT, "Good morning")
    chat = world.chat(CLIENT)
    chat.client_name = "דנה לוי"
    assert str(chat) == "\u2068דנה לוי\u2069 (\u2066+1 555-010-0123\u2069)"
    chat.client_name = "Dana"
    assert str(chat) == "Dana (+1 555-010-0123)"


@pytest.mark.django_db
@pytest.mark.parametrize("year", ["9" * 30, "-1", "0", "10000"])
def test_a_year_that_is_none_breaks_no_list(admin_client: Client, year: str) -> None:
    for name in ("chatsession/?last_active", "forgetreceipt/?forgotten_at"):
        page = admin_client.get(f"/admin/sessions_app/{name}__year={year}", follow=True)
        assert page.status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize(
    "key",
    [
        *("x", "a\x00"),
        *(pytest.param(key, marks=pytest.mark.slow) for key in ("9" * 40, "-1", "\u202e")),
    ],
)
def test_a_key_that_is_none_breaks_no_action(admin_client: Client, key: str) -> None:
    for model, page in registered().items():
        actions = [each if isinstance(each, str) else each.__name__ for each in page.actions or ()]
        address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for action in actions:
            posted = {"action": action, "_selected_action": [key]}
            answer = admin_client.post(address, posted, follow=True)
            assert answer.status_code == 200, (address, action)
