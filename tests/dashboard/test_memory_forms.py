"""The form of a memory, and memories out of the admin and into it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from memories_app.models import Memory, MergeProposal
from memories_app.review.consolidate import memories_propose_merges
from memories_app.store.change import memory_set_visibility
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.embedding.choice import embedder
from sessions_app.memories import presentation as transfer_pages
from sessions_app.models import Chat
from tests.dashboard.staff import page
from tests.forms import opened, save
from tests.remembering import memory_update, remember
from tests.shown import said

pytestmark = pytest.mark.django_db

LIST = "/admin/memories_app/memory/"
PROPOSALS = "/admin/memories_app/mergeproposal/"
IMPORT = f"{LIST}import/"
TEA = "Dana likes tea"


def form_of(memory: Memory) -> str:
    return f"{LIST}{memory.pk}/change/"


def filled(memory: Memory | None = None, **changes: str) -> dict[str, str]:
    """The form as a browser posts it."""
    values = {"content": "", "visibility": "owner", "type": "fact", "category": "", "tags": ""}
    if memory is not None:
        values.update(content=memory.content, visibility=memory.visibility, type=memory.type)
    return {**values, "expires_at_0": "", "expires_at_1": "", **changes}


def errors(response: Any) -> dict[str, str]:
    """What a refused form says."""
    assert response.status_code == 200, "refused"
    found = response.context["adminform"].form.errors
    return {name: " ".join(map(str, some)) for name, some in found.items()}


def act(client: Client, action: str, *items: Any, at: str = f"{LIST}?state=all") -> str:
    chosen = {"action": action, "_selected_action": [str(item.pk) for item in items]}
    return said(client.post(at, chosen, follow=True))


def test_a_change_makes_a_revision_and_is_audited(admin_client: Client) -> None:
    memory = remember("המחיר הוא 35 שקלים")
    changed = "המחיר הוא 40 שקלים"
    saved = save(admin_client, form_of(memory), filled(memory, content=changed, tags="a, b"))
    assert saved.status_code == 302
    memory.refresh_from_db()
    assert (memory.content, memory.tags) == (changed, ["a", "b"])
    assert memory.revisions.get().changed_by_name == "admin"
    shown = page(admin_client, form_of(memory))
    assert '<del><span class="sr-only">removed: </span>35 </del>' in shown
    assert '<ins><span class="sr-only">added: </span>40 </ins>' in shown
    form = filled(memory, visibility="public", pinned="on", expires_at_0="2030-01-02", tags="a, b")
    save(admin_client, form_of(memory), {**form, "expires_at_1": "03:04:05"})
    memory.refresh_from_db()
    assert (memory.visibility, memory.pinned) == ("public", True)
    assert memory.expires_at is not None
    done = AuditEvent.objects.filter(actor="admin", action__startswith="memory.").order_by("id")
    did = ("update", "visibility", "pin", "expiry")
    assert [event.action for event in done] == [f"memory.{each}" for each in did]


def test_what_a_service_refuses_stands_in_the_form(admin_client: Client) -> None:
    known, memory = remember(TEA), remember("Dana likes coffee")
    for changes, told in (
        ({"content": "dana likes tea!"}, str(known.pk)),
        ({"content": "a" * 9_000}, "at most 8192"),
        ({"visibility": "chat"}, "came from no chat"),
    ):
        refused = save(admin_client, form_of(memory), filled(memory, **changes))
        assert told in " ".join(errors(refused).values())
        assert told in refused.content.decode()
        assert changes.get("content", "") in refused.content.decode(), "nothing typed is lost"
    memory.refresh_from_db()
    assert (memory.content, memory.visibility) == ("Dana likes coffee", "owner")


def test_staff_add_a_memory_of_a_chat(admin_client: Client) -> None:
    chat = Chat.objects.create(whatsapp_chat="15550100123@c.us", provider="cloud")
    form = filled(content=TEA, visibility="chat", tags="people")
    refused = errors(admin_client.post(f"{LIST}add/", form))
    assert "Say which client" in " ".join(refused.values())
    form["whatsapp_chat"] = chat.whatsapp_chat
    assert admin_client.post(f"{LIST}add/", form).status_code == 302
    memory = Memory.objects.get()
    assert (memory.chat_id, memory.source, memory.tags) == (chat.pk, "staff", ["people"])
    assert "+1 555-010-0123" in page(admin_client, form_of(memory))
    again = admin_client.post(f"{LIST}add/", form, follow=True)
    assert "was known already" in said(again)
    assert Memory.objects.count() == 1


def test_the_chain_of_what_superseded_what_is_linked(admin_client: Client) -> None:
    old, new = remember("The price is 35"), remember("The price is 40")
    shown = page(admin_client, form_of(old))
    assert form_of(new) in shown
    assert form_of(old) in page(admin_client, form_of(new))
    assert 'name="_save"' not in shown, "history is only read"
    assert admin_client.post(form_of(old), filled(old, content="other")).status_code == 403


def test_actions_do_what_they_say_and_tell_what_they_left_alone(admin_client: Client) -> None:
    one, other = remember(TEA), remember("Yossi likes coffee")
    waiting, gone = remember("Perhaps", proposed=True), remember("Maybe", proposed=True)
    for action, items, told in (
        ("pin", [one, other], "2 memories are pinned"),
        ("unpin", [other], "1 memory isn't pinned any more"),
        ("make_public", [one, other], "The visibility of 2 memories was changed"),
        ("make_chat", [one], "came from no chat"),
        ("approve", [waiting], "1 memory is approved"),
        ("approve", [one], "1 skipped"),
        ("reject", [gone], "1 memory is rejected"),
    ):
        assert told in act(admin_client, action, *items), action
    assert not Memory.objects.filter(pk=gone.pk).exists()
    assert Memory.objects.get(pk=waiting.pk).status == "active"
    one.refresh_from_db()
    assert (one.pinned, one.visibility) == (True, "public")


@pytest.mark.parametrize(("action", "left"), [("accept", 1), ("dismiss", 2)])
def test_proposals_are_decided_from_the_list(admin_client: Client, action: str, left: int) -> None:
    remember("The customer Dana Levi prefers morning meetings in the Haifa office")
    remember("Customer Dana Levi prefers meetings in the morning, Haifa office")
    memories_propose_merges(model_id=embedder().model_id)
    proposal = MergeProposal.objects.get()
    assert "in the morning, Haifa office" in page(admin_client, PROPOSALS)
    assert "1 " in act(admin_client, action, proposal, at=PROPOSALS)
    assert Memory.objects.filter(status="active").count() == left
    assert "already" in act(admin_client, action, proposal, at=f"{PROPOSALS}?state=all")


def test_what_only_somebody_else_changed_meanwhile_stays(admin_client: Client) -> None:
    memory = remember("The price is 35", tags=("a",))
    form = opened(admin_client, form_of(memory))
    other = Actor("staff", "dana")
    memory_update(memory_id=memory.pk, content="The price is 40", actor=other, embedder=embedder())
    memory_set_visibility(memory_id=memory.pk, visibility="public", actor=other)
    assert admin_client.post(form_of(memory), {**form, "category": "prices"}).status_code == 302
    memory.refresh_from_db()
    assert (memory.content, memory.category) == ("The price is 40", "prices")
    assert (memory.visibility, memory.tags) == ("public", ["a"])


# Export and import


def exported(client: Client, query: str = "") -> list[dict[str, Any]]:
    answer = client.post(f"{LIST}export/{query}")
    assert answer["Content-Type"].startswith("application/x-ndjson")
    assert "memories.ndjson" in answer["Content-Disposition"]
    return [json.loads(line) for line in answer.getvalue().splitlines()]


def upload(client: Client, content: bytes, **more: str) -> Any:
    return client.post(IMPORT, {"file": SimpleUploadedFile("m.ndjson", content), **more})


def figures(answer: Any) -> tuple[int, int, int]:
    report = answer.context["report"]
    return report.created, report.duplicates, len(report.errors)


def test_what_the_filters_find_is_exported_and_comes_in_again_once(admin_client: Client) -> None:
    remember(TEA, tags=("a",), visibility="public")
    remember("Yossi likes coffee")
    assert {line["content"] for line in exported(admin_client)} == {TEA, "Yossi likes coffee"}
    lines = exported(admin_client, "?visibility__exact=public")
    assert [line["content"] for line in lines] == [TEA]
    events = AuditEvent.objects.filter(action="export", actor="admin").order_by("id")
    assert [event.details["memories"] for event in events] == [2, 1]
    file = b"\n".join(json.dumps(line).encode() for line in lines)
    assert figures(upload(admin_client, file, vectors="on")) == (0, 1, 0)
    for vectors in ({"vectors": "on"}, {}):
        Memory.objects.all().delete()
        assert figures(upload(admin_client, file, **vectors)) == (1, 0, 0)
        memory = Memory.objects.get()
        assert (memory.tags, memory.visibility) == (["a"], "public")
        assert memory.embeddings.count() == len(vectors)
    assert AuditEvent.objects.filter(action="memory.import", actor="admin").exists()


def test_what_cannot_be_used_is_told(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = upload(
        admin_client,
        b'{"content": "Dana likes tea"}\n\nnot json\n{"content": ""}\n\xff\xfe\n'
        b'{"content": "<script>alert(1)</script>", "visibility": "<b>all</b>"}\n',
    )
    assert figures(answer) == (1, 0, 4)
    assert [error["line"] for error in answer.context["errors"]] == [3, 4, 5, 6]
    assert "<b>all" not in answer.content.decode()
    assert Memory.objects.get().visibility == "owner"
    assert admin_client.post(IMPORT, {}).status_code == 400
    monkeypatch.setattr(transfer_pages, "MAX_BYTES", 10)
    for content, told in ((b"", "This file is empty."), (b"x" * 11, "The file is larger than 10")):
        refused = upload(admin_client, content)
        assert refused.status_code == 400
        assert told in refused.content.decode()
