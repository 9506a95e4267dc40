"""Two people at one memory: nobody overwrites unseen what the other saved."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memories_app.facts.validation import NewMemory
from memories_app.models import Memory
from memories_app.store.change import memory_pin, memory_set_visibility
from memories_app.store.remember import memory_remember
from memoryproject.foundation.audit.audit_events import Actor
from sessions_app.embedding.choice import embedder
from tests.forms import opened, stamped_form
from tests.remembering import memory_update

pytestmark = pytest.mark.django_db
OTHER = Actor("staff", "dana")


@pytest.fixture
def memory() -> Memory:
    remembered = memory_remember(
        NewMemory(
            content="The price is 35",
            visibility="owner",
            tags=("a",),
            expires_at=timezone.now().replace(year=2099),
        ),
        embedder=embedder(),
    )
    return remembered.memory


def page(memory: Memory) -> str:
    return f"/admin/memories_app/memory/{memory.pk}/change/"


def errors(response: Any) -> dict[str, list[str]]:
    assert response.status_code == 200, "refused"
    return {name: list(told) for name, told in response.context["adminform"].form.errors.items()}


def change(memory: Memory, **changes: Any) -> None:
    memory_update(memory_id=memory.pk, actor=OTHER, embedder=embedder(), **changes)


def test_saving_what_was_opened_changes_nothing(admin_client: Client, memory: Memory) -> None:
    assert admin_client.post(page(memory), opened(admin_client, page(memory))).status_code == 302
    before = memory.expires_at
    memory.refresh_from_db()
    assert (memory.revisions.count(), memory.expires_at) == (0, before)


def test_what_both_changed_is_refused_and_both_values_are_shown(
    admin_client: Client, memory: Memory
) -> None:
    form = opened(admin_client, page(memory))
    change(memory, content="The price is 40")
    refused = admin_client.post(page(memory), {**form, "content": "The price is 45"})
    assert list(errors(refused)) == ["__all__", "content"]
    shown = refused.content.decode()
    assert "Somebody else changed this meanwhile" in shown
    assert "The price is 40" in shown
    assert "The price is 45" in shown
    memory.refresh_from_db()
    assert memory.content == "The price is 40"


def test_saving_again_after_that_is_a_decision(admin_client: Client, memory: Memory) -> None:
    form = {**opened(admin_client, page(memory)), "content": "The price is 45"}
    change(memory, content="The price is 40", tags=["a", "b"])
    again = stamped_form(admin_client.post(page(memory), form).content.decode())
    assert again["tags"] == ["a,b"], "what this form didn't touch is as it is now"
    assert admin_client.post(page(memory), again).status_code == 302
    memory.refresh_from_db()
    assert (memory.content, memory.tags) == ("The price is 45", ["a", "b"])


def test_what_only_the_other_changed_stays(admin_client: Client, memory: Memory) -> None:
    form = opened(admin_client, page(memory))
    change(memory, content="The price is 40")
    memory_pin(memory_id=memory.pk, actor=OTHER)
    assert admin_client.post(page(memory), {**form, "category": "prices"}).status_code == 302
    memory.refresh_from_db()
    assert (memory.content, memory.category, memory.pinned) == ("The price is 40", "prices", True)


def test_two_who_change_the_same_to_the_same_are_of_one_mind(
    admin_client: Client, memory: Memory
) -> None:
    form = opened(admin_client, page(memory))
    change(memory, content="The price is 40")
    saved = admin_client.post(page(memory), {**form, "content": "The price is 40"})
    assert saved.status_code == 302
    assert memory.revisions.count() == 1


def test_who_sees_it_is_guarded_as_the_text_is(admin_client: Client, memory: Memory) -> None:
    form = opened(admin_client, page(memory))
    memory_set_visibility(memory_id=memory.pk, visibility="public", actor=OTHER)
    saved = admin_client.post(page(memory), {**form, "content": "The price is 45"})
    assert saved.status_code == 302
    memory.refresh_from_db()
    assert memory.visibility == "public", "not made private again by the old form"


def test_nothing_is_changed_where_one_field_is_refused(
    admin_client: Client, memory: Memory
) -> None:
    form = opened(admin_client, page(memory))
    change(memory, category="old")
    posted = {**form, "category": "new", "content": "The price is 45", "pinned": "on"}
    assert list(errors(admin_client.post(page(memory), posted))) == ["__all__", "category"]
    memory.refresh_from_db()
    assert (memory.content, memory.category, memory.pinned) == ("The price is 35", "old", False)


@pytest.mark.parametrize(
    "stamp", ["", "{", "[]", "1", "null", json.dumps({"content": "x"}), "[" * 9_999]
)
def test_without_a_stamp_and_with_a_damaged_one_it_is_asked_first(
    admin_client: Client, memory: Memory, stamp: str
) -> None:
    posted = {**opened(admin_client, page(memory)), "content": "The price is 45", "seen": stamp}
    refused = admin_client.post(page(memory), posted)
    assert list(errors(refused)) == ["__all__", "content"]
    memory.refresh_from_db()
    assert memory.content == "The price is 35"
    again = stamped_form(refused.content.decode())
    assert again["content"] == ["The price is 45"]
    assert admin_client.post(page(memory), again).status_code == 302
    memory.refresh_from_db()
    assert memory.content == "The price is 45"
