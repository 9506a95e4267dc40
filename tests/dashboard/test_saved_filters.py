"""Filters of the inbox under a name: whose they are, what they hold, and their limits."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import SavedFilter
from tests.dashboard.staff import staff_with
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db
INBOX = "/admin/sessions_app/chat/"
FILTERS = f"{INBOX}filters/"
SEE, REVIEW = "sessions_app.view_chat", "sessions_app.review_chat"


def post(client: Client, do: str, status: int = 302, **data: Any) -> str:
    answer = client.post(FILTERS, {"do": do, **data})
    assert answer.status_code == status, answer.content.decode()
    return str(answer.headers.get("Location", "")) or answer.content.decode()


def tabs(client: Client, query: str = "") -> dict[str, str]:
    """The saved filters over the list, with their addresses."""
    shown = client.get(INBOX + query).content.decode()
    part = re.search(r'<div id="inbox-saved".*?</div>', shown, re.S)
    assert part is not None
    found = re.findall(r'<a href="([^"]*)"[^>]*>(?:<span.*?</span>)? ?<bdi>(.*?)</bdi>', part[0])
    return {name: address.replace("&amp;", "&") for address, name in found}


def audited() -> list[str]:
    events = AuditEvent.objects.filter(action__startswith="filter.").order_by("pk")
    return list(events.values_list("action", flat=True))


def test_filters_are_saved_and_opened_by_their_name(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "hello")
    assert "Save these filters" not in admin_client.get(INBOX).content.decode()
    shown = admin_client.get(f"{INBOX}?unread=1&assigned=me").content.decode()
    assert 'name="query" value="assigned=me&amp;unread=1"' in shown
    address = post(admin_client, "save", name=" My   unread ", query="unread=1&assigned=me")
    assert address == f"{INBOX}?assigned=me&unread=1"
    assert tabs(admin_client) == {"My unread": address}
    # Where it is open already it isn't offered again.
    opened = admin_client.get(address).content.decode()
    assert "Save these filters" not in opened
    assert re.search(r'aria-current="page"><bdi>My unread', opened)
    # Words narrow it, so that it is another list.
    assert "Save these filters" in admin_client.get(f"{address}&q=dana").content.decode()


def test_search_words_pages_and_nonsense_are_not_saved(admin_client: Client) -> None:
    query = "q=Dana&p=3&hits=20&state=open&kind=x&label=z&when=7&evil=<b>&unread=2"
    post(admin_client, "save", name="Open", query=query)
    assert SavedFilter.objects.get().query == "state=open&when=7"
    shown = post(admin_client, "save", 400, name="Words", query="q=Dana")
    assert "Set a filter first" in shown
    assert 'value="Words"' in shown


def test_filters_are_renamed_and_deleted_by_their_owner(world: World) -> None:
    dana, omar = staff_with(SEE), staff_with(SEE, name="omar")
    post(dana, "save", name="Open", query="state=open")
    kept = SavedFilter.objects.get()
    assert tabs(omar) == {}
    assert "Open" not in omar.get(FILTERS).content.decode()
    for do in ("rename", "delete"):
        assert "yours" in post(omar, do, 400, filter=kept.pk, name="Mine")
    post(dana, "rename", filter=kept.pk, name="To do")
    assert list(tabs(dana)) == ["To do"]
    post(dana, "delete", filter=kept.pk)
    assert tabs(dana) == {}
    assert "any more" in post(dana, "delete", 400, filter=kept.pk)
    # Nobody else is concerned by one's own filters.
    assert audited() == []


def test_shared_filters_are_seen_by_all_and_kept_by_reviewers(world: World) -> None:
    dana = staff_with(SEE, REVIEW)
    noa = staff_with(SEE, REVIEW, name="noa")
    viewer = staff_with(SEE, name="viewer")
    post(dana, "save", name="Open", query="state=open", shared="1")
    kept = SavedFilter.objects.get()
    assert list(tabs(viewer)) == ["Open"]
    assert "by <bdi>dana</bdi>" in viewer.get(FILTERS).content.decode()
    assert 'name="do"' not in viewer.get(FILTERS).content.decode()
    assert "yours" in post(viewer, "delete", 400, filter=kept.pk)
    post(noa, "rename", filter=kept.pk, name="To do")
    assert list(tabs(viewer)) == ["To do"]
    post(noa, "unshare", filter=kept.pk)
    assert tabs(viewer) == {}
    assert list(tabs(dana)) == ["To do"]
    post(dana, "share", filter=kept.pk)
    post(noa, "delete", filter=kept.pk)
    assert audited() == [
        *("filter.share", "filter.update", "filter.unshare", "filter.share", "filter.delete")
    ]
    assert "To do" not in str(AuditEvent.objects.values_list())


def test_who_may_not_manage_labels_may_not_share(world: World) -> None:
    viewer = staff_with(SEE)
    assert client_has_no_share(viewer)
    post(viewer, "save", 403, name="Open", query="state=open", shared="1")
    post(viewer, "save", name="Open", query="state=open")
    post(viewer, "share", 403, filter=SavedFilter.objects.get().pk)
    assert not SavedFilter.objects.get().is_shared
    assert staff_with(name="nobody").get(FILTERS).status_code == 403


def client_has_no_share(client: Client) -> bool:
    return "for the whole team" not in client.get(f"{INBOX}?state=open").content.decode()


@pytest.mark.parametrize(
    ("name", "told"),
    [("", "a name"), (" \x00 ", "a name"), ("x" * 41, "40 characters"), ("open", "already")],
)
def test_a_name_that_does_not_do_is_refused_in_words(
    admin_client: Client, name: str, told: str
) -> None:
    post(admin_client, "save", name="Open", query="state=open")
    assert told in post(admin_client, "save", 400, name=name, query="state=snoozed")
    assert SavedFilter.objects.count() == 1
    kept = SavedFilter.objects.get()
    post(admin_client, "save", name="Other", query="state=snoozed")
    other = SavedFilter.objects.get(name="Other")
    assert told in post(admin_client, "rename", 400, filter=other.pk, name=name)
    # The same name in other letters is no other filter's.
    post(admin_client, "rename", filter=kept.pk, name="OPEN")


def test_one_person_and_the_team_have_so_many_filters(admin_client: Client) -> None:
    users = [User.objects.create_user(f"user {number}") for number in range(20)]
    for user in users:
        SavedFilter.objects.create(user=user, name="x", query="state=open", is_shared=True)
    post(admin_client, "save", 400, name="one", query="state=open", shared="1")
    for number in range(20):
        post(admin_client, "save", name=f"number {number}", query="state=open")
    shown = post(admin_client, "save", 400, name="more", query="state=open")
    assert "delete one first" in shown
    mine = SavedFilter.objects.filter(user__username="admin")
    assert mine.count() == 20
    assert "delete one first" in post(admin_client, "share", 400, filter=mine[0].pk)


def test_filters_go_with_their_user_and_many_cost_no_more_queries(admin_client: Client) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            tabs(admin_client)
            admin_client.get(FILTERS)
        return len(queries)

    post(admin_client, "save", name="first", query="state=open")
    few = asked()
    for number in range(6):
        other = User.objects.create_user(f"user {number}")
        SavedFilter.objects.create(user=other, name="x", query="state=open", is_shared=True)
    assert asked() == few
    User.objects.filter(username__startswith="user").delete()
    assert list(tabs(admin_client)) == ["first"]


def test_what_is_asked_of_no_filter_is_refused(admin_client: Client) -> None:
    for do in ("", "explode", "rename"):
        post(admin_client, do, 400, filter="x" * 40, name="a")
    assert admin_client.put(FILTERS).status_code == 405
