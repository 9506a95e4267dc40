"""Facts that change, and facts that stay beside each other: a labelled set in ten languages.

The half "tuned" was written with the rules, the half "held_out" when they were done. The rules
missed 3 of its 26 changes then, and took one of its 22 pairs that stay for a change; they were
mended afterwards. "homes" are people who moved, and who moved to something else than a place: 18 of
28 were found and 61 of 74 others taken for a home, before places were known by their names. Of
another 22 and 39, written then, 22 were found and none was taken.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memories_app.models import Memory, MemoryStatus, MergeProposal, ProposalKind
from tests.api.calling import Api
from tests.extraction.learning import Learning, fact
from tests.facts.test_renewals import is_renewed
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World

pytestmark = pytest.mark.django_db
LABELLED = json.loads((Path(__file__).parent / "changes.json").read_text())
NEWER = [(older, newer) for half in LABELLED.values() for _, older, newer in half["newer"]]
BOTH = [(older, newer) for half in LABELLED.values() for _, older, newer in half["both"]]


def active() -> list[str]:
    found = Memory.objects.filter(status=MemoryStatus.ACTIVE)
    return list(found.order_by("created_at").values_list("content", flat=True))


def over_http(api: Api, texts: tuple[str, str]) -> dict[str, str]:
    """Store both in a chat; return what recall finds there, by text."""
    for text in texts:
        stored = api.post("memories/", {"content": text, "whatsapp_chat": CLIENT})
        assert stored.status_code == 201, stored.content
    body = {"query": " ".join(texts), "whatsapp_chat": CLIENT, "min_similarity": 0, "top_k": 5}
    found = api.post("memories/recall/", {**body, "sources": ["memories"]}).json()["results"]
    return {hit["content"]: hit["said_by"] for hit in found}


def test_the_rules_tell_a_change_from_what_stays() -> None:
    assert [pair for pair in NEWER if not is_renewed(*pair)] == []
    assert [pair for pair in BOTH if is_renewed(*pair)] == []


@pytest.mark.parametrize(("older", "newer"), NEWER[1::5])
def test_only_the_newer_value_is_recalled(api: Api, older: str, newer: str) -> None:
    assert set(over_http(api, (older, newer))) == {newer}


@pytest.mark.parametrize(("older", "newer"), BOTH[1::5])
def test_what_can_both_be_true_is_both_recalled(api: Api, older: str, newer: str) -> None:
    assert set(over_http(api, (older, newer))) == {older, newer}


@pytest.mark.parametrize(("older", "newer"), NEWER[::10])
def test_a_command_says_what_it_replaces(world: World, older: str, newer: str) -> None:
    world.remember(GODFATHER, older)
    (reply,) = world.say(GODFATHER, f"/remember {newer}")
    confirmed, replaces = reply.splitlines()
    assert (confirmed.endswith(f": {newer}"), replaces.endswith(f": {older}")) == (True, True)
    assert active() == [newer]


@pytest.mark.parametrize(("older", "newer"), BOTH[::10])
def test_a_command_replaces_nothing_else(world: World, older: str, newer: str) -> None:
    world.remember(GODFATHER, older)
    (reply,) = world.say(GODFATHER, f"/remember {newer}")
    assert reply.splitlines() == [reply]
    assert active() == [older, newer]


@pytest.mark.parametrize(
    ("older", "newer", "replaced"),
    [(*pair, True) for pair in NEWER[-4:]] + [(*pair, False) for pair in BOTH[-4:]],
)
def test_what_was_learned_too(learning: Learning, older: str, newer: str, replaced: bool) -> None:
    for text in (older, newer):
        learning.say(text, fact(text))
    Memory.objects.filter(status=MemoryStatus.PROPOSED).delete()
    stored = list(Memory.objects.values_list("content", flat=True))
    if set(stored) == {older, newer}:
        assert active() == ([newer] if replaced else [older, newer])


def test_a_client_does_not_change_the_owners_facts_or_another_clients(world: World) -> None:
    world.remember(GODFATHER, "I live in Haifa")
    world.remember(CLIENT, "I live in Acre")
    world.remember(OTHER_CLIENT, "I moved to Tel Aviv")
    assert active() == ["I live in Haifa", "I live in Acre", "I moved to Tel Aviv"]
    # Staff showed them to the owner.
    Memory.objects.update(visibility="owner")
    world.remember(GODFATHER, "I moved to Eilat")
    assert active() == ["I live in Acre", "I moved to Tel Aviv", "I moved to Eilat"]


def test_in_a_group_each_person_has_facts_of_their_own(world: World) -> None:
    group = {"group_id": "120363000000000001@g.us", "mentions_us": True}
    world.say(CLIENT, "/remember I live in Haifa", **group)
    world.say(OTHER_CLIENT, "/remember I moved to Tel Aviv", **group)
    assert active() == ["I live in Haifa", "I moved to Tel Aviv"]
    world.say(CLIENT, "/remember I moved to Eilat", **group)
    assert active() == ["I moved to Tel Aviv", "I moved to Eilat"]


def test_where_it_is_uncertain_the_newest_comes_first_and_staff_are_asked(world: World) -> None:
    for text in ("I work at Google in Haifa", "I work at Wix"):
        world.remember(GODFATHER, text)
    (proposal,) = MergeProposal.objects.all()
    assert proposal.kind == ProposalKind.REPLACE
    system = world.seen_by_model(GODFATHER, "Do I work at Google in Haifa?")
    newer, older = system.index(") I work at Wix"), system.index(") I work at Google in Haifa")
    assert newer < older
    assert "perhaps replaced by the newer one above) I work at Google in Haifa" in system


def test_an_older_statement_that_is_stored_later_replaces_nothing(api: Api) -> None:
    api.post("memories/", {"content": "We close at 20:00"})
    late = {"content": "We close at 18:00", "said_at": "2020-01-01T00:00:00Z"}
    stored = api.post("memories/", late).json()
    assert (stored["superseded"], stored["said_at"]) == ([], "2020-01-01T00:00:00Z")
    assert sorted(active()) == ["We close at 18:00", "We close at 20:00"]
