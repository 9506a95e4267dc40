"""What staff just did can be taken back, by the button in the message that reports it."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import signing
from django.test import Client
from django.utils import timezone

from memories_app.models import Memory, MergeProposal, ProposalMemory
from memories_app.review.decide_proposals import contents_stamp
from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.embedding.choice import embedder
from sessions_app.forgetting.dependencies import build_forget_dependencies
from sessions_app.forgetting.forget_objects import object_forget
from sessions_app.inbox.needs import to_review_ids
from sessions_app.models import Chat, ChatAccess, ChatMark, Message, ReviewedMark, Snooze, Turn
from tests.dashboard.staff import staff_with
from tests.dashboard.test_memory_decisions import OTHER, answer, answer_many
from tests.remembering import memory_update, remember
from tests.shown import said
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db
INBOX = "/admin/sessions_app/chat/"
TOKEN = re.compile(r'class="button undo" form="undo-form" name="token" value="([^"]+)"')


def token_in(answered: Any) -> str:
    (token,) = TOKEN.findall(answered.content.decode())
    return html.unescape(token)


def undo(client: Client, answered: Any) -> str:
    return said(client.post("/admin/undo/", {"token": token_in(answered)}, follow=True))


@pytest.fixture
def waiting(world: World) -> Memory:
    world.say(CLIENT, "I think Dana may like tea")
    message = Message.objects.filter(role="user").get()
    found = {"chat_id": message.chat_id, "source_message_id": message.pk, "visibility": "chat"}
    return remember("Dana likes tea", source="extraction", proposed=True, **found)


def rows(memory: Memory) -> Any:
    ignored = ("updated_at", "vector_due_at")
    fields = Memory.objects.filter(pk=memory.pk).values().first() or {}
    told = list(Memory.tellings.rel.related_model.objects.filter(memory=memory.pk).values())
    return {name: value for name, value in fields.items() if name not in ignored}, told


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_a_decision_about_a_memory_is_taken_back_once(
    admin_client: Client, waiting: Memory, decision: str
) -> None:
    before = rows(waiting)
    answered = answer(admin_client, waiting, decision)
    assert rows(waiting) != before
    assert "It is undone." in undo(admin_client, answered)
    assert rows(waiting) == before
    assert AuditEvent.objects.filter(action=f"memory.un{decision}").count() == 1
    assert "Somebody else changed this memory." in undo(admin_client, answered)


def test_many_are_taken_back_together_or_none(admin_client: Client, waiting: Memory) -> None:
    other = remember("Yossi likes coffee", proposed=True)
    answered = answer_many(admin_client, "approve", waiting, other)
    assert "It is undone." in undo(admin_client, answered)
    assert set(Memory.objects.values_list("status", flat=True)) == {"proposed"}
    answered = answer_many(admin_client, "reject", waiting, other)
    undo(admin_client, answered)
    answer(admin_client, waiting, "reject")
    assert "Somebody else changed" in undo(admin_client, answered)
    assert not Memory.objects.filter(pk=waiting.pk).exists()


def test_what_it_took_the_place_of_holds_again(admin_client: Client, world: World) -> None:
    older = remember("The price is 35", visibility="public")
    newer = remember("The price is 40", visibility="public", proposed=True)
    answered = answer(admin_client, newer, "approve")
    older.refresh_from_db()
    assert older.status == "superseded"
    undo(admin_client, answered)
    older.refresh_from_db()
    assert (older.status, older.superseded_by_id) == ("active", None)
    known = remember("The shop is closed", visibility="public")
    again = remember("The shop is in Haifa", visibility="public", proposed=True)
    memory_update(
        memory_id=known.pk, content="The shop is in Haifa", actor=OTHER, embedder=embedder()
    )
    before = Memory.objects.get(pk=known.pk).told_count
    undo(admin_client, answer(admin_client, again, "approve"))
    assert Memory.objects.get(pk=known.pk).told_count == before


def test_what_was_erased_since_does_not_come_back(admin_client: Client, waiting: Memory) -> None:
    answered = answer(admin_client, waiting, "reject")
    dependencies = build_forget_dependencies()
    source = waiting.source_message_id
    assert source
    object_forget(kind="message", object_id=source, dependencies=dependencies, actor=OTHER)
    assert "erased meanwhile" in undo(admin_client, answered)
    assert not Memory.objects.filter(pk=waiting.pk).exists()


def test_a_review_is_taken_back_to_what_it_was(
    admin_client: Client, admin_user: User, world: World
) -> None:
    world.say(CLIENT, "hello")
    chat = Chat.objects.get()

    def review() -> Any:
        posted = {"do": "reviewed", "next": INBOX}
        return admin_client.post(f"{INBOX}{chat.pk}/review/", posted, follow=True)

    undo(admin_client, review())
    assert not ReviewedMark.objects.exists()
    review()
    until = timezone.now() + timedelta(hours=1)
    Snooze.objects.create(chat=chat, since=timezone.now(), until=until, snoozed_by=admin_user)
    ChatMark.objects.create(chat=chat, rule_name="Complaints", due_at=until)
    world.say(CLIENT, "more")
    kinds = (ReviewedMark, Snooze, ChatMark)
    kept = [kind.objects.values().get() for kind in kinds]
    answered = review()
    assert not Snooze.objects.exists()
    assert not ChatMark.objects.exists()
    assert "It is undone." in undo(admin_client, answered)
    assert [kind.objects.values().get() for kind in kinds] == kept
    # A colleague's review stays.
    answered = review()
    ReviewedMark.objects.update(reviewed_by=User.objects.create_user("omar"))
    assert "Somebody else has reviewed it" in undo(admin_client, answered)
    assert ReviewedMark.objects.exists()


def test_a_block_is_taken_back_to_what_it_was(admin_client: Client, world: World) -> None:
    for number in ("972550100101@c.us", CLIENT):
        world.say(number, "buy now")
    known, new = Chat.objects.order_by("created_at")
    ChatAccess.objects.update_or_create(
        chat=known, defaults={"standing": "allowed", "reason": "client"}
    )
    posted = {"action": "block_selected", "_selected_action": [known.pk, new.pk]}
    answered = admin_client.post(INBOX, posted, follow=True)
    assert set(ChatAccess.objects.values_list("standing", flat=True)) == {"blocked"}
    undo(admin_client, answered)
    found = ChatAccess.objects.values_list("chat", "standing", "reason")
    assert set(found) == {(known.pk, "allowed", "client"), (new.pk, "", "")}


def pair(kind: str) -> MergeProposal:
    made = MergeProposal.objects.create(
        kind=kind, content="Dana likes green tea", similarity=0.9, alike_key=kind
    )
    for number, content in enumerate(("Dana likes green tea", "Dana likes black coffee")):
        memory = remember(content, tags=(content.split()[-1],), pinned=number == 1)
        ProposalMemory.objects.create(proposal=made, memory=memory, number=number)
    return made


def decide(client: Client, proposal: MergeProposal, decision: str, **posted: str) -> Any:
    seen = contents_stamp(part.memory for part in proposal.parts.all())
    address = f"/admin/memories_app/mergeproposal/{proposal.pk}/decide/"
    data = {"decision": decision, f"seen-{proposal.pk}": seen, **posted}
    return client.post(address, data, follow=True)


@pytest.mark.parametrize(
    ("kind", "decision"),
    [("merge", "accept"), ("replace", "accept"), ("replace", "reverse"), ("merge", "dismiss")],
)
def test_a_decision_about_a_proposal_is_taken_back_once(
    admin_client: Client, kind: str, decision: str
) -> None:
    proposal = pair(kind)
    memories = list(Memory.objects.order_by("content"))
    before = [rows(memory) for memory in memories]
    answered = decide(admin_client, proposal, decision)
    proposal.refresh_from_db()
    assert proposal.state != "open"
    assert ([rows(each) for each in memories] == before) is (decision == "dismiss")
    assert "It is undone" in undo(admin_client, answered)
    assert [rows(each) for each in memories] == before
    proposal.refresh_from_db()
    assert (proposal.state, proposal.decided_at, proposal.decided_by) == ("open", None, "")
    assert AuditEvent.objects.latest("pk").action == "proposal.reopen"
    assert "changed one of these" in undo(admin_client, answered), "once"
    assert "is accepted" in said(decide(admin_client, proposal, "accept"))


def test_a_text_that_was_merged_comes_back_unless_it_changed_again(admin_client: Client) -> None:
    proposal = pair("merge")
    MergeProposal.objects.update(content="Dana likes tea and coffee")
    answered = decide(admin_client, proposal, "accept")
    kept = Memory.objects.get(content="Dana likes tea and coffee")
    undo(admin_client, answered)
    kept.refresh_from_db()
    assert kept.content == "Dana likes green tea"
    assert kept.embeddings.count() == 1
    answered = decide(admin_client, proposal, "accept")
    changes: Any = {"content": "Dana likes mate", "actor": SYSTEM}
    memory_update(memory_id=kept.pk, embedder=embedder(), **changes)
    assert "changed one of these" in undo(admin_client, answered)
    assert Memory.objects.get(pk=kept.pk).content == "Dana likes mate"
    assert Memory.objects.get(content="Dana likes black coffee").status == "superseded"


def test_a_resolved_answer_is_to_be_reviewed_again(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "hello")
    turn = Turn.objects.get()
    page = f"/admin/sessions_app/turn/{turn.pk}/"
    admin_client.post(f"{page}rate/", {"verdict": "bad"})
    answered = admin_client.post(f"{page}resolve/", follow=True)
    assert to_review_ids() == []
    undo(admin_client, answered)
    assert to_review_ids() == [turn.pk]
    answered = admin_client.post(f"{page}resolve/", follow=True)
    staff_with("sessions_app.view_turn", "sessions_app.review_chat").post(f"{page}resolve/")
    assert "Somebody else has reviewed it" in undo(admin_client, answered)
    assert to_review_ids() == []


def test_a_correction_is_taken_back_unless_it_changed_again(
    admin_client: Client, world: World
) -> None:
    memory = remember("We close at six")
    world.say(CLIENT, "hello")
    page = f"/admin/sessions_app/turn/{Turn.objects.get().pk}/memory/{memory.pk}/"

    def correct() -> Any:
        memory.refresh_from_db()
        posted = {"content": "We close at two", "seen": memory.content_hash}
        return admin_client.post(page, posted, follow=True)

    undo(admin_client, correct())
    memory.refresh_from_db()
    assert memory.content == "We close at six"
    answered = correct()
    memory_update(memory_id=memory.pk, content="We close", actor=OTHER, embedder=embedder())
    assert "It is undone." not in undo(admin_client, answered)
    memory.refresh_from_db()
    assert memory.content == "We close"


def test_it_is_taken_back_by_the_same_person_in_time(
    admin_client: Client, waiting: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = token_in(answer(admin_client, waiting, "approve"))
    stranger = staff_with("memories_app.decide_mergeproposal", "memories_app.view_memory")
    assert stranger.post("/admin/undo/", {"token": token}).status_code == 403
    for bad in ("", "x", f"{token}x"):
        assert "too late" in said(admin_client.post("/admin/undo/", {"token": bad}, follow=True))
    # A minute is too long to wait, and the signature has its time from the clock alone.
    later = signing.time.time() + 61  # type: ignore[attr-defined]
    monkeypatch.setattr(signing.time, "time", lambda: later)  # type: ignore[attr-defined]
    assert "too late" in said(admin_client.post("/admin/undo/", {"token": token}, follow=True))
    assert Memory.objects.get(pk=waiting.pk).status == "active"
    assert admin_client.get("/admin/undo/").status_code in (302, 405)
