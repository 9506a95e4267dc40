"""A forgotten document is gone with all that was told of its passages."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from memories_app.models import Memory, SourceDocument
from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.integrations.llm.base import ChatRequest
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.foundation.integrations.whatsapp.events import Media
from sessions_app.models import ForgetReceipt, InboundDelivery, Message, Turn
from sessions_app.turns.turn_dependencies import FileDependencies
from tests.doubles.direct_extractor import DirectExtractor
from tests.forgetting.dump import left_of, vectors_of
from tests.remembering import memory_update
from tests.world import CLIENT, GODFATHER, World, message_from, summing_up

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("new_connection_after"),
]

WARRANTY = "The warranty of every pump that TestCorp sells is seven years from the day of delivery."
KEYS = "Spare keys of the Haifa warehouse lie with Dana Ofer at the front desk."
HEBREW = "המחסן בחיפה פתוח רק בימי שלישי בין תשע לאחת בצהריים."
PASSAGE = f"{WARRANTY} {KEYS}\n{HEBREW}"
QUESTION = "How long is the warranty of a TestCorp pump?"
RETOLD = "TestCorp gives a warranty of seven years on pumps"
ANSWER = f"Good question. {RETOLD}. Anything else?"
MATTERS = [WARRANTY, KEYS, HEBREW]


@pytest.fixture
def world(world: World, tmp_path: Path) -> World:
    """With committed rows, so that a dump sees them. The model retells what it reads."""

    def answer(request: ChatRequest) -> str:
        read = "\n".join(message.content for message in request.messages)
        if summing_up(request):
            return "Summary. " + " ".join(message.content for message in request.messages[1:])
        if WARRANTY not in read:
            return "I know nothing of that."
        return f"It says: {WARRANTY}" if "word for word" in read else ANSWER

    files = FileDependencies(folder=tmp_path / "documents", extractor=DirectExtractor())
    world.use(chat_model=ScriptedChatModel(answer), files=files)
    return world


def send(world: World, who: str, text: str) -> SourceDocument:
    """Somebody sends a document with this text; it is read."""
    media = Media(media_id=uuid.uuid4().hex, mime_type="text/plain", filename="terms.txt")
    world.provider.files[media.media_id] = text.encode()
    (reply,) = world.say(who, "", kind="document", media=media)
    assert reply.startswith("✅"), reply
    return SourceDocument.objects.latest("created_at")


def forget(world: World) -> ForgetReceipt:
    document = SourceDocument.objects.get()
    return world.forget("document", document.pk)


def test_answers_and_replays_that_told_of_it_are_swept(world: World) -> None:
    document = send(world, CLIENT, PASSAGE)
    passage = document.memories.get()
    # The tests' embedder knows less of what a question means.
    world.with_answer_rules(min_similarity=0.5)
    assert world.say(CLIENT, QUESTION) == [ANSWER]
    assert WARRANTY in world.say(CLIENT, f"{QUESTION} Tell me word for word")[0]
    vectors = vectors_of(passage.pk)
    assert left_of(MATTERS, [RETOLD, *vectors])

    receipt = forget(world)

    assert left_of(MATTERS, [RETOLD, *vectors]) == []
    assert (receipt.kind, receipt.probe) == ("document", "absent")
    assert receipt.swept["memories_app_sourcedocument"] == 1
    assert receipt.swept["sessions_app_turn"] >= 2
    said = [message.content for message in world.messages(CLIENT)]
    assert "Good question. [forgotten] Anything else?" in said
    assert QUESTION in said


@pytest.mark.parametrize("who", [CLIENT, GODFATHER])
@pytest.mark.parametrize("command", ["/memories", "/search warranty of a TestCorp pump"])
def test_lists_that_showed_it_are_swept(world: World, who: str, command: str) -> None:
    send(world, CLIENT, PASSAGE)
    (shown,) = world.say(who, command)
    assert WARRANTY[:60] in shown
    forget(world)
    assert left_of(MATTERS) == []


@pytest.mark.parametrize("command", ["/memories", "/search locker", "/forget locker", "/export"])
def test_so_are_those_that_showed_a_memory(world: World, command: str) -> None:
    """Two memories, so that /forget asks which one is meant."""
    facts = [f"The key of locker {number} lies with Dana Ofer" for number in ("one", "nine")]
    for fact in facts:
        world.remember(GODFATHER if command == "/export" else CLIENT, fact)
    (shown,) = world.say(GODFATHER, command)
    assert all(fact in shown for fact in facts)
    for memory in Memory.objects.all():
        world.forget("memory", memory.pk)
    assert left_of(facts) == []


def test_summaries_that_told_of_it_are_made_again(world: World) -> None:
    world.summarizing(every=4)
    world.with_answer_rules(min_similarity=0.5)
    send(world, CLIENT, PASSAGE)
    world.say(CLIENT, QUESTION)
    world.say(CLIENT, "Thank you for that")
    assert world.sum_up(CLIENT) >= 1
    world.say(CLIENT, "and now?")
    assert Message.objects.filter(role="summary", content__contains=RETOLD).exists()
    forget(world)
    assert left_of(MATTERS, [RETOLD]) == []
    world.sum_up(CLIENT)
    assert left_of(MATTERS, [RETOLD]) == []


def test_what_quotes_an_answer_is_emptied(world: World) -> None:
    world.with_answer_rules(min_similarity=0.5)
    send(world, CLIENT, PASSAGE)
    world.say(CLIENT, QUESTION)
    world.receive(message_from(CLIENT, "this one", raw={"quoted": {"text": ANSWER}}))
    kept = InboundDelivery.objects.latest("id")
    forget(world)
    kept.refresh_from_db()
    assert kept.raw is None
    assert left_of(MATTERS, [RETOLD]) == []


def test_what_staff_made_of_a_passage_goes_with_its_first_wording(world: World) -> None:
    passage = send(world, CLIENT, PASSAGE).memories.get()
    world.say(CLIENT, f"{QUESTION} Tell me word for word")
    corrected = f"TestCorp's newer terms: the guarantee ends after nine winters. {KEYS}"
    memory_update(
        memory_id=passage.pk, content=corrected, embedder=world.dependencies.embedder, actor=SYSTEM
    )
    forget(world)
    assert left_of([*MATTERS, corrected]) == []


def test_a_message_that_brought_it_takes_it_along(world: World) -> None:
    document = send(world, CLIENT, PASSAGE)
    world.say(CLIENT, QUESTION)
    world.say(GODFATHER, QUESTION)
    assert document.source_message_id
    world.forget("message", document.source_message_id)
    assert left_of(MATTERS, [RETOLD]) == []
    assert not SourceDocument.objects.exists()


def test_what_has_nothing_to_do_with_it_stays(world: World) -> None:
    """Of a long document only those passages are looked for that somebody was told of: its
    other pages are full of words that anybody might say."""
    common = "If you need anything else, please call us at any time of the day."
    pages = [f"{common} Page {number} is about nothing else. " * 30 for number in range(5)]
    rest = " ".join(f"Clause {number} was deleted." for number in range(60))
    send(world, CLIENT, "\n\n".join([*pages, rest, PASSAGE]))
    told = world.dependencies.chat_model
    world.use(chat_model=ScriptedChatModel(lambda _: common))
    world.say(CLIENT, "Good morning")
    world.use(chat_model=told)
    world.say(CLIENT, QUESTION)
    turn = Turn.objects.latest("id")
    assert WARRANTY in str(turn.replay.recalled)
    assert common not in str(turn.replay.recalled)
    forget(world)
    assert left_of(MATTERS, [RETOLD]) == []
    assert common in [message.content for message in world.messages(CLIENT)]
