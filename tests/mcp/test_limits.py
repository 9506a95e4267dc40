"""Answers have at most max_tokens, say what they lack, and lead to the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memoryproject.foundation.text.characters import estimate_tokens
from tests.api.calling import api_with, make_token
from tests.mcp.rpc import Rpc, texts
from tests.world import CLIENT

pytestmark = pytest.mark.django_db

DEFAULT = 4_000
FACTS = 20
LONG = {
    "english": "TestCorp pays its invoice {number} in 30 days. " + "It said so again. " * 60,
    "hebrew": "חברת טסט משלמת את החשבון {number} בתוך שלושים יום. " + "כך נאמר שוב. " * 60,
}


@pytest.fixture
def filled(request: pytest.FixtureRequest) -> tuple[Rpc, str]:
    """A chat with many long memories and messages, and one memory with a long past."""
    text = LONG[getattr(request, "param", "english")]
    rpc, api = Rpc(make_token()), api_with()
    facts = [text.format(number=number) for number in range(FACTS)]
    new = [{"content": each, "whatsapp_chat": CLIENT, "supersede": False} for each in facts]
    assert api.post("memories/batch/", {"memories": new}).status_code == 201
    memory_id = rpc.told("list_memories", {"limit": 1})["results"][0]["memory_id"]
    for number in range(12):
        api.call("PATCH", f"memories/{memory_id}/", {"content": f"{number} {facts[0]}"})
    said = [{"role": role, "content": text} for text in facts for role in ("user", "assistant")]
    rpc.told("store_messages", {"whatsapp_chat": CLIENT, "messages": said})
    content = {"decision": facts[0], "constraints": facts}
    rpc.told("save_document", {"category": "decisions", "identifier": "big", "content": content})
    return rpc, memory_id


CALLS: dict[str, dict[str, Any]] = {
    "recall": {"query": "TestCorp חברת טסט", "top_k": 100, "min_similarity": 0},
    "list_memories": {"limit": 1000},
    "get_memory": {},
    "update_memory": {"tags": ["a"]},
    "get_context": {"whatsapp_chat": CLIENT, "query": "TestCorp חברת טסט"},
    "store_messages": {
        "whatsapp_chat": CLIENT,
        "messages": [{"role": "user", "content": LONG["english"]}] * 30,
    },
    "save_document": {
        "category": "decisions",
        "identifier": "big",
        "content": {"notes": [LONG["english"]] * 40},
    },
    "load_document": {"category": "decisions", "identifier": "big"},
}


@pytest.mark.parametrize("filled", LONG, indirect=True)
def test_no_answer_is_longer_than_its_limit(filled: tuple[Rpc, str]) -> None:
    rpc, memory_id = filled
    for name, given in CALLS.items():
        own = {"memory_id": memory_id} if name.endswith("_memory") else {}
        for limit in (None, 3_000, 1_500):
            most = {} if limit is None else {"max_tokens": limit}
            result = rpc.call(name, {**given, **own, **most})
            assert not result["isError"], (name, result)
            document, (text, *_) = result["structuredContent"], texts(result)
            assert estimate_tokens(text) <= (limit or DEFAULT), name
            # The text and the structured content are the same, so neither is longer.
            assert text == compact(document)
            if "next" in document:
                assert document["next"] is not None
            elif name != "get_context":
                assert "max_tokens" in document["cut"], name


def compact(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def test_what_is_left_out_is_whole_entries_and_is_told(filled: tuple[Rpc, str]) -> None:
    rpc, memory_id = filled
    short = rpc.told("recall", {**CALLS["recall"], "max_tokens": 2_000})
    more = rpc.told("recall", {**CALLS["recall"], "max_tokens": 100_000})
    number = len(short["results"])
    assert 0 < number < len(more["results"]) == FACTS
    assert short["results"] == more["results"][:number]
    assert short["cut"] == (
        f"results has {number} of {FACTS} entries. "
        "For the rest, ask again with more max_tokens than 2000."
    )
    assert "cut" not in more
    one = rpc.told("get_memory", {"memory_id": memory_id, "max_tokens": 2_000})
    assert 0 < len(one["revisions"]) < 12
    assert one["content"].startswith("11 ")


def test_a_page_that_is_too_long_is_shorter_and_no_row_is_missed(filled: tuple[Rpc, str]) -> None:
    rpc, _ = filled
    seen: list[str] = []
    given: dict[str, Any] = {"limit": 1000, "max_tokens": 3_000}
    while True:
        page = rpc.told("list_memories", given)
        seen += [each["memory_id"] for each in page["results"]]
        if page["next"] is None:
            break
        given["cursor"] = page["next"]
    assert len(seen) == len(set(seen)) == FACTS


@pytest.mark.parametrize("limit", [1, 60, 100, 150])
def test_next_leads_on_however_few_tokens_there_are(filled: tuple[Rpc, str], limit: int) -> None:
    rpc, _ = filled
    first = rpc.told("list_memories", {"max_tokens": limit})
    second = rpc.told("list_memories", {"max_tokens": limit, "cursor": first["next"]})
    assert second["results"] != first["results"]
    assert rpc.told("list_memories", {"limit": 1, "cursor": first["next"]})["results"]


def test_an_entry_that_alone_is_too_long_is_shortened(filled: tuple[Rpc, str]) -> None:
    rpc, _ = filled
    page = rpc.told("list_memories", {"max_tokens": 400})
    (one,) = page["results"]
    assert one["content"].endswith("…")
    assert len(one["memory_id"]) == 36
    assert page["next"]
    assert "long texts end with …" in page["cut"]


def test_a_small_context_is_refused_with_what_it_needs(filled: tuple[Rpc, str]) -> None:
    rpc, _ = filled
    assert "tokens" in rpc.refusal("get_context", {"whatsapp_chat": CLIENT, "max_tokens": 10})


def test_a_context_passes_on_how_the_model_is_to_be_asked(filled: tuple[Rpc, str]) -> None:
    rpc, _ = filled
    own = {"persona": False, "system": "You are BakeryBot.", "roles": "strict"}
    found = rpc.told("get_context", {"whatsapp_chat": CLIENT, "query": "hello", **own})
    assert found["messages"][0]["content"].startswith("You are BakeryBot.")


@pytest.mark.parametrize("limit", [0, -1, "many", 1.5, None, True, 10**9])
def test_a_limit_that_is_none_is_refused(limit: Any) -> None:
    refused = Rpc(make_token()).refusal("list_memories", {"max_tokens": limit})
    assert refused.startswith("max_tokens: ")


@pytest.mark.parametrize("limit", [1, 50])
def test_a_limit_that_nothing_fits_still_gets_an_answer(limit: int) -> None:
    rpc = Rpc(make_token())
    stored = rpc.told("remember", {"content": LONG["english"], "max_tokens": limit})
    assert stored["cut"]
    assert len(stored["memory_id"]) == 36
