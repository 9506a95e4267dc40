"""Tabs and states of the inbox: whose a conversation is, whether it is open, snoozed or reviewed;
and filters that are saved under a name."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories_app.models import MergeProposal, ProposalMemory
from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import (
    AnswerRating,
    AnswerResolved,
    Chat,
    ChatMark,
    ChatPause,
    Message,
    SavedFilter,
    Snooze,
    Turn,
    TurnReplay,
)
from sessions_app.models.messages import ASKING
from sessions_app.models.turns import HANDOVER
from sessions_app.turns.answer_review import answer_rate
from tests.dashboard.staff import page, staff_with
from tests.remembering import remember
from tests.shown import found_in, words_of
from tests.world import CLIENT, OTHER_CLIENT, World, message_from, new_world

pytestmark = pytest.mark.django_db

INBOX = "/admin/sessions_app/chat/"
FILTERS = f"{INBOX}filters/"
SEE, REVIEW = "sessions_app.view_chat", "sessions_app.review_chat"
LISTED = re.compile(r'<span class="chat-address quiet"><bdi dir="ltr">(.*?)</bdi>')
TAB = re.compile(
    r'<a href="([^"]*)"( aria-current="page")?>([\w ]+) <span class="tab-number">(.*?)<'
)


@pytest.fixture(scope="module")
def two(module_rows: None) -> None:
    world = new_world()
    for name in (CLIENT, OTHER_CLIENT):
        world.say(name, "hello")


@pytest.fixture
def chats(two: None, world: World) -> list[Chat]:
    """Two people, who have their answers."""
    return [world.chat(CLIENT), world.chat(OTHER_CLIENT)]


def listed(client: Client, query: str = "") -> list[str]:
    return rows_in(page(client, INBOX + query))


def rows_in(shown: str) -> list[str]:
    """The ids of the listed chats, which show their numbers."""
    return [f"{re.sub(r'[^0-9]', '', number)}@c.us" for number in LISTED.findall(shown)]


def tabs(client: Client, query: str = "") -> dict[str, str]:
    return tabs_in(page(client, INBOX + query))


def tabs_in(shown: str) -> dict[str, str]:
    return {title: number for _, _, title, number in TAB.findall(shown)}


def do(client: Client, chat: Chat, what: str, **data: Any) -> str:
    answer = client.post(f"{INBOX}{chat.pk}/review/", {"do": what, "next": INBOX, **data})
    assert answer.status_code == 302
    return str(answer["Location"])


def act(client: Client, chat: Chat, what: str, **data: Any) -> str:
    return page(client, do(client, chat, what, **data))


def test_tabs_lead_to_their_part_and_count_it(admin_client: Client, chats: list[Chat]) -> None:
    act(admin_client, chats[0], "assign:me")
    Turn.objects.filter(chat=chats[1]).update(state="failed", finished_at=timezone.now())
    found = TAB.findall(page(admin_client, INBOX))
    assert [(title, number) for _, _, title, number in found] == [
        ("Mine", "1"),
        ("Unassigned", "1"),
        ("All", "2"),
        ("Needs you", "1"),
    ]
    parts = [listed(admin_client, address) for address, _, _, _ in found]
    assert parts == [[CLIENT], [OTHER_CLIENT], [OTHER_CLIENT, CLIENT], [OTHER_CLIENT]]
    assert [title for _, is_here, title, _ in found if is_here] == ["All"]
    mine = TAB.findall(page(admin_client, INBOX, assigned="me"))
    assert [title for _, is_here, title, _ in mine if is_here] == ["Mine"]


def test_open_and_reviewed_differ(admin_client: Client, world: World, chats: list[Chat]) -> None:
    act(admin_client, chats[0], "reviewed")
    assert listed(admin_client, "?state=open") == [OTHER_CLIENT]
    assert listed(admin_client, "?state=reviewed") == [CLIENT]
    assert tabs(admin_client, "?state=reviewed")["All"] == "1"
    world.say(CLIENT, "one more thing")
    assert listed(admin_client, "?state=open") == [CLIENT, OTHER_CLIENT]
    assert listed(admin_client, "?state=reviewed") == []


def test_what_is_snoozed_leaves_until_its_time(admin_client: Client, chats: list[Chat]) -> None:
    Turn.objects.filter(chat=chats[0]).update(state="failed", finished_at=timezone.now())
    assert listed(admin_client, "?attention=1") == [CLIENT]
    assert "1 conversation is snoozed until" in act(admin_client, chats[0], "snooze:1h")
    for query in ("", "?state=open"):
        assert listed(admin_client, query) == [OTHER_CLIENT]
    assert listed(admin_client, "?state=snoozed") == [CLIENT]
    assert list(tabs(admin_client).values()) == ["0", "1", "1", "0"]
    # Who searches finds it, with its state.
    assert listed(admin_client, "?q=0123") == [CLIENT]
    assert "snoozed until" in page(admin_client, INBOX, q="0123")
    assert "is back in the inbox" in act(admin_client, chats[0], "unsnooze")
    act(admin_client, chats[0], "snooze:1h")
    Snooze.objects.update(until=timezone.now() - timedelta(seconds=1))
    assert listed(admin_client, "?state=open") == [OTHER_CLIENT, CLIENT]
    assert listed(admin_client, "?attention=1") == [CLIENT]
    # It is on the list until somebody is done with it.
    act(admin_client, chats[0], "reviewed")
    assert listed(admin_client, "?attention=1") == []
    assert listed(admin_client, "?state=reviewed") == [CLIENT]
    events = AuditEvent.objects.filter(action__contains="snooze").order_by("id")
    snoozes = ["chat.snooze", "chat.unsnooze", "chat.snooze"]
    assert [event.action for event in events] == snoozes
    assert list(events[0].details) == ["until"], "without texts"


def test_a_message_brings_it_back(admin_client: Client, world: World, chats: list[Chat]) -> None:
    world.receive(message_from(CLIENT, "I'll write again"))
    act(admin_client, chats[0], "snooze:week")
    world.work()
    assert listed(admin_client) == [OTHER_CLIENT]
    world.receive(message_from(CLIENT, "it is me"))
    assert listed(admin_client) == [CLIENT, OTHER_CLIENT]
    assert listed(admin_client, "?state=snoozed") == []


def test_what_came_in_later_stays(admin_client: Client, world: World, chats: list[Chat]) -> None:
    made = found_in(r'name="made" value="([^"]+)"', page(admin_client, INBOX))
    world.receive(message_from(CLIENT, "wait"))
    data = {"do": "snooze:4h", "made": made, "_selected_action": [each.pk for each in chats]}
    admin_client.post(f"{INBOX}review/", data)
    assert Snooze.objects.count() == 2
    assert listed(admin_client) == [CLIENT]


def test_a_time_of_ones_own(admin_client: Client, chats: list[Chat]) -> None:
    for until, reason in (
        ("", "Say until when"),
        ("x", "That is no date with a time"),
        ("2020-01-01T10:00", "That time is over"),
        ("2999-01-01T10:00", "more than a year away"),
    ):
        assert reason in act(admin_client, chats[0], "snooze:at", until=until)
    assert not Snooze.objects.exists()
    tomorrow = timezone.localtime() + timedelta(days=1)
    act(admin_client, chats[0], "snooze:at", until=f"{tomorrow:%Y-%m-%dT%H:%M}")
    until_then = timezone.localtime(Snooze.objects.get().until)
    assert until_then == tomorrow.replace(second=0, microsecond=0)


# Filters under a name


def post(client: Client, do: str, status: int = 302, **data: Any) -> str:
    answer = client.post(FILTERS, {"do": do, **data})
    assert answer.status_code == status, answer.content.decode()
    return str(answer.headers.get("Location", "")) or answer.content.decode()


def saved(client: Client) -> dict[str, str]:
    """The saved filters over the list, with their addresses."""
    part = found_in(r'<div id="inbox-saved".*?</div>', page(client, INBOX))
    found = re.findall(r'<a href="([^"]*)"[^>]*>(?:<span.*?</span>)? ?<bdi>(.*?)</bdi>', part)
    return {name: html.unescape(address) for address, name in found}


def audited() -> list[str]:
    events = AuditEvent.objects.filter(action__startswith="filter.").order_by("pk")
    return list(events.values_list("action", flat=True))


def test_filters_are_saved_and_opened_by_name(admin_client: Client, chats: list[Chat]) -> None:
    offer = "Save these filters"
    assert offer not in page(admin_client, INBOX)
    shown = page(admin_client, f"{INBOX}?unread=1&assigned=me")
    assert 'name="query" value="assigned=me&amp;unread=1"' in shown
    address = post(admin_client, "save", name=" My   unread ", query="unread=1&assigned=me")
    assert address == f"{INBOX}?assigned=me&unread=1"
    assert saved(admin_client) == {"My unread": address}
    # Where it is open already it isn't offered again; words narrow it to another list.
    shown = page(admin_client, address)
    assert offer not in shown
    assert re.search(r'aria-current="page"><bdi>My unread', shown)
    assert offer in page(admin_client, f"{address}&q=dana")
    # Search words, pages and nonsense are not saved.
    query = "q=Dana&p=3&hits=20&state=open&kind=x&label=z&when=7&evil=<b>&unread=2"
    post(admin_client, "save", name="Open", query=query)
    assert SavedFilter.objects.get(name="Open").query == "state=open&when=7"
    shown = post(admin_client, "save", 400, name="Words", query="q=Dana")
    assert "Set a filter first" in shown
    assert 'value="Words"' in shown


def test_filters_are_renamed_and_deleted_by_their_owner(two: None) -> None:
    dana, omar = staff_with(SEE), staff_with(SEE, name="omar")
    post(dana, "save", name="Open", query="state=open")
    kept = SavedFilter.objects.get()
    assert saved(omar) == {}
    assert "Open" not in page(omar, FILTERS)
    for do in ("rename", "delete"):
        assert "yours" in post(omar, do, 400, filter=kept.pk, name="Mine")
    post(dana, "rename", filter=kept.pk, name="To do")
    assert list(saved(dana)) == ["To do"]
    # Sharing takes the right to manage labels.
    assert "for the whole team" not in page(dana, INBOX, state="open")
    post(dana, "save", 403, name="Shared", query="state=open", shared="1")
    post(dana, "share", 403, filter=kept.pk)
    post(dana, "delete", filter=kept.pk)
    assert saved(dana) == {}
    for do in ("delete", "", "explode", "rename"):
        post(dana, do, 400, filter=kept.pk, name="a")
    # Nobody else is concerned by one's own filters.
    assert audited() == []


def test_shared_filters_are_seen_by_all_and_kept_by_reviewers(two: None) -> None:
    dana = staff_with(SEE, REVIEW)
    noa = staff_with(SEE, REVIEW, name="noa")
    viewer = staff_with(SEE, name="viewer")
    post(dana, "save", name="Open", query="state=open", shared="1")
    kept = SavedFilter.objects.get()
    assert list(saved(viewer)) == ["Open"]
    shown = page(viewer, FILTERS)
    assert ("by <bdi>dana</bdi>" in shown, 'name="do"' in shown) == (True, False)
    assert "yours" in post(viewer, "delete", 400, filter=kept.pk)
    post(noa, "rename", filter=kept.pk, name="To do")
    assert list(saved(viewer)) == ["To do"]
    post(noa, "unshare", filter=kept.pk)
    assert (list(saved(viewer)), list(saved(dana))) == ([], ["To do"])
    post(dana, "share", filter=kept.pk)
    post(noa, "delete", filter=kept.pk)
    did = ("share", "update", "unshare", "share", "delete")
    assert audited() == [f"filter.{each}" for each in did]
    assert "To do" not in str(AuditEvent.objects.values_list())


def test_names_and_numbers_of_filters_are_limited(admin_client: Client) -> None:
    post(admin_client, "save", name="Open", query="state=open")
    post(admin_client, "save", name="Other", query="state=snoozed")
    kept, other = SavedFilter.objects.order_by("pk")
    for name, told in (("", "a name"), (" \x00 ", "a name"), ("x" * 41, "40 characters")):
        assert told in post(admin_client, "save", 400, name=name, query="state=snoozed")
    for name in ("open", "OPEN"):
        assert "already" in post(admin_client, "save", 400, name=name, query="state=snoozed")
        assert "already" in post(admin_client, "rename", 400, filter=other.pk, name=name)
    # The same name in other letters is no other filter's.
    post(admin_client, "rename", filter=kept.pk, name="OPEN")
    for number in range(20):
        user = User.objects.create_user(f"user {number}")
        SavedFilter.objects.create(user=user, name="x", query="state=open", is_shared=True)
    post(admin_client, "save", 400, name="one", query="state=open", shared="1")
    for number in range(18):
        post(admin_client, "save", name=f"number {number}", query="state=open")
    more = post(admin_client, "save", 400, name="more", query="state=open")
    assert "delete one first" in more
    assert "delete one first" in post(admin_client, "share", 400, filter=kept.pk)
    assert SavedFilter.objects.filter(user__username="admin").count() == 20


MARKS = re.compile(r'<div class="chat-marks">(.*?)</div>', re.DOTALL)
FAR = timedelta(hours=1)
SINCE = timezone.now() - FAR


def rate_bad(turn: Turn, user: User) -> None:
    answer_rate(turn_id=turn.pk, user=user, is_good=False, reason="wrong", actor=SYSTEM)


def snooze_over(turn: Turn, user: User) -> None:
    then = timezone.now() - FAR
    Snooze.objects.create(chat=turn.chat, since=then, until=then, snoozed_by=user)


REASONS: dict[str, tuple[Callable[[Turn, User], object], bool]] = {
    # What makes it, and whether a reply of staff ends it.
    "asked for a person": (lambda turn, _: change(turn, context={HANDOVER: "asked"}), True),
    "not answered": (lambda turn, _: change(turn, state="missed"), True),
    "answer is late": (lambda turn, _: change(turn, state="running", created_at=SINCE), True),
    "rated bad": (rate_bad, True),
    "unknown question": (lambda turn, _: asks(turn), True),
    "1 answer failed": (lambda turn, _: change(turn, state="failed"), True),
    "back from snooze": (snooze_over, False),
}


def change(turn: Turn, **fields: Any) -> None:
    Turn.objects.filter(pk=turn.pk).update(finished_at=timezone.now(), **fields)


def asks(turn: Turn) -> None:
    """The answer was to a question for which nothing was recalled."""
    Message.objects.filter(pk=turn.message_id).update(terms=[ASKING])
    TurnReplay.objects.filter(turn=turn).update(recalled=[])


@pytest.mark.parametrize("reason", REASONS)
def test_the_queue_names_each_reason_until_somebody_sees_to_it(
    admin_client: Client, admin_user: User, chats: list[Chat], reason: str
) -> None:
    make, ends_by_reply = REASONS[reason]
    shown = page(admin_client, INBOX, needs="1")
    assert (rows_in(shown), tabs_in(shown)["Needs you"]) == ([], "0")
    turn = Turn.objects.get(chat=chats[0])
    make(turn, admin_user)
    shown = page(admin_client, INBOX, needs="1")
    assert reason in " ".join(MARKS.findall(shown))
    assert (rows_in(shown), tabs_in(shown)["Needs you"]) == ([CLIENT], "1")
    assert listed(admin_client, "?needs=1&assigned=me") == []
    do(admin_client, chats[0], "assign:me")
    assert listed(admin_client, "?needs=1&assigned=me") == [CLIENT]
    if ends_by_reply:
        reply = Turn.objects.create(
            chat=chats[0], provider="cloud", by_hand=True, state="sent", asked_at=timezone.now()
        )
        assert listed(admin_client, "?needs=1") == []
        reply.delete()
    do(admin_client, chats[0], "snooze:1h")
    assert listed(admin_client, "?needs=1") == []
    do(admin_client, chats[0], "unsnooze")
    do(admin_client, chats[0], "reviewed")
    assert listed(admin_client, "?needs=1") == []


def test_the_queue_is_one_question_more_for_many_chats(
    admin_client: Client, admin_user: User, chats: list[Chat]
) -> None:
    rate_bad(Turn.objects.get(chat=chats[0]), admin_user)
    with CaptureQueriesContext(connection) as few:
        assert listed(admin_client, "?needs=1") == [CLIENT]
    rate_bad(Turn.objects.get(chat=chats[1]), admin_user)
    with CaptureQueriesContext(connection) as many:
        assert listed(admin_client, "?needs=1") == [OTHER_CLIENT, CLIENT]
    assert len(many) == len(few)


NUMBER = re.compile(r'class="menu-number">(.*?)<')
VALUE = re.compile(r'id="figure-attention".*?<a href="([^"]*)"[^>]*>(.*?)</a>', re.DOTALL)


def waiting(client: Client) -> int:
    """The number of rows of the queue, which the badge, Home and the tab must have, too."""
    address, at_home = VALUE.findall(page(client, "/admin/"))[0]
    shown = page(client, html.unescape(address))
    rows = shown.count('<li class="chat')
    badge = NUMBER.findall(shown)[0]
    assert {at_home, badge, tabs(client)["Needs you"]} == {str(rows)}
    assert client.get(INBOX, headers={"X-Live": "figures"})["X-Attention"] == str(rows)
    return rows


def paused_and_wrote(turn: Turn, user: User) -> None:
    ChatPause.objects.create(chat=turn.chat)
    new_world().say(turn.chat.whatsapp_chat, "are you there?")


def overdue(turn: Turn, user: User) -> None:
    ChatMark.objects.update_or_create(chat=turn.chat, defaults={"due_at": timezone.now()})


def proposed(kind: str) -> MergeProposal:
    parts = [remember(f"Dana likes {kind} {number}") for number in range(2)]
    made = MergeProposal.objects.create(
        kind=kind, content=parts[0].content, similarity=0.9, alike_key=kind
    )
    for number, memory in enumerate(parts):
        ProposalMemory.objects.create(proposal=made, memory=memory, number=number)
    return made


def test_there_is_one_count_of_what_waits(
    admin_client: Client, admin_user: User, world: World
) -> None:
    makes = [make for make, _ends in REASONS.values()]
    makes += [paused_and_wrote, overdue, lambda turn, _: change(turn, state="unconfirmed")]
    people = [f"1555010090{number}@c.us" for number in range(len(makes))]
    for person in people:
        world.say(person, "hello")
    assert waiting(admin_client) == 0
    for number, (person, make) in enumerate(zip(people, makes, strict=True), start=1):
        make(Turn.objects.get(chat=world.chat(person)), admin_user)
        # A chat that waits for two reasons is one row.
        overdue(Turn.objects.filter(chat=world.chat(person)).earliest("pk"), admin_user)
        assert waiting(admin_client) == number
    count = len(makes)
    memory = remember("Dana likes tea", proposed=True, confidence=0.4)
    pairs = [proposed(kind) for kind in ("merge", "replace")]
    assert waiting(admin_client) == count + 3
    shown = words_of(page(admin_client, INBOX, needs="1"))
    for words in ("Suggested memory Dana", "Duplicate memories Dana", "Contradictory memories"):
        assert words in shown
    assert waiting(staff_with(SEE)) == count, "of memories who may see memories"
    for chat in Chat.objects.all():
        do(admin_client, chat, "reviewed")
    assert waiting(admin_client) == 3
    answer = {"decision": "reject", "seen": memory.content_hash}
    admin_client.post(f"/admin/memories_app/memory/{memory.pk}/answer/", answer)
    assert waiting(admin_client) == 2
    for number, pair in enumerate(pairs):
        data = {"decision": "dismiss", f"seen-{pair.pk}": "x"}
        admin_client.post(f"/admin/memories_app/mergeproposal/{pair.pk}/decide/", data)
        assert waiting(admin_client) == 1 - number


def test_an_answer_that_is_resolved_does_not_wait(
    admin_client: Client, admin_user: User, chats: list[Chat]
) -> None:
    for make in (REASONS["1 answer failed"], REASONS["rated bad"], REASONS["unknown question"]):
        turn = Turn.objects.get(chat=chats[0])
        make[0](turn, admin_user)
        assert waiting(admin_client) == 1
        admin_client.post(f"/admin/sessions_app/turn/{turn.pk}/resolve/")
        assert waiting(admin_client) == 0
        AnswerResolved.objects.all().delete()
        AnswerRating.objects.all().delete()
        change(turn, state="sent")


def test_filters_that_were_saved_before_lead_to_the_queue(
    admin_client: Client, chats: list[Chat]
) -> None:
    change(Turn.objects.get(chat=chats[0]), state="failed")
    assert listed(admin_client, "?attention=1") == [CLIENT]
