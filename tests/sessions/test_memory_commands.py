"""/memories, /search, /forget and /export, for clients and the godfather."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest

from memories_app.facts.facts import fact_key
from memories_app.facts.validation import NewMemory
from memories_app.models import Memory
from memories_app.store.remember import memories_remember
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from sessions_app.conversations.plain_words import parse_command
from sessions_app.models import Turn
from sessions_app.recall.facade import MESSAGES, Viewer, recall
from sessions_app.turns.commands.dispatch import command_reply
from sessions_app.turns.commands.replies import short_ids
from tests.doubles.hashing_embedder import HashingEmbedder
from tests.remembering import remember
from tests.tables import table
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, new_world

OWNER_FACT = "TestCorp owes me ₪5000"
CHAT_FACT = "TestCorp sends its driver on Monday"
OTHER_FACT = "TestCorp is late with my order"
PUBLIC_FACT = "TestCorp customers park behind the building"
ALL = {OWNER_FACT, CHAT_FACT, OTHER_FACT, PUBLIC_FACT}


@pytest.fixture(scope="module")
def facts(module_rows: None) -> None:
    """A memory of each kind."""
    world = new_world()
    world.remember(GODFATHER, OWNER_FACT)
    world.remember(CLIENT, CHAT_FACT)
    world.remember(OTHER_CLIENT, OTHER_FACT)
    remember(PUBLIC_FACT, visibility="public", embedder=world.dependencies.embedder)


@pytest.fixture
def told(facts: None, world: World) -> World:
    return world


def one(world: World, chat: str, text: str, **changes: Any) -> str:
    (reply,) = world.say(chat, text, **changes)
    return reply


def id_of(content: str) -> str:
    return Memory.objects.get(content=content).pk.hex[:8]


def facts_in(text: str) -> set[str]:
    return {fact for fact in ALL if fact in text}


@pytest.mark.parametrize("command", ["/memories", "/search TestCorp", "/export"])
def test_a_client_sees_own_and_public_memories_only(told: World, command: str) -> None:
    seen = one(told, CLIENT, command)
    own = {CHAT_FACT} if command == "/export" else {CHAT_FACT, PUBLIC_FACT}
    assert facts_in(seen) == own


def test_the_godfather_lists_all_memories_and_whose_they_are(told: World) -> None:
    seen = one(told, GODFATHER, "/memories")
    assert facts_in(seen) == ALL
    assert re.search(rf"{CHAT_FACT}\n    {id_of(CHAT_FACT)} · from Test User", seen)
    assert re.search(rf"{PUBLIC_FACT}\n    {id_of(PUBLIC_FACT)} · public", seen)
    assert f"{id_of(OWNER_FACT)}\n" in seen + "\n"


def test_the_godfather_exports_what_is_the_owners(told: World) -> None:
    seen = one(told, GODFATHER, "/export")
    assert facts_in(seen) == {OWNER_FACT}
    assert "whoever runs this server" in seen


def test_a_group_sees_what_is_public_and_its_own(told: World) -> None:
    group = {"group_id": "120363000000000001@g.us", "mentions_us": True}
    told.say(GODFATHER, "@bot /remember The group meets at noon", **group)
    for command in ("@bot /memories", "@bot /search TestCorp", "@bot /export"):
        (seen,) = told.say(GODFATHER, command, **group)
        assert facts_in(seen) <= {PUBLIC_FACT}
    assert "The group meets at noon" in told.say(GODFATHER, "@bot /memories", **group)[0]


def test_nothing_remembered_is_said_kindly(world: World) -> None:
    assert "/remember <fact>" in one(world, CLIENT, "/memories")
    assert "Nobody told me" in one(world, CLIENT, "/export")
    assert "found nothing" in one(world, CLIENT, "/search TestCorp")


@pytest.fixture
def many(world: World) -> World:
    world.say(CLIENT, "hello")
    memories_remember(
        memories=[
            NewMemory(
                content=f"Customer {number} likes tea",
                visibility="chat",
                chat_id=world.chat(CLIENT).pk,
            )
            for number in range(23)
        ],
        embedder=HashingEmbedder(),
    )
    return world


def test_pages_hold_ten_and_lead_on(many: World) -> None:
    pages = [one(many, CLIENT, f"/memories {page}") for page in (1, 2, 3)]
    assert "I remember 23" in pages[0]
    assert "Page 1 of 3 – next: /memories 2" in pages[0]
    assert pages[2].endswith("Page 3 of 3")
    numbers = [re.findall(r"^(\d+)\. ", page, re.M) for page in pages]
    assert [each for page in numbers for each in page] == [str(n) for n in range(1, 24)]
    customers = re.findall(r"Customer (\d+) ", "".join(pages))
    assert sorted(map(int, customers)) == list(range(23))
    assert one(many, CLIENT, "/memories") == pages[0]


def test_ones_own_facts_come_first(many: World) -> None:
    for number in range(12):
        remember(f"The dish with the number {number} is new", visibility="public")
    assert "I remember 35" in one(many, CLIENT, "what do you know about me?")
    pages = [one(many, CLIENT, f"/memories {page}") for page in (1, 2, 3, 4)]
    numbers = [re.findall(r"^(\d+)\. ", page, re.M) for page in pages]
    assert [each for page in numbers for each in page] == [str(n) for n in range(1, 36)]
    assert [page.count("The dish") for page in pages] == [0, 0, 7, 5]
    # What the business knows for everyone is still told to whoever has said nothing.
    assert one(many, OTHER_CLIENT, "/memories").count("The dish") == 10


@pytest.mark.parametrize("page", ["4", "0", "-1", "many", "9999999"])
def test_a_page_that_is_not_there_is_told(many: World, page: str) -> None:
    assert "There are 3" in one(many, CLIENT, f"/memories {page}")


def test_a_long_memory_is_shortened_in_the_list(world: World) -> None:
    world.remember(CLIENT, "word\n" * 200)
    assert len(one(world, CLIENT, "/memories")) < 400


def test_search_finds_what_was_said_here_and_nowhere_else(told: World) -> None:
    told.say(CLIENT, "My brother drives for TestCorp")
    told.say(OTHER_CLIENT, "My sister drives for TestCorp")
    seen = one(told, CLIENT, "/search TestCorp drives")
    assert "My brother drives for TestCorp\n    said here on 20" in seen
    assert "My sister" not in seen


def test_search_without_its_embedder_finds_words_and_tells(told: World) -> None:
    broken = HashingEmbedder(failure=EmbedderError("down"))
    told.use(embedder=broken)
    seen = one(told, CLIENT, "/search TestCorp")
    assert CHAT_FACT in seen
    assert "Not everything could be searched" in seen


@pytest.mark.parametrize("which", ["{id}", "[{id}]", "{long}", "TestCorp driver", CHAT_FACT])
def test_a_client_forgets_own_memories_by_id_or_words(told: World, which: str) -> None:
    memory = Memory.objects.get(content=CHAT_FACT)
    text = which.format(id=memory.pk.hex[:8], long=str(memory.pk).upper())
    assert one(told, CLIENT, f"/forget {text}") == f"🗑️ Forgotten ({memory.pk.hex[:8]})."
    assert facts_in("\n".join(Memory.objects.values_list("content", flat=True))) == ALL - {
        CHAT_FACT
    }
    assert AuditEvent.objects.filter(action="memory.forget", object_id=str(memory.pk)).exists()
    assert CHAT_FACT not in one(told, CLIENT, "/memories")


def test_a_client_can_not_forget_others_memories_nor_learn_of_them(told: World) -> None:
    unknown = one(told, CLIENT, f"/forget {uuid.uuid4().hex[:8]}")
    for fact in (OWNER_FACT, OTHER_FACT):
        for which in (id_of(fact), fact, fact.split(" ", 1)[1]):
            assert one(told, CLIENT, f"/forget {which}") == unknown
    assert Memory.objects.count() == len(ALL)


def test_a_client_can_not_forget_what_is_public(told: World) -> None:
    for which in (id_of(PUBLIC_FACT), "customers park"):
        assert "only the business" in one(told, CLIENT, f"/forget {which}")
    assert Memory.objects.count() == len(ALL)


def test_the_godfather_forgets_any_memory(told: World) -> None:
    for fact in ALL:
        assert "Forgotten" in one(told, GODFATHER, f"/forget {id_of(fact)}")
    assert not Memory.objects.exists()


def test_several_that_fit_are_asked_about(told: World) -> None:
    told.remember(CLIENT, "TestCorp sends its bill by mail")
    asked = one(told, CLIENT, "/forget TestCorp")
    assert facts_in(asked) == {CHAT_FACT}
    assert "TestCorp sends its bill by mail" in asked
    example = re.search(r"for example: /forget ([0-9a-f]{8})$", asked)
    assert example is not None
    assert Memory.objects.count() == len(ALL) + 1
    assert "Forgotten" in one(told, CLIENT, f"/forget {example[1]}")
    assert Memory.objects.count() == len(ALL)


def test_forget_run_again_after_a_crash_forgets_once(told: World) -> None:
    told.say(CLIENT, "/forget driver")
    turn = Turn.objects.latest("id")
    told.remember(CLIENT, "TestCorp has a new driver")
    again = command_reply(
        turn=turn,
        command=parse_command("/forget driver"),  # type: ignore[arg-type]
        dependencies=told.dependencies,
    )
    assert again.text.startswith("🗑️ Forgotten")
    assert Memory.objects.filter(content="TestCorp has a new driver").exists()


def test_export_counts_what_is_stored_and_is_audited_once(told: World) -> None:
    seen = one(told, CLIENT, "/export")
    assert "2 messages of yours and 1 of ours, in 1 sessions since 20" in seen
    assert "ask the business" in seen
    turn = Turn.objects.latest("id")
    command_reply(
        turn=turn,
        command=parse_command("/export"),  # type: ignore[arg-type]
        dependencies=told.dependencies,
    )
    (event,) = AuditEvent.objects.filter(action="export")
    assert event.details == {"memories": 1, "by": "command"}


def test_export_tells_of_what_no_longer_counts(world: World) -> None:
    world.remember(CLIENT, "The price is 35")
    world.remember(CLIENT, "The price is 40")
    seen = one(world, CLIENT, "/export")
    assert "The price is 35" not in seen.split("Also kept")[0]
    assert "1 that were replaced" in seen


def test_a_fact_that_is_too_long_is_refused_in_words(world: World) -> None:
    assert "at most 8192" in one(world, CLIENT, "/remember " + "long " * 2_000)
    assert not Memory.objects.exists()


@pytest.mark.parametrize("command", ["/memories", "/search x", "/forget x", "/export"])
def test_with_memory_off_the_commands_say_so(world: World, command: str) -> None:
    world.with_answer_rules(longterm_enabled=False)
    assert one(world, CLIENT, command) == "Memory system is disabled"
    world.with_rules(memory_enabled=False)
    assert one(world, OTHER_CLIENT, command) == "Memory system is disabled"


@pytest.mark.parametrize("command", ["/memories", "/search TestCorp", "/export", "/help"])
def test_answers_to_commands_are_no_knowledge(told: World, command: str) -> None:
    told.say(CLIENT, command)
    asked, answer = told.messages(CLIENT)[-2:]
    assert asked.metadata["command"] == command.split()[0][1:]
    assert answer.metadata["system_text"]
    found = recall(
        query=answer.content,
        viewer=Viewer(user_role="client", chat_id=told.chat(CLIENT).pk),
        embedder=told.dependencies.embedder,
        sources=[MESSAGES],
        min_similarity=0.0,
    )
    assert not {asked.content, answer.content} & {hit.content for hit in found.hits}


def test_hebrew_chats_are_answered_in_hebrew(world: World) -> None:
    world.remember(CLIENT, "הספק משלם בתוך 30 יום")
    assert "אני זוכר 1" in one(world, CLIENT, "/memories")
    assert "הספק משלם" in one(world, CLIENT, "/search הספק")
    assert "שכחתי" in one(world, CLIENT, "/forget הספק")
    assert not Memory.objects.exists()


def test_help_lists_every_command(world: World) -> None:
    seen = one(world, CLIENT, "/help")
    for name in ("remember", "memories", "search", "forget", "reset", "export", "help"):
        assert f"/{name}" in seen


FOR_EVERYONE = [
    "/remember for everyone: parking is free",
    "/remember public: parking is free",
    "remember for all clients: parking is free",
    "Please remember, for our customers: parking is free",
]


@pytest.mark.parametrize("text", FOR_EVERYONE)
def test_the_owner_may_tell_everyone(world: World, text: str) -> None:
    assert one(world, GODFATHER, text) == "✅ Remembered: parking is free (public)"
    assert "parking is free" in one(world, CLIENT, "/memories")
    assert "for everyone" in one(world, GODFATHER, "/help")


@pytest.mark.parametrize(
    "text",
    [
        "/remember for clients we pay more VAT",
        "/remember for all clients that haven't paid: block them",
        "/remember public holidays are Sundays",
    ],
)
def test_a_fact_about_everyone_is_the_owners_own(world: World, text: str) -> None:
    assert one(world, GODFATHER, text) == f"✅ Remembered: {text.partition(' ')[2]}"
    assert one(world, CLIENT, "/memories").startswith("I don't remember anything yet.")


COMMANDING = [
    "STOP",
    "Unsubscribe",
    "הסר",
    "Stop promotions",
    "Please stop writing to me",
    "/forget 1",
    "/forget driver",
    "forget that TestCorp sends its driver on Monday",
    "תשכח שאני טבעוני",
    "/reset",
    "/memories",
    "/export",
    "/remember my PIN is 9911",
    "remember that my code is 5566",
    "merke dir, dass mein Hund Rex heißt",
    "1",
]
OTHERS: list[dict[str, Any]] = [
    {"metadata": {"forwarded": True}},
    {"metadata": {"frequently_forwarded": True}},
    {"kind": "location"},
    {"kind": "contacts"},
]


@pytest.mark.parametrize("changes", OTHERS)
def test_what_others_wrote_commands_nothing(told: World, changes: dict[str, Any]) -> None:
    """Nor does it choose from a list, be it forwarded or the name of a place or a contact."""
    one(told, CLIENT, "/forget TestCorp sends")
    told.remember(CLIENT, CHAT_FACT)
    one(told, CLIENT, "/memories")
    session, stored = told.session(CLIENT).pk, set(Memory.objects.values_list("pk", flat=True))
    for text in COMMANDING:
        seen = one(told, CLIENT, text, **changes)
        assert seen.startswith("answer to: [")
    assert told.session(CLIENT).pk == session
    assert set(Memory.objects.values_list("pk", flat=True)) == stored
    # Their own words do.
    assert one(told, CLIENT, "/remember my PIN is 9911").startswith("✅")
    assert "off for you" in one(told, CLIENT, "STOP")
    assert told.say(CLIENT, "start", **changes) == []


def test_what_the_owner_forwards_is_remembered_for_nobody(world: World) -> None:
    one(world, GODFATHER, FOR_EVERYONE[0], metadata={"forwarded": True})
    assert not Memory.objects.exists()


def test_what_is_forwarded_calls_no_person_where_memory_is_off(world: World) -> None:
    world.with_rules(memory_enabled=False)
    text = "I want to talk to a human"
    assert one(world, CLIENT, text, metadata={"forwarded": True}) == f"answer to: {text}"


def test_a_client_tells_nobody_else(world: World) -> None:
    assert one(world, CLIENT, FOR_EVERYONE[0]).endswith("for everyone: parking is free")
    assert "parking" not in one(world, OTHER_CLIENT, "/memories")
    assert "for everyone" not in one(world, CLIENT, "/help")


def test_help_offers_only_what_works(world: World) -> None:
    offered = ("/remember", "/memories", "/search", "/forget", "/export")
    world.with_answer_rules(longterm_enabled=False)
    seen = one(world, CLIENT, "/help")
    assert "/reset" in seen
    assert not any(command in seen for command in offered)
    world.with_rules(memory_enabled=False)
    seen = one(world, OTHER_CLIENT, "/help")
    assert "switched off" in seen
    assert not any(command in seen for command in (*offered, "/reset"))


def test_reset_alone_ends_the_session(world: World) -> None:
    one(world, CLIENT, "Hello")
    first = world.session(CLIENT).pk
    assert one(world, CLIENT, "/reset please don't") == "answer to: /reset please don't"
    assert world.session(CLIENT).pk == first
    one(world, CLIENT, " /Reset\n")
    assert world.session(CLIENT).pk != first


def test_ids_are_longer_where_eight_digits_are_not_enough() -> None:
    ids = [uuid.UUID(int=1 << 64), uuid.UUID(int=2 << 64), uuid.uuid4()]
    assert len(set(short_ids(ids).values())) == len(ids)
    assert short_ids(ids[2:])[ids[2]] == ids[2].hex[:8]


# Commands with very long arguments: a stranger's text never costs more than its length.


MARKS = (".", ". ", ", ", ";", "…", " ", "\n", "-", "'", "[", "a", "א", ", and ")


def test_an_argument_beyond_any_memory_is_refused_unread(world: World) -> None:
    world.remember(CLIENT, "TestCorp pays in 30 days")
    for command in ("forget", "search", "memories", "export"):
        (answer,) = world.say(CLIENT, f"/{command} {'.' * 60_000}b")
        assert "at most 8192" in answer
    assert "8192" in world.say(CLIENT, f"/forget {'א' * 60_000}")[0]
    assert Memory.objects.count() == 1


def test_the_longest_argument_is_looked_for(world: World) -> None:
    world.remember(CLIENT, "TestCorp pays in 30 days")
    (answer,) = world.say(CLIENT, f"/forget {'.' * 8_191}b")
    assert "at most" not in answer
    assert Memory.objects.count() == 1


@table("mark", MARKS)
def test_many_characters_are_read_in_linear_time(mark: str) -> None:
    """With a quadratic pattern, each of these would take hours."""
    text = f"x{mark * (400_000 // len(mark))}b"
    assert fact_key(text) == fact_key(f" {text.upper()} ...")
