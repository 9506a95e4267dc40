"""Statements that say they are new, in any words: labelled pairs in ten languages.

The half "tuned" was written with the rules. "held_out" was written when they were done: they found
20 of its 25 renewals then (22 after a title and a helping verb were added), and took none of its 26
other pairs for one. "owners" are what somebody else found to be lost then: whose it is, was no part
of the comparison. "unsure" are renewals that the rules miss: both texts stay. "without_model" are
as people write on WhatsApp: at first sight 25 of 66 renewals were found, and when the rules were
mended by one half, 27 of its 33 and 18 of the others'. By these they were mended, too; then 24 of
another 31 were found. Of the 126 that are none, two and then one were taken for one at first sight,
and none is now. "places" were written before the rules were read again, to move and to correct:
at first sight 11 of 40 renewals were found, and 11 of 60 others taken for one. Now it is 37, and
none; of another 12 and 25, written then, 11 were found, and 6 taken; of a third 12 and 24, 11
and 3.
"""

import json
from itertools import product
from pathlib import Path

import pytest

from memories_app.facts.facts import Verdict, likeness_of, verdict_on
from memories_app.facts.renewals import may_renew, renews, says_new
from memories_app.models import Memory, MemoryStatus, MergeProposal
from tests.tables import table
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World

HALVES = json.loads(Path(__file__).with_name("renewals.json").read_text(encoding="utf-8"))
NEWER = [(older, newer) for half in HALVES.values() for _, older, newer in half["newer"]]
# Only texts with vectors are compared in any words, and the embedder of the tests knows English.
WITH_VECTORS = [
    (older, newer)
    for half in HALVES.values()
    for language, older, newer in half["newer"]
    if language not in ("ar", "he", "ru", "uk")
]
BOTH = [(older, newer) for half in HALVES.values() for _, older, newer in half["both"]]
UNSURE = [(older, newer) for half in HALVES.values() for _, older, newer in half["unsure"]]
# By language: whose it is, what it is, values, an older statement and newer ones.
UNRELATED = {
    "en": (
        ("Dana's", "Noa's", "the shop's", "my", "our", "my mother's"),
        ("phone number", "hour", "plumber", "locker", "rent", "class"),
        ("Tom", "12", "on Monday", "5 Oak street", "red"),
        "{} {} is {}",
        ("{} {} is now {}", "{} {} changed to {}", "now {} {} is {}"),
    ),
    "he": (
        ("של דנה", "של נועה", "של החנות", "שלי", "של אמא"),
        ("הטלפון", "השרברב", "השכירות", "הקוד"),
        ("תום", "12", "ביום שני", "אדום"),
        "{1} {0} {2}",
        ("{1} {0} עכשיו {2}", "{1} {0} השתנה ל{2}"),
    ),
    "es": (
        ("de Dana", "de Nora", "de la tienda", "de mi madre"),
        ("el número", "el fontanero", "el alquiler", "la clase"),
        ("Tom", "12", "el lunes", "rojo"),
        "{1} {0} es {2}",
        ("{1} {0} ahora es {2}", "ahora {1} {0} es {2}"),
    ),
    "ru": (
        ("Даны", "Нины", "магазина", "моей мамы"),
        ("номер", "мастер", "аренда", "урок"),
        ("Олег", "12", "в понедельник", "красный"),
        "{1} {0} {2}",
        ("{1} {0} теперь {2}", "теперь {1} {0} {2}"),
    ),
}


def is_renewed(older: str, newer: str) -> bool:
    by_rules = verdict_on(newer=likeness_of(newer), older=likeness_of(older))
    return by_rules is Verdict.REPLACES or (says_new(newer) and renews(newer, older))


@table(("older", "newer"), NEWER)
def test_a_new_value_renews_the_older_one(older: str, newer: str) -> None:
    assert is_renewed(older, newer)


@table(("older", "newer"), BOTH)
def test_what_can_both_be_true_is_no_renewal(older: str, newer: str) -> None:
    assert not is_renewed(older, newer)


def is_asked_about(older: str, newer: str) -> bool:
    """Return whether staff are asked, however near the two are."""
    by_rules = verdict_on(newer=likeness_of(newer), older=likeness_of(older))
    return by_rules is Verdict.UNSURE or (says_new(newer) and may_renew(newer, older))


@table("language", UNRELATED)
def test_staff_are_not_asked_about_unrelated_statements(language: str) -> None:
    whose, what, values, known, new = UNRELATED[language]
    pairs = [pair for pair in product(product(whose, what), repeat=2) if pair[0] != pair[1]]
    asked = 0
    for number, (older, newer) in enumerate(pairs):
        text = new[number % len(new)].format(*newer, values[number // 3 % len(values)])
        asked += is_asked_about(known.format(*older, values[number % len(values)]), text)
    assert len(pairs) >= 240
    assert asked <= len(pairs) / 50


def test_staff_are_asked_about_what_may_be_renewed() -> None:
    assert sum(is_asked_about(*pair) for pair in BOTH) <= len(BOTH) / 50
    # Of the others, both stay, the newer first.
    assert sum(is_asked_about(*pair) for pair in UNSURE) >= len(UNSURE) / 5


def active() -> set[str]:
    found = Memory.objects.filter(status=MemoryStatus.ACTIVE)
    return set(found.values_list("content", flat=True))


@pytest.mark.django_db
@pytest.mark.parametrize(("older", "newer"), WITH_VECTORS[1::12])
def test_a_command_says_what_it_renews(world: World, older: str, newer: str) -> None:
    world.remember(CLIENT, older)
    world.remember(CLIENT, "I collect stamps of old trams")
    (reply,) = world.say(CLIENT, f"/remember {newer}")
    confirmed, replaces = reply.splitlines()
    assert confirmed.endswith(f": {newer}")
    assert replaces.endswith(f": {older}")
    assert active() == {newer, "I collect stamps of old trams"}


@pytest.mark.django_db
@pytest.mark.parametrize(("older", "newer"), BOTH[3::30])
def test_a_command_renews_nothing_else(world: World, older: str, newer: str) -> None:
    world.remember(CLIENT, older)
    world.remember(CLIENT, newer)
    assert active() == {older, newer}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("older", "newer", "asked"),
    [
        ("the van is parked on Elm street", "the van is now parked on Oak street", 1),
        ("Dana's phone is 0525551111", "the shop's hours are now 9 to 17", 0),
        ("my phone number is 0525551111", "her phone number is now 0525552222", 0),
    ],
)
def test_a_proposal_is_about_one_thing(world: World, older: str, newer: str, asked: int) -> None:
    world.remember(CLIENT, older)
    world.remember(CLIENT, newer)
    assert active() == {older, newer}
    assert MergeProposal.objects.count() == asked


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("the meeting with Paul is tomorrow", "the meeting with Paul moved to Thursday"),
        ("the meeting with Paul is tomorrow", "the meeting with Paul moved to 10 December"),
        ("my boss is called Linda", "got a new boss, his name is Mark"),
    ],
)
def test_what_changed_may_have_a_date_or_be_named_before(
    world: World, older: str, newer: str
) -> None:
    world.remember(CLIENT, older)
    world.remember(CLIENT, newer)
    assert active() == {newer}


@pytest.mark.django_db
def test_nobody_renews_what_another_person_said(world: World) -> None:
    world.remember(CLIENT, "my hairdresser is Oleg")
    world.remember(OTHER_CLIENT, "now my hairdresser is Ira")
    world.remember(GODFATHER, "now my hairdresser is Dana")
    assert len(active()) == 3


@pytest.mark.django_db
def test_staff_decide_about_a_pinned_memory(world: World) -> None:
    world.remember(CLIENT, "the alarm code is 7788")
    Memory.objects.update(pinned=True)
    world.remember(CLIENT, "alarm code has been changed, it's 9911")
    assert len(active()) == 2
    assert MergeProposal.objects.get().content == "alarm code has been changed, it's 9911"


@pytest.mark.django_db
def test_of_two_that_may_be_meant_none_is_renewed(world: World) -> None:
    world.remember(CLIENT, "my appointment is on Monday at 9")
    world.remember(CLIENT, "my appointment is on Tuesday at 10")
    world.remember(CLIENT, "my appointment was moved to Friday at 11")
    assert len(active()) == 3


@pytest.mark.django_db
def test_what_begins_later_renews_when_it_begins(world: World) -> None:
    world.remember(CLIENT, "my trainer is Tom")
    world.remember(CLIENT, "from next Sunday my trainer is now Liora")
    older = Memory.objects.get(content="my trainer is Tom")
    assert (older.status, older.valid_until is not None) == (MemoryStatus.ACTIVE, True)
