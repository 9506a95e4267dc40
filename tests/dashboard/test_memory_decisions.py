"""Staff decide: what waits, what is alike, what contradicts."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memories_app.models import Memory, MergeProposal
from memories_app.review.consolidate import memories_propose_merges
from memories_app.review.decide_proposals import contents_stamp
from memories_app.review.pending import memory_approve
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.embedding.choice import embedder
from sessions_app.forgetting.dependencies import build_forget_dependencies
from sessions_app.forgetting.forget_objects import object_forget
from sessions_app.models import Message
from tests.dashboard.staff import staff_with
from tests.remembering import memory_update, remember
from tests.shown import said
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


def now(memory: Memory) -> tuple[str, str]:
    memory.refresh_from_db()
    return memory.status, memory.content


def shown(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return str(answer.content.decode())


def answer(client: Client, memory: Memory, decision: str, **more: str) -> Any:
    posted = {"decision": decision, "seen": memory.content_hash, **more}
    return client.post(f"{LIST}{memory.pk}/answer/", posted, follow=True)


def decide(client: Client, memory: Memory, decision: str, other: Memory, **more: str) -> Any:
    seen = contents_stamp([memory, other])
    posted = {"decision": decision, "other": str(other.pk), "seen": seen, **more}
    return client.post(f"{LIST}{memory.pk}/decide/", posted, follow=True)


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


def answer_many(client: Client, decision: str, *memories: Memory, **more: str) -> Any:
    ticked = [f"{memory.pk} {memory.content_hash}" for memory in memories]
    posted = {"decision": decision, "ticked": ticked, **more}
    return client.post(f"{WAITING}answer/", posted, follow=True)


def test_what_is_ticked_is_approved_at_once(admin_client: Client, waiting: Memory) -> None:
    other = remember("Yossi likes coffee", proposed=True)
    left = remember("Perhaps Noa likes juice", proposed=True)
    page = shown(admin_client, WAITING)
    for memory in (waiting, other, left):
        assert f'name="ticked" value="{memory.pk} {memory.content_hash}"' in page
    assert "2 memories are approved." in said(answer_many(admin_client, "approve", waiting, other))
    assert [now(each)[0] for each in (waiting, other, left)] == ["active", "active", "proposed"]
    assert AuditEvent.objects.filter(action="memory.approve").count() == 2


def test_what_is_ticked_is_rejected_at_once_with_its_reason(
    admin_client: Client, waiting: Memory
) -> None:
    other = remember("Yossi likes coffee", proposed=True)
    done = answer_many(admin_client, "reject", waiting, other, reason="wrong")
    assert "2 memories are rejected." in said(done)
    assert not Memory.objects.exists()
    events = AuditEvent.objects.filter(action="memory.reject")
    assert [event.details.get("reason") for event in events] == ["wrong", "wrong"]


def test_of_those_ticked_one_that_changed_meanwhile_is_left_alone(
    admin_client: Client, waiting: Memory
) -> None:
    other = remember("Yossi likes coffee", proposed=True)
    seen = Memory.objects.get(pk=waiting.pk)
    memory_update(memory_id=waiting.pk, content="Dana hates tea", actor=OTHER, embedder=embedder())
    done = said(answer_many(admin_client, "approve", seen, other))
    assert "1 memory is approved." in done
    assert "1 skipped: Somebody else changed this memory." in done
    assert [now(waiting)[0], now(other)[0]] == ["proposed", "active"]


def test_nothing_ticked_is_told(admin_client: Client, waiting: Memory) -> None:
    assert "No memory was ticked." in said(answer_many(admin_client, "approve"))
    assert now(waiting)[0] == "proposed"


@pytest.mark.parametrize(
    "posted",
    [
        {"decision": "correct", "ticked": []},
        {"decision": "approve", "ticked": ["x"]},
        {"decision": "reject", "reason": "mood"},
        {"decision": "approve", "ticked": ["0" * 32] * 21},
    ],
)
def test_forged_ticks_are_refused(
    admin_client: Client, waiting: Memory, posted: dict[str, Any]
) -> None:
    assert admin_client.post(f"{WAITING}answer/", posted).status_code == 400
    assert now(waiting)[0] == "proposed"


def test_who_may_not_decide_is_shown_no_ticks_and_refused(waiting: Memory) -> None:
    reader = staff_with("memories_app.view_memory")
    page = shown(reader, WAITING)
    assert 'name="ticked"' not in page
    assert "Keyboard shortcuts" not in page
    assert answer_many(reader, "approve", waiting).status_code == 403
    assert now(waiting)[0] == "proposed"


def test_the_page_shows_what_waits_with_its_message_and_its_doubts(
    admin_client: Client, waiting: Memory
) -> None:
    page = shown(admin_client, WAITING)
    assert "Dana likes tea" in page
    assert "confidence 0.42" in page
    place = f"/conversation/?at={waiting.source_message_id}#m-{waiting.source_message_id}"
    assert place in page
    assert WAITING in shown(admin_client, LIST), "the list leads here"


def test_it_is_approved_by_one_click(admin_client: Client, waiting: Memory) -> None:
    assert "It is approved" in said(answer(admin_client, waiting, "approve"))
    assert now(waiting) == ("active", "Dana likes tea")
    assert "Nothing to review" in shown(admin_client, WAITING)


def test_a_correction_of_what_somebody_else_decided_meanwhile_is_given_back(
    admin_client: Client, waiting: Memory
) -> None:
    seen = waiting.content_hash
    memory_approve(memory_id=waiting.pk, actor=OTHER, seen=seen)
    answered = answer(admin_client, waiting, "correct", content="Dana likes <green> tea")
    assert "Dana likes &lt;green&gt; tea</textarea>" in answered.content.decode()
    assert "Your text, to copy" in answered.content.decode()
    assert now(waiting) == ("active", "Dana likes tea")


def test_it_is_approved_as_staff_correct_it(admin_client: Client, waiting: Memory) -> None:
    answered = answer(admin_client, waiting, "correct", content="Dana likes green tea")
    assert "as you wrote it" in said(answered)
    assert now(waiting) == ("active", "Dana likes green tea")
    assert waiting.embeddings.count() == 1
    assert waiting.revisions.get().content == "Dana likes tea"


def test_a_correction_that_can_not_be_stored_is_not_lost(
    admin_client: Client, waiting: Memory
) -> None:
    answered = answer(admin_client, waiting, "correct", content="x" * 9_000)
    assert answered.status_code == 200
    assert "x" * 9_000 in answered.content.decode()
    assert "at most 8192" in said(answered)
    assert now(waiting) == ("proposed", "Dana likes tea")


def test_it_is_rejected_with_a_reason_that_is_audited(
    admin_client: Client, waiting: Memory
) -> None:
    answer(admin_client, waiting, "reject", reason="unsaid")
    assert not Memory.objects.exists()
    event = AuditEvent.objects.get(action="memory.reject")
    assert (event.actor, event.details["reason"]) == ("admin", "unsaid")


def test_of_two_who_decide_one_wins_and_the_other_is_told(
    admin_client: Client, waiting: Memory
) -> None:
    memory_approve(memory_id=waiting.pk, actor=OTHER)
    assert "doesn&#x27;t wait" in said(answer(admin_client, waiting, "reject")).replace(
        "'", "&#x27;"
    )
    assert now(waiting)[0] == "active"
    gone = remember("Maybe", proposed=True)
    answer(admin_client, gone, "reject")
    assert "There is no memory" in said(answer(admin_client, gone, "approve"))


def test_what_somebody_changed_since_it_was_read_is_not_approved(
    admin_client: Client, waiting: Memory
) -> None:
    memory_update(memory_id=waiting.pk, content="Other", actor=OTHER, embedder=embedder())
    for decision in ("approve", "correct", "reject"):
        refused = answer(admin_client, waiting, decision, content="Mine")
        assert "Somebody else changed this memory" in said(refused)
    assert now(waiting) == ("proposed", "Other")


@pytest.mark.parametrize(
    "posted",
    [
        {"decision": "x"},
        {},
        {"decision": "reject", "reason": "x"},
        {"decision": "approve"},
        {"decision": "approve", "seen": " "},
        {"decision": "correct", "content": "Other"},
    ],
)
def test_forged_answers_are_refused(
    admin_client: Client, waiting: Memory, posted: dict[str, str]
) -> None:
    assert admin_client.post(f"{LIST}{waiting.pk}/answer/", posted).status_code == 400
    assert now(waiting)[0] == "proposed"


def test_the_page_of_what_waits_asks_as_many_questions_for_twenty_as_for_three(
    admin_client: Client, waiting: Memory
) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as captured:
            shown(admin_client, WAITING)
        return len(captured)

    shown(admin_client, WAITING)
    few = asked()
    for number in range(25):
        remember(
            f"Perhaps {number}",
            proposed=True,
            visibility="chat",
            chat_id=waiting.chat_id,
            source="extraction",
            source_message_id=waiting.source_message_id,
        )
    assert asked() == few
    assert "Perhaps 3<" in shown(admin_client, f"{WAITING}?p=2")


# What is alike


def test_what_is_alike_stands_on_the_page_and_is_merged(admin_client: Client) -> None:
    one, other = remember(ALIKE[0]), remember(ALIKE[1])
    page = shown(admin_client, f"{LIST}{one.pk}/change/")
    assert "Duplicate" in page
    assert f"{LIST}{other.pk}/change/" in page
    assert "They are one memory now" in said(decide(admin_client, one, "merge", other))
    assert (now(one)[0], now(other)[0]) == ("active", "superseded")


def test_the_other_one_may_stay_and_both_may(admin_client: Client) -> None:
    one, other = remember(ALIKE[0]), remember(ALIKE[1])
    assert "Both stay" in said(decide(admin_client, one, "keep-both", other))
    assert "marked as two different facts" in shown(admin_client, f"{LIST}{one.pk}/change/")
    decide(admin_client, one, "merge-into-other", other)
    assert (now(one)[0], now(other)[0]) == ("superseded", "active")


def test_a_merge_of_what_changed_since_it_was_read_is_refused(admin_client: Client) -> None:
    one, other = remember(ALIKE[0]), remember(ALIKE[1])
    (near,) = admin_client.get(f"{LIST}{one.pk}/change/").context["near"]
    memory_update(memory_id=other.pk, content="Other", actor=OTHER, embedder=embedder())
    refused = decide(admin_client, one, "merge", other, seen=near["seen"])
    assert "Somebody changed one of these" in said(refused)
    assert (now(one)[0], now(other)[0]) == ("active", "active")


# What contradicts


@pytest.mark.parametrize(
    ("decision", "states"),
    [("older-instead", ("active", "superseded")), ("older-too", ("active", "active"))],
)
def test_the_older_one_comes_back_from_the_newers_page(
    admin_client: Client, decision: str, states: tuple[str, str]
) -> None:
    older, newer = remember("The price is 35"), remember("The price is 40")
    assert "This memory replaced an older one" in shown(admin_client, f"{LIST}{newer.pk}/change/")
    decide(admin_client, newer, decision, older)
    assert (now(older)[0], now(newer)[0]) == states
    assert "decided about these memories meanwhile" in said(
        decide(admin_client, newer, decision, older)
    )


@pytest.mark.parametrize(
    ("decision", "states"),
    [("this-instead", ("active", "superseded")), ("this-too", ("active", "active"))],
)
def test_the_older_one_comes_back_from_its_own_page(
    admin_client: Client, decision: str, states: tuple[str, str]
) -> None:
    older, newer = remember("The price is 35"), remember("The price is 40")
    assert "A newer memory replaced this one" in shown(admin_client, f"{LIST}{older.pk}/change/")
    decide(admin_client, older, decision, newer)
    assert (now(older)[0], now(newer)[0]) == states


@pytest.mark.parametrize(
    "posted", [{"decision": "x", "other": "0" * 32}, {"decision": "merge"}, {"other": "\x00"}]
)
def test_forged_decisions_are_refused(admin_client: Client, posted: dict[str, str]) -> None:
    memory = remember("The price is 35")
    assert admin_client.post(f"{LIST}{memory.pk}/decide/", posted).status_code == 400


# Proposals


def proposed() -> tuple[MergeProposal, Memory, Memory]:
    memories = remember(ALIKE[0]), remember(ALIKE[1])
    memories_propose_merges(model_id=embedder().model_id)
    return MergeProposal.objects.get(), *memories


def contradicted() -> tuple[MergeProposal, Memory, Memory]:
    older, newer = remember("The price is 35", pinned=True), remember("The price is 40")
    return MergeProposal.objects.get(), older, newer


def in_row(client: Client, proposal: MergeProposal, decision: str, **more: str) -> Any:
    seen = contents_stamp(part.memory for part in proposal.parts.all())
    posted = {
        "decision": decision,
        "list_query": "state=all",
        f"seen-{proposal.pk}": seen,
        **more,
    }
    return client.post(f"{PROPOSALS}{proposal.pk}/decide/", posted, follow=True)


def test_a_proposal_is_decided_in_its_row_with_a_reason(admin_client: Client) -> None:
    proposal, one, other = proposed()
    page = shown(admin_client, PROPOSALS)
    assert f'formaction="{proposal.pk}/decide/"' in page
    done = in_row(admin_client, proposal, "dismiss", **{f"reason-{proposal.pk}": "different"})
    assert "1 proposal is dismissed." in said(done)
    assert done.redirect_chain[-1][0] == f"{PROPOSALS}?state=all"
    proposal.refresh_from_db()
    assert (proposal.state, proposal.reason, proposal.decided_by) == (
        "dismissed",
        "different",
        "admin",
    )
    assert AuditEvent.objects.get(action="proposal.dismiss").details["reason"] == "different"
    assert "dismissed already, by admin" in said(in_row(admin_client, proposal, "accept"))
    assert (now(one)[0], now(other)[0]) == ("active", "active")


@pytest.mark.parametrize(
    ("decision", "states"),
    [
        ("accept", ("superseded", "active")),
        ("reverse", ("active", "superseded")),
        ("dismiss", ("active", "active")),
    ],
)
def test_what_contradicts_a_pinned_memory_is_decided(
    admin_client: Client, decision: str, states: tuple[str, str]
) -> None:
    proposal, older, newer = contradicted()
    assert "Keep the older" in shown(admin_client, PROPOSALS)
    in_row(admin_client, proposal, decision)
    assert (now(older)[0], now(newer)[0]) == states


def test_a_proposal_is_corrected_on_its_page(admin_client: Client) -> None:
    proposal, *memories = proposed()
    address = f"{PROPOSALS}{proposal.pk}/change/"
    page = admin_client.get(address)
    assert "What differs" in page.content.decode()
    posted = {
        "decision": "accept",
        "content": "Dana Levi: mornings",
        "seen": page.context["seen"],
        "reason": "other",
    }
    assert admin_client.post(address, posted).status_code == 302
    assert sorted(now(memory) for memory in memories)[0] == ("active", "Dana Levi: mornings")
    assert 'name="decision"' not in shown(admin_client, address)


def test_a_proposal_about_what_changed_is_refused_with_what_was_typed(
    admin_client: Client,
) -> None:
    proposal, one, _ = proposed()
    address = f"{PROPOSALS}{proposal.pk}/change/"
    seen = admin_client.get(address).context["seen"]
    memory_update(memory_id=one.pk, content="Other", actor=OTHER, embedder=embedder())
    refused = admin_client.post(
        address, {"decision": "accept", "content": "Typed text", "seen": seen}
    )
    assert refused.status_code == 200
    assert "Somebody changed one of these" in said(refused)
    assert "Typed text" in refused.content.decode()
    proposal.refresh_from_db()
    assert proposal.state == "open"


@pytest.mark.parametrize(
    "posted",
    [
        {},
        {"do": "nope"},
        {"decision": "x"},
        {"decision": "accept"},
        {"decision": "accept", "seen": " "},
        {"decision": "reverse", "seen": ""},
    ],
)
def test_a_post_that_names_no_decision_merges_nothing(
    admin_client: Client, posted: dict[str, str]
) -> None:
    proposal, *memories = proposed()
    address = f"{PROPOSALS}{proposal.pk}/change/"
    assert admin_client.post(address, posted).status_code == 400
    proposal.refresh_from_db()
    assert proposal.state == "open"
    assert {now(memory)[0] for memory in memories} == {"active"}


def test_what_staff_do_to_a_persons_memory_is_in_that_persons_trail(
    admin_client: Client, waiting: Memory
) -> None:
    answer(admin_client, waiting, "approve")
    trail = AuditEvent.objects.get(action="session.create").chat
    assert trail
    done = AuditEvent.objects.filter(actor_kind="staff", object_type="memory")
    assert set(done.values_list("chat", flat=True)) == {trail}
    dependencies = build_forget_dependencies()
    object_forget(kind="memory", object_id=waiting.pk, dependencies=dependencies, actor=OTHER)
    assert AuditEvent.objects.get(action="memory.forgotten").chat == trail


def test_a_decided_proposal_is_in_the_trail_of_its_person(
    admin_client: Client, world: World
) -> None:
    world.say(CLIENT, "Hello")
    chat = world.chat(CLIENT)
    for content in ALIKE:
        remember(content, visibility="chat", chat_id=chat.pk)
    memories_propose_merges(model_id=embedder().model_id)
    in_row(admin_client, MergeProposal.objects.get(), "dismiss")
    trail = AuditEvent.objects.get(action="session.create").chat
    assert trail
    assert AuditEvent.objects.get(action="proposal.dismiss").chat == trail

    remember("The price is 35", pinned=True)
    remember("The price is 40")
    in_row(admin_client, MergeProposal.objects.get(state="open"), "dismiss")
    of_all = list(
        AuditEvent.objects.filter(action="proposal.dismiss").values_list("chat", flat=True)
    )
    assert sorted(of_all) == sorted(["", trail])


def test_the_list_of_proposals_asks_as_many_questions_for_many(admin_client: Client) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as captured:
            shown(admin_client, PROPOSALS)
        return len(captured)

    contradicted()
    shown(admin_client, PROPOSALS)
    few = asked()
    for number in range(12):
        remember(f"Shop {number} opens at 9", pinned=True)
        remember(f"Shop {number} opens at 10")
    assert MergeProposal.objects.count() > 10
    assert asked() == few


@pytest.mark.parametrize("address", ["99999/change/", "x/change/", "add/"])
def test_what_is_no_proposal_is_not_found(admin_client: Client, address: str) -> None:
    assert admin_client.get(PROPOSALS + address).status_code in (403, 404)


def test_who_may_look_but_not_decide(client: Client, waiting: Memory) -> None:
    proposal, one, other = contradicted()
    user = get_user_model().objects.create_user("viewer", is_staff=True)
    user.user_permissions.set(
        Permission.objects.filter(codename__in=["view_memory", "view_mergeproposal"])
    )
    client.force_login(user)
    for address in (WAITING, PROPOSALS, f"{PROPOSALS}{proposal.pk}/change/"):
        assert 'name="decision"' not in shown(client, address)
    refused = [
        answer(client, waiting, "approve"),
        decide(client, one, "merge", other),
        in_row(client, proposal, "accept"),
        client.post(f"{PROPOSALS}{proposal.pk}/change/", {"decision": "accept"}),
    ]
    assert [response.status_code for response in refused] == [403] * 4
    proposal.refresh_from_db()
    assert (proposal.state, now(waiting)[0]) == ("open", "proposed")


def test_a_reviewer_decides_and_changes_nothing_else(client: Client, waiting: Memory) -> None:
    user = get_user_model().objects.create_user("reviewer", is_staff=True)
    codenames = ["view_memory", "view_mergeproposal", "decide_mergeproposal"]
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client.force_login(user)
    answer(client, waiting, "approve")
    assert now(waiting)[0] == "active"
    assert client.post(f"{LIST}rows/", {"pin": str(waiting.pk)}).status_code == 403
