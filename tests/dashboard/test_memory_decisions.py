"""Staff decide: what waits, what is alike, what contradicts."""

from __future__ import annotations

import html
import inspect
import re
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from memories_app.models import Memory, MergeProposal
from memories_app.review.consolidate import memories_propose_merges
from memories_app.review.decide_proposals import contents_stamp
from memories_app.review.filters import doubt_labels
from memories_app.review.pending import memory_approve
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.embedding.choice import embedder
from sessions_app.extraction import doubts, fact_store
from sessions_app.forgetting.dependencies import build_forget_dependencies
from sessions_app.forgetting.forget_objects import object_forget
from sessions_app.models import Chat, Message
from tests.dashboard.staff import page
from tests.remembering import memory_update, remember
from tests.shown import said, words
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db

LIST = "/admin/memories_app/memory/"
WAITING = f"{LIST}waiting/"
PROPOSALS = "/admin/memories_app/mergeproposal/"
OTHER = Actor("staff", "dana")
ALIKE = (
    "The customer Dana Levi prefers morning meetings in the Haifa office",
    "Customer Dana Levi prefers meetings in the morning, Haifa office",
)
PRICES = ("The price is 35", "The price is 40")


def now(memory: Memory) -> tuple[str, str]:
    memory.refresh_from_db()
    return memory.status, memory.content


def of(memory: Memory) -> str:
    return f"{LIST}{memory.pk}/change/"


def answer(client: Client, memory: Memory, decision: str, **more: str) -> Any:
    posted = {"decision": decision, "seen": memory.content_hash, **more}
    return client.post(f"{LIST}{memory.pk}/answer/", posted, follow=True)


def answer_many(client: Client, decision: str, *memories: Memory, **more: str) -> Any:
    ticked = [f"{memory.pk} {memory.content_hash}" for memory in memories]
    posted = {"decision": decision, "ticked": ticked, **more}
    return client.post(f"{WAITING}answer/", posted, follow=True)


def decide(client: Client, memory: Memory, decision: str, other: Memory, **more: str) -> Any:
    seen = contents_stamp([memory, other])
    posted = {"decision": decision, "other": str(other.pk), "seen": seen, **more}
    return client.post(f"{LIST}{memory.pk}/decide/", posted, follow=True)


def change_meanwhile(memory: Memory, content: str = "Other") -> None:
    memory_update(memory_id=memory.pk, content=content, actor=OTHER, embedder=embedder())


# What waits


@pytest.fixture
def waiting(world: World) -> Memory:
    world.say(CLIENT, "I think Dana may like tea")
    message = Message.objects.filter(role="user").get()
    return remember(
        "Dana likes tea",
        visibility="chat",
        chat_id=message.chat_id,
        source="extraction",
        source_message_id=message.pk,
        confidence=0.42,
        proposed=True,
    )


def test_what_is_ticked_is_decided_at_once(admin_client: Client, waiting: Memory) -> None:
    other, left, bad = (
        remember(text, proposed=True)
        for text in ("Yossi likes coffee", "Perhaps Noa likes juice", "Omar likes nothing")
    )
    shown_now = page(admin_client, WAITING)
    for memory in (waiting, other, left, bad):
        assert f'name="ticked" value="{memory.pk} {memory.content_hash}"' in shown_now
    assert "No memory was ticked." in said(answer_many(admin_client, "approve"))
    assert "2 memories are approved." in said(answer_many(admin_client, "approve", waiting, other))
    assert [now(each)[0] for each in (waiting, other, left)] == ["active", "active", "proposed"]
    assert AuditEvent.objects.filter(action="memory.approve").count() == 2
    done = answer_many(admin_client, "reject", left, bad, reason="wrong")
    assert "2 memories are rejected." in said(done)
    assert Memory.objects.count() == 2
    events = AuditEvent.objects.filter(action="memory.reject")
    assert [event.details.get("reason") for event in events] == ["wrong", "wrong"]


@pytest.mark.parametrize(
    ("language", "question", "confidence"),
    [
        ("en", "the message is a question", "low confidence"),
        ("he", "ההודעה היא שאלה", "ביטחון נמוך"),
    ],
)
def test_the_page_says_why_each_waits(
    admin_client: Client, waiting: Memory, language: str, question: str, confidence: str
) -> None:
    Memory.objects.filter(pk=waiting.pk).update(metadata={"to_review": ["question", "of later"]})
    admin_client.post("/admin/language/", {"language": language, "next": "/admin/"})
    shown_now = words(admin_client.get(WAITING))
    assert f"{question} · of later" in shown_now
    assert "I think Dana may like tea" in shown_now
    assert confidence not in shown_now
    Memory.objects.filter(pk=waiting.pk).update(metadata={"to_review": ["confidence"]})
    assert confidence in words(admin_client.get(WAITING))
    assert confidence in words(admin_client.get(of(waiting)))


def test_each_reason_of_a_doubt_has_words() -> None:
    for module in (doubts, fact_store):
        reasons = re.findall(r'yield "([a-z ]+)"', inspect.getsource(module))
        assert reasons
        for reason in reasons:
            (label,) = doubt_labels(Memory(metadata={"to_review": [reason]}))
            assert label != reason, reason


def test_the_message_is_shown_to_those_who_may_read_messages(
    admin_client: Client, client: Client, waiting: Memory
) -> None:
    user = User.objects.create_user("reader", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_memory"))
    client.force_login(user)
    shown_now = words(client.get(WAITING))
    assert "Dana likes tea" in shown_now
    assert "I think Dana may like tea" not in shown_now
    assert AuditEvent.objects.filter(action="conversation.read").count() == 0
    page(admin_client, WAITING)
    assert AuditEvent.objects.filter(action="conversation.read").exists()


def test_one_that_changed_meanwhile_is_left_alone(admin_client: Client, waiting: Memory) -> None:
    other = remember("Yossi likes coffee", proposed=True)
    seen = Memory.objects.get(pk=waiting.pk)
    change_meanwhile(waiting)
    done = said(answer_many(admin_client, "approve", seen, other))
    assert "1 memory is approved." in done
    assert "1 skipped: Somebody else changed this memory." in done
    assert [now(waiting)[0], now(other)[0]] == ["proposed", "active"]


def test_what_waits_stands_with_its_message_and_doubts_and_is_approved_by_one_click(
    admin_client: Client, waiting: Memory
) -> None:
    shown_now = page(admin_client, WAITING)
    assert "Dana likes tea" in shown_now
    assert "confidence 0.42" in shown_now
    key = waiting.source_message_id
    assert f"/conversation/?at={key}#m-{key}" in shown_now
    assert WAITING in page(admin_client, LIST), "the list leads here"
    assert "It is approved" in said(answer(admin_client, waiting, "approve"))
    assert now(waiting) == ("active", "Dana likes tea")
    assert "Nothing to review" in page(admin_client, WAITING)
    # What is done to a person's memory is in that person's trail.
    trail = AuditEvent.objects.get(action="session.create").chat
    assert trail
    done = AuditEvent.objects.filter(actor_kind="staff", object_type="memory")
    assert set(done.values_list("chat", flat=True)) == {trail}
    dependencies = build_forget_dependencies()
    object_forget(kind="memory", object_id=waiting.pk, dependencies=dependencies, actor=OTHER)
    assert AuditEvent.objects.get(action="memory.forgotten").chat == trail


def test_it_is_approved_as_staff_correct_it(admin_client: Client, waiting: Memory) -> None:
    refused = answer(admin_client, waiting, "correct", content="x" * 9_000)
    assert "at most 8192" in said(refused)
    assert "x" * 9_000 in refused.content.decode(), "what was typed is not lost"
    assert now(waiting) == ("proposed", "Dana likes tea")
    answered = answer(admin_client, waiting, "correct", content="Dana likes green tea")
    assert "as you wrote it" in said(answered)
    assert now(waiting) == ("active", "Dana likes green tea")
    assert waiting.embeddings.count() == 1
    assert waiting.revisions.get().content == "Dana likes tea"


def test_what_others_decided_or_changed_is_told(admin_client: Client, waiting: Memory) -> None:
    changed = remember("Noa likes juice", proposed=True)
    change_meanwhile(changed)
    for decision in ("approve", "correct", "reject"):
        refused = answer(admin_client, changed, decision, content="Mine")
        assert "Somebody else changed this memory" in said(refused)
    assert now(changed) == ("proposed", "Other")
    memory_approve(memory_id=waiting.pk, actor=OTHER, seen=waiting.content_hash)
    assert "doesn't wait" in html.unescape(said(answer(admin_client, waiting, "reject")))
    corrected = answer(admin_client, waiting, "correct", content="Dana likes <green> tea")
    assert "Dana likes &lt;green&gt; tea</textarea>" in corrected.content.decode()
    assert "Your text, to copy" in corrected.content.decode()
    assert now(waiting) == ("active", "Dana likes tea")


def test_a_post_without_a_decision_decides_nothing(admin_client: Client, waiting: Memory) -> None:
    proposal, one, other = proposed()
    answers, decisions = f"{LIST}{waiting.pk}/answer/", f"{LIST}{one.pk}/decide/"
    change = f"{PROPOSALS}{proposal.pk}/change/"
    forged: list[tuple[str, dict[str, Any]]] = [
        (f"{WAITING}answer/", {"decision": "correct", "ticked": []}),
        (f"{WAITING}answer/", {"decision": "approve", "ticked": ["x"]}),
        (f"{WAITING}answer/", {"decision": "reject", "reason": "mood"}),
        (f"{WAITING}answer/", {"decision": "approve", "ticked": ["0" * 32] * 21}),
        *((answers, each) for each in ({"decision": "x"}, {}, {"decision": "approve"})),
        (answers, {"decision": "reject", "reason": "x"}),
        (answers, {"decision": "approve", "seen": " "}),
        (answers, {"decision": "correct", "content": "Other"}),
        (decisions, {"decision": "x", "other": "0" * 32}),
        (decisions, {"decision": "merge"}),
        (decisions, {"other": "\x00"}),
        *((change, each) for each in ({}, {"do": "nope"}, {"decision": "x"})),
        (change, {"decision": "accept"}),
        (change, {"decision": "accept", "seen": " "}),
        (change, {"decision": "reverse", "seen": ""}),
    ]
    for address, posted in forged:
        assert admin_client.post(address, posted).status_code == 400, (address, posted)
    proposal.refresh_from_db()
    assert proposal.state == "open"
    assert [now(each)[0] for each in (waiting, one, other)] == ["proposed", "active", "active"]


# What is alike, and what contradicts


@pytest.mark.parametrize(
    ("texts", "place", "told", "decision", "states"),
    [
        (ALIKE, 0, "Duplicate", "merge", ("active", "superseded")),
        (ALIKE, 0, "Duplicate", "keep-both", ("active", "active")),
        (ALIKE, 0, "Duplicate", "merge-into-other", ("superseded", "active")),
        (PRICES, 1, "This memory replaced an older", "older-instead", ("active", "superseded")),
        (PRICES, 1, "This memory replaced an older", "older-too", ("active", "active")),
        (PRICES, 0, "A newer memory replaced this", "this-instead", ("active", "superseded")),
        (PRICES, 0, "A newer memory replaced this", "this-too", ("active", "active")),
    ],
)
def test_two_memories_are_decided_about_on_the_page_of_one(
    admin_client: Client,
    texts: tuple[str, str],
    place: int,
    told: str,
    decision: str,
    states: tuple[str, str],
) -> None:
    both = [remember(text) for text in texts]
    this, other = both[place], both[1 - place]
    shown_now = page(admin_client, of(this))
    assert told in shown_now
    assert of(other) in shown_now
    decide(admin_client, this, decision, other)
    assert tuple(now(each)[0] for each in both) == states
    if decision == "keep-both":
        assert "marked as two different facts" in page(admin_client, of(this))
    elif texts is PRICES:
        again = decide(admin_client, this, decision, other)
        assert "decided about these memories meanwhile" in said(again)
        if states == ("active", "superseded"):
            older, newer = (page(admin_client, of(each)) for each in both)
            assert "An older memory was kept instead of this one:" in newer
            assert "This memory was kept instead of a newer one:" in older
            assert "Keep the newer one instead" in older
            assert "A newer memory replaced this one" not in newer


# Proposals


def proposed() -> tuple[MergeProposal, Memory, Memory]:
    memories = remember(ALIKE[0]), remember(ALIKE[1])
    memories_propose_merges(model_id=embedder().model_id)
    return MergeProposal.objects.get(), *memories


def in_row(client: Client, proposal: MergeProposal, decision: str, **more: str) -> Any:
    seen = contents_stamp(part.memory for part in proposal.parts.all())
    posted = {"decision": decision, "list_query": "state=all", f"seen-{proposal.pk}": seen, **more}
    return client.post(f"{PROPOSALS}{proposal.pk}/decide/", posted, follow=True)


def test_a_proposal_is_decided_in_its_row_with_a_reason(admin_client: Client) -> None:
    proposal, one, other = proposed()
    assert f'formaction="{proposal.pk}/decide/"' in page(admin_client, PROPOSALS)
    done = in_row(admin_client, proposal, "dismiss", **{f"reason-{proposal.pk}": "different"})
    assert "1 proposal is dismissed." in said(done)
    assert done.redirect_chain[-1][0] == f"{PROPOSALS}?state=all"
    proposal.refresh_from_db()
    decided = (proposal.state, proposal.reason, proposal.decided_by)
    assert decided == ("dismissed", "different", "admin")
    assert AuditEvent.objects.get(action="proposal.dismiss").details["reason"] == "different"
    assert "dismissed already, by admin" in said(in_row(admin_client, proposal, "accept"))
    assert (now(one)[0], now(other)[0]) == ("active", "active")


def test_it_is_said_whose_memories_they_are_and_how_similar(
    admin_client: Client, world: World
) -> None:
    world.say(CLIENT, "Hello")
    chat = Chat.objects.get()
    Chat.objects.update(client_name="Petra Person")
    for text in ("Levi is my dentist", "my dentist is Levi"):
        remember(text, visibility="chat", chat_id=chat.pk)
    remember("Perhaps Noa likes juice", proposed=True)
    for text in ALIKE:
        remember(text)
    memories_propose_merges(model_id=embedder().model_id)
    proposals: Any = MergeProposal.objects
    assert proposals.count() == 2
    proposals.update(similarity=1.0)
    shown_now = words(admin_client.get(PROPOSALS))
    assert (shown_now.count("99% similar"), "100%" in shown_now) == (2, False)
    for address in (PROPOSALS, WAITING):
        shown_now = words(admin_client.get(address))
        assert ("Petra Person" in shown_now, "the business" in shown_now) == (True, True)
    for each, whose in zip(proposals.order_by("pk"), ("Petra Person", "the business"), strict=True):
        assert whose in words(admin_client.get(f"{PROPOSALS}{each.pk}/change/"))
    MergeProposal.objects.update(kind="replace")
    assert "similar" not in words(admin_client.get(PROPOSALS)).replace("similarity", "")


def test_a_proposal_is_corrected_on_its_page(admin_client: Client) -> None:
    proposal, *memories = proposed()
    address = f"{PROPOSALS}{proposal.pk}/change/"
    form = admin_client.get(address)
    assert "What differs" in form.content.decode()
    assert ALIKE[1] in html.unescape(form.content.decode())
    posted = {"decision": "accept", "seen": form.context["seen"], "reason": "other"}
    assert "content: is empty" in said(admin_client.post(address, {**posted, "content": " "}))
    posted["content"] = "Dana Levi: mornings"
    assert admin_client.post(address, posted).status_code == 302
    assert sorted(now(memory) for memory in memories)[0] == ("active", "Dana Levi: mornings")
    assert 'name="decision"' not in page(admin_client, address)


def test_a_proposal_about_what_changed_is_refused_with_what_was_typed(admin_client: Client) -> None:
    proposal, one, _ = proposed()
    address = f"{PROPOSALS}{proposal.pk}/change/"
    seen = admin_client.get(address).context["seen"]
    change_meanwhile(one)
    posted = {"decision": "accept", "content": "Typed text", "seen": seen}
    refused = admin_client.post(address, posted)
    assert refused.status_code == 200
    assert "Somebody changed one of these" in said(refused)
    assert "Typed text" in refused.content.decode()
    proposal.refresh_from_db()
    assert proposal.state == "open"


def test_a_decided_proposal_is_in_its_persons_trail(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "Hello")
    for content in ALIKE:
        remember(content, visibility="chat", chat_id=world.chat(CLIENT).pk)
    memories_propose_merges(model_id=embedder().model_id)
    remember(PRICES[0], pinned=True), remember(PRICES[1])
    for proposal in MergeProposal.objects.all():
        in_row(admin_client, proposal, "dismiss")
    trail = AuditEvent.objects.get(action="session.create").chat
    dismissed = AuditEvent.objects.filter(action="proposal.dismiss")
    assert sorted(dismissed.values_list("chat", flat=True)) == ["", trail]
