"""Staff's pages of memories and proposals: each button through its service."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.html import conditional_escape
from pytest_django import DjangoAssertNumQueries

from memories_app.models import Memory, MergeProposal
from memories_app.review.consolidate import memories_propose_merges
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from sessions_app.models import Chat
from tests.forms import save
from tests.memories.bulk import memories_store
from tests.remembering import remember
from tests.shown import said

pytestmark = pytest.mark.django_db
LIST = "/admin/memories_app/memory/"
PROPOSALS = "/admin/memories_app/mergeproposal/"
EMBEDDER = WordLlamaEmbedder()
HEBREW = "המחיר הוא 35 שקלים"


@pytest.fixture
def staff(admin_client: Client) -> Client:
    return admin_client


def page(memory: Memory) -> str:
    return f"{LIST}{memory.pk}/change/"


def filled(memory: Memory | None = None, **changes: str) -> dict[str, str]:
    """The form as a browser posts it."""
    values = {"content": "", "visibility": "owner", "type": "fact", "category": "", "tags": ""}
    if memory is not None:
        values.update(content=memory.content, visibility=memory.visibility, type=memory.type)
    return {**values, "expires_at_0": "", "expires_at_1": "", **changes}


def errors(response: Any) -> str:
    """What the form says, as the page shows it."""
    shown = response.content.decode()
    told = [str(each) for some in _form(response).errors.values() for each in some]
    assert all(conditional_escape(text) in shown for text in told)
    return " ".join(told)


def _form(response: Any) -> Any:
    return response.context["adminform"].form


def act(staff: Client, action: str, *items: Any, at: str = LIST) -> Any:
    chosen = {"action": action, "_selected_action": [str(item.pk) for item in items]}
    return staff.post(f"{at}?state=all" if at == LIST else at, chosen, follow=True)


def test_a_change_makes_a_revision_and_shows_it(staff: Client) -> None:
    memory = remember(HEBREW)
    saved = save(staff, page(memory), filled(memory, content="המחיר הוא 40 שקלים", tags="a, b"))
    assert saved.status_code == 302
    memory.refresh_from_db()
    assert (memory.content, memory.tags) == ("המחיר הוא 40 שקלים", ["a", "b"])
    assert memory.revisions.get().changed_by_name == "admin"
    shown = staff.get(page(memory)).content.decode()
    assert '<del><span class="sr-only">removed: </span>35 </del>' in shown
    assert '<ins><span class="sr-only">added: </span>40 </ins>' in shown
    event = AuditEvent.objects.latest("id")
    assert (event.action, event.actor_kind, event.actor) == ("memory.update", "staff", "admin")


def test_saving_without_a_change_changes_nothing(staff: Client) -> None:
    memory = remember("  spaces stay \nand lines")
    saved = save(staff, page(memory), filled(memory, content="  spaces stay \r\nand lines"))
    assert saved.status_code == 302
    memory.refresh_from_db()
    assert memory.revisions.count() == 0
    assert memory.content == "  spaces stay \nand lines"


def test_visibility_pin_and_end_are_set_and_audited(staff: Client) -> None:
    memory = remember("We open at 9")
    form = filled(memory, visibility="public", pinned="on", expires_at_0="2030-01-02")
    save(staff, page(memory), {**form, "expires_at_1": "03:04:05"})
    memory.refresh_from_db()
    assert (memory.visibility, memory.pinned) == ("public", True)
    assert memory.expires_at is not None
    done = AuditEvent.objects.filter(actor_kind="staff", action__startswith="memory.")
    assert [event.action for event in done.order_by("id")] == [
        "memory.visibility",
        "memory.pin",
        "memory.expiry",
    ]


def test_what_a_service_refuses_stands_in_the_form(staff: Client) -> None:
    known, memory = remember("Dana likes tea"), remember("Dana likes coffee")
    refused = save(staff, page(memory), filled(memory, content="dana likes tea!"))
    assert refused.status_code == 200
    assert str(known.pk) in errors(refused)
    assert "dana likes tea!" in refused.content.decode(), "nothing that was typed is lost"
    too_long = save(staff, page(memory), filled(memory, content="a" * 9_000))
    assert "at most 8192" in errors(too_long)
    of_no_chat = save(staff, page(memory), filled(memory, visibility="chat"))
    assert "came from no chat" in errors(of_no_chat)
    memory.refresh_from_db()
    assert (memory.content, memory.visibility) == ("Dana likes coffee", "owner")


def test_staff_add_a_memory_of_a_chat(staff: Client) -> None:
    chat = Chat.objects.create(whatsapp_chat="15550100123@c.us", provider="cloud")
    form = filled(content="Dana likes tea", visibility="chat", tags="people")
    assert "Say which client" in errors(staff.post(f"{LIST}add/", form))
    unknown = staff.post(f"{LIST}add/", {**form, "whatsapp_chat": "1@c.us"})
    assert "No contact has this name or number." in errors(unknown)
    added = staff.post(f"{LIST}add/", {**form, "whatsapp_chat": chat.whatsapp_chat})
    assert added.status_code == 302
    memory = Memory.objects.get()
    assert (memory.chat_id, memory.source, memory.tags) == (chat.pk, "staff", ["people"])
    assert "+1 555-010-0123" in staff.get(page(memory)).content.decode()
    again = staff.post(f"{LIST}add/", {**form, "whatsapp_chat": chat.whatsapp_chat}, follow=True)
    assert "was known already" in said(again)
    assert Memory.objects.count() == 1


def test_the_chain_of_what_superseded_what_is_linked(staff: Client) -> None:
    old, new = remember("The price is 35"), remember("The price is 40")
    old_page, new_page = (staff.get(page(memory)).content.decode() for memory in (old, new))
    assert page(new) in old_page
    assert page(old) in new_page
    assert 'name="_save"' not in old_page, "history is only read"
    assert staff.post(page(old), filled(old, content="other")).status_code == 403


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ("", {"Dana likes tea"}),
        ("proposed", {"Perhaps"}),
        ("superseded", set()),
        ("expired", {"Gone"}),
        ("all", {"Dana likes tea", "Perhaps", "Gone"}),
    ],
)
def test_the_list_shows_what_is_recalled_and_the_rest_when_asked(
    staff: Client, state: str, shown: set[str]
) -> None:
    remember("Dana likes tea", tags=("a",))
    remember("Perhaps", proposed=True)
    remember("Gone", expires_at=timezone.now() - timedelta(days=1))
    seen = staff.get(LIST, {"state": state} if state else {}).content.decode()
    assert {text for text in ("Dana likes tea", "Perhaps", "Gone") if f">{text}<" in seen} == shown


@pytest.mark.parametrize(
    "query",
    ["tag=a", "pinned__exact=0", "visibility__exact=owner", "type=fact", "q=tea&tag=a"],
)
def test_lists_can_be_searched_and_filtered(staff: Client, query: str) -> None:
    remember("Dana likes tea", tags=("a",))
    remember("Yossi likes coffee", visibility="public", type="taste", pinned=True)
    seen = staff.get(f"{LIST}?{query}").content.decode()
    assert "Dana likes tea" in seen
    assert "Yossi" not in seen


def test_actions_do_what_they_say_and_tell_what_they_left_alone(staff: Client) -> None:
    one, other = remember("Dana likes tea"), remember("Yossi likes coffee")
    waiting = remember("Perhaps", proposed=True)
    assert "2 memories are pinned" in said(act(staff, "pin", one, other))
    assert "1 memory isn't pinned any more" in said(act(staff, "unpin", other))
    assert "The visibility of 2 memories was changed" in said(act(staff, "make_public", one, other))
    assert "came from no chat" in said(act(staff, "make_chat", one))
    told = said(act(staff, "approve", one, waiting))
    assert "1 memory is approved" in told
    assert "1 skipped" in told
    assert Memory.objects.get(pk=waiting.pk).status == "active"
    gone = remember("Maybe", proposed=True)
    assert "1 memory is rejected" in said(act(staff, "reject", gone))
    assert not Memory.objects.filter(pk=gone.pk).exists()
    one.refresh_from_db()
    assert (one.pinned, one.visibility) == (True, "public")


def proposed() -> MergeProposal:
    remember("The customer Dana Levi prefers morning meetings in the Haifa office")
    remember("Customer Dana Levi prefers meetings in the morning, Haifa office")
    memories_propose_merges(model_id=EMBEDDER.model_id)
    return MergeProposal.objects.get()


def test_a_proposal_is_accepted_with_the_text_that_staff_write(staff: Client) -> None:
    proposal = proposed()
    address = f"{PROPOSALS}{proposal.pk}/change/"
    page = staff.get(address)
    assert "in the morning, Haifa office" in page.content.decode()
    seen = page.context["seen"]
    refused = staff.post(address, {"decision": "accept", "content": " ", "seen": seen})
    assert "content: is empty" in said(refused)
    typed = {"decision": "accept", "content": "Dana Levi: mornings", "seen": seen}
    assert staff.post(address, typed).status_code == 302
    assert [memory.content for memory in Memory.objects.filter(status="active")] == [
        "Dana Levi: mornings"
    ]
    assert 'name="decision"' not in staff.get(address).content.decode()


@pytest.mark.parametrize(("action", "left"), [("accept", 1), ("dismiss", 2)])
def test_proposals_are_decided_from_the_list(staff: Client, action: str, left: int) -> None:
    proposal = proposed()
    assert "in the morning, Haifa office" in staff.get(PROPOSALS).content.decode()
    assert "1 " in said(act(staff, action, proposal, at=PROPOSALS))
    assert Memory.objects.filter(status="active").count() == left
    assert "already" in said(act(staff, action, proposal, at=f"{PROPOSALS}?state=all"))


def test_a_long_list_asks_few_questions(
    staff: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    memories_store([f"Customer number {number} likes tea" for number in range(300)])
    with django_assert_max_num_queries(20):
        assert staff.get(LIST).status_code == 200
