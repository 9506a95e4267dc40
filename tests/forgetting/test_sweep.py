"""After forgetting, nothing of it is left: in no table, log or file."""

from __future__ import annotations

import pytest

from memories_app.models import Memory, Tombstone
from memories_app.store.retract import is_forgotten
from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.llm.base import ChatRequest
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.foundation.integrations.whatsapp.events import Party
from sessions_app.models import (
    Chat,
    ChatLabel,
    ForgetReceipt,
    InboundDelivery,
    Label,
    Message,
    Rule,
)
from tests.forgetting.dump import everything, left_of, vectors_of
from tests.remembering import memory_update
from tests.threads import elsewhere
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, message_from, summing_up

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("new_connection_after"),
]

FACT = "TestCorp owes me 5000 shekels from invoice INV-001 since January"
HEBREW = "הספק מאשדוד חייב לי שבעת אלפים שקלים מחשבונית תשע מאות"
OTHER = "The dentist appointment of Liora is on Thursday at nine"
RETOLD_FACT = "TestCorp owes 5000"
RETOLD = "You asked about money. From invoice INV-001, TestCorp owes 5000. Anything else?"


@pytest.fixture
def world(world: World) -> World:
    """With committed rows, so that a dump sees them. The model retells what it reads."""

    def answer(request: ChatRequest) -> str:
        if summing_up(request):
            return "Summary. " + " ".join(message.content for message in request.messages[1:])
        read = "\n".join(message.content for message in request.messages)
        if FACT in read:
            return RETOLD
        return f"I know: {HEBREW}" if HEBREW in read else "I know nothing of that."

    world.use(chat_model=ScriptedChatModel(answer))
    return world


def forget_memory(world: World, text: str) -> ForgetReceipt:
    memory = Memory.objects.get(content=text)
    return world.forget("memory", memory.pk)


@pytest.mark.parametrize(("who", "fact"), [(CLIENT, FACT), (GODFATHER, HEBREW)])
def test_a_memory_is_gone_with_all_that_was_made_of_it(world: World, who: str, fact: str) -> None:
    world.remember(who, fact)
    world.remember(who, OTHER)
    question = "What does TestCorp owe me?" if fact == FACT else "כמה חייב לי הספק מאשדוד?"
    assert (RETOLD if fact == FACT else HEBREW) in world.say(who, question)[0]
    world.say(who, "/memories")
    world.say(who, f"/search {fact}")
    world.say(who, "and what else?")
    memory = Memory.objects.get(content=fact)
    vectors = vectors_of(memory.pk) if fact == FACT else []
    assert left_of([fact], vectors), "the test must find it before it is forgotten"

    receipt = forget_memory(world, fact)

    assert left_of([fact], [*vectors, RETOLD_FACT]) == []
    assert receipt.probe == "absent"
    assert receipt.swept["memories_app_memory"] == 1
    assert receipt.swept["sessions_app_turn"] >= 1
    # What has nothing to do with it stays.
    assert Memory.objects.get().content == OTHER
    assert Message.objects.filter(content=f"/remember {OTHER}").exists()
    assert Message.objects.filter(content=question).exists()


def test_the_message_that_told_it_and_its_confirmation_are_gone(world: World) -> None:
    world.remember(CLIENT, FACT)
    world.say(CLIENT, "Good evening")
    forget_memory(world, FACT)
    assert [message.content for message in world.messages(CLIENT)][0] == "Good evening"
    session = world.session(CLIENT)
    assert session.total_tokens == sum(message.tokens for message in world.messages(CLIENT))


def test_revisions_and_older_values_go_along(world: World) -> None:
    world.remember(GODFATHER, "The delivery price to Haifa is 3571 shekels")
    memory = Memory.objects.get()
    memory_update(
        memory_id=memory.pk,
        content="The delivery price to Haifa town is 3682 shekels",
        embedder=world.dependencies.embedder,
        actor=SYSTEM,
    )
    world.remember(GODFATHER, "The delivery price to Haifa town is 4793 shekels")
    newest = Memory.objects.get(status="active")
    world.forget("memory", newest.pk)
    assert not Memory.objects.exists()
    assert left_of(["3571 shekels", "3682 shekels", "4793 shekels"]) == []


def test_a_later_delivery_that_quotes_it_is_emptied(world: World) -> None:
    world.remember(CLIENT, FACT)
    world.receive(message_from(CLIENT, "this one", raw={"quoted": {"text": f"/remember {FACT}"}}))
    kept = InboundDelivery.objects.latest("id")
    forget_memory(world, FACT)
    kept.refresh_from_db()
    assert kept.raw is None
    assert left_of([FACT]) == []


def test_summaries_that_told_it_are_made_again_without_it(world: World) -> None:
    world.summarizing(every=4)
    world.remember(CLIENT, FACT)
    world.say(CLIENT, "What does TestCorp owe me?")
    world.say(CLIENT, "Thank you for that")
    assert world.sum_up(CLIENT) >= 1
    world.say(CLIENT, "and now?")
    forget_memory(world, FACT)
    assert left_of([FACT], [RETOLD_FACT]) == []
    world.sum_up(CLIENT)
    assert left_of([FACT], [RETOLD_FACT]) == []


def test_a_message_goes_with_what_was_learned_from_it_alone(world: World) -> None:
    world.say(CLIENT, FACT)
    world.say(CLIENT, "What does TestCorp owe me?")
    message = Message.objects.get(content=FACT)
    vectors = vectors_of(message.pk)
    receipt = world.forget("message", message.pk)
    assert receipt.kind == "message"
    assert left_of([FACT], [*vectors, RETOLD_FACT]) == []
    assert not Message.objects.filter(pk=message.pk).exists()
    numbers = [message.order_num for message in world.messages(CLIENT)]
    world.say(CLIENT, "still here?")
    assert max(message.order_num for message in world.messages(CLIENT)) > max(numbers)


def test_what_another_message_told_too_stays(world: World) -> None:
    world.remember(CLIENT, FACT)
    world.remember(CLIENT, FACT)
    first = Message.objects.filter(content=f"/remember {FACT}").earliest("order_num")
    world.forget("message", first.pk)
    memory = Memory.objects.get()
    assert memory.content == FACT
    assert memory.source_message_id is None


def test_a_session_is_gone_with_what_was_said_in_it(world: World) -> None:
    world.remember(CLIENT, FACT)
    world.say(CLIENT, OTHER)
    first = world.session(CLIENT)
    world.say(CLIENT, "/reset")
    assert world.say(CLIENT, "What does TestCorp owe me?") == [RETOLD]
    receipt = world.forget("session", first.pk)
    assert receipt.swept["sessions_app_chatsession"] == 1
    assert left_of([FACT, OTHER], [RETOLD_FACT]) == []
    assert Chat.objects.filter(whatsapp_chat=CLIENT).exists()


# Nobody else's: the log file is that of all tests.
PERSON = "15550177001@c.us"


def test_a_chat_is_erased_with_the_person(world: World) -> None:
    name = "Quentin Testperson"
    party = Party(phone=PERSON.split("@")[0], name=name)
    world.say(PERSON, f"/remember {FACT}", party=party)
    world.say(PERSON, OTHER, party=party)
    assert name in world.say(GODFATHER, "/memories")[0]
    world.say(OTHER_CLIENT, "I am somebody else")
    assert world.say(GODFATHER, "What does TestCorp owe?") == [RETOLD]
    chat = world.chat(PERSON)
    receipt = world.forget("chat", chat.pk)
    assert receipt.kind == "chat"
    phone = PERSON.split("@")[0]
    stored = everything()
    assert left_of([FACT, OTHER], [RETOLD_FACT]) == []
    assert phone not in stored
    assert name not in stored
    assert Chat.objects.filter(whatsapp_chat=OTHER_CLIENT).exists()
    # Whoever it was may come again, as somebody new.
    assert world.say(PERSON, "Hello")


def test_a_label_that_only_the_erased_chat_had_goes_with_it(world: World) -> None:
    for person in (CLIENT, OTHER_CLIENT):
        world.say(person, "Hello")
    names = ("owes 300", "VIP", "new", "unused")
    labels = {name: Label.objects.create(name=name) for name in names}
    Rule.objects.create(name="greet", when="label", label=labels["new"])
    for name in names[:3]:
        ChatLabel.objects.create(chat=world.chat(CLIENT), label=labels[name])
    ChatLabel.objects.create(chat=world.chat(OTHER_CLIENT), label=labels["VIP"])
    receipt = world.forget("chat", world.chat(CLIENT).pk)
    assert receipt.swept["sessions_app_label"] == 1
    assert set(Label.objects.values_list("name", flat=True)) == {"VIP", "new", "unused"}
    assert world.chat(OTHER_CLIENT).chat_labels.count() == 1


def test_a_receipt_holds_no_content_and_is_audited(world: World) -> None:
    world.remember(CLIENT, FACT)
    receipt = forget_memory(world, FACT)
    shown = receipt.as_dict()
    assert set(shown) == {
        "receipt_id",
        "kind",
        "object_id",
        "forgotten_at",
        "swept",
        "probe",
        "probe_details",
        "left",
    }
    (event,) = AuditEvent.objects.filter(action="memory.forgotten")
    assert event.object_id == str(receipt.receipt_id)


def test_what_was_forgotten_is_known_when_it_comes_again(world: World) -> None:
    world.remember(CLIENT, FACT)
    scope = Memory.objects.get().scope
    forget_memory(world, FACT)
    assert is_forgotten(content=f"  {FACT.upper()}.", scope=scope)
    assert not is_forgotten(content=OTHER, scope=scope)
    assert not is_forgotten(content=FACT, scope="owner")
    assert FACT not in str(Tombstone.objects.values())


def test_forget_by_words_leaves_no_words(world: World) -> None:
    world.remember(CLIENT, FACT)
    (answer,) = world.say(CLIENT, f"/forget {FACT}")
    assert answer.startswith("🗑️")
    assert left_of([FACT]) == []


def test_a_turn_that_had_read_it_is_answered_anew(world: World) -> None:
    world.remember(CLIENT, FACT)
    world.say(CLIENT, "What does TestCorp owe me?")
    answers = iter([RETOLD, "I know nothing of that."])

    def forget_while_it_thinks(request: ChatRequest) -> str:
        answer = next(answers)
        if answer == RETOLD:
            elsewhere(lambda: forget_memory(world, FACT))
        return answer

    world.use(chat_model=ScriptedChatModel(forget_while_it_thinks))
    assert world.say(CLIENT, "Remind me, what does TestCorp owe?") == ["I know nothing of that."]
    assert left_of([FACT], [RETOLD_FACT]) == []


def test_a_summary_that_had_read_it_is_not_stored(world: World) -> None:
    world.remember(CLIENT, FACT)
    world.say(CLIENT, "What does TestCorp owe me?")
    world.say(CLIENT, "Thank you for that")
    forgotten: list[bool] = []

    def forget_while_it_sums_up(request: ChatRequest) -> str:
        if not forgotten:
            forgotten.append(True)
            elsewhere(lambda: forget_memory(world, FACT))
        return "Summary: " + " ".join(message.content for message in request.messages[1:])

    world.use(chat_model=ScriptedChatModel(forget_while_it_sums_up))
    world.summarizing(every=4)
    world.sum_up(CLIENT)
    assert forgotten
    assert left_of([FACT], [RETOLD_FACT]) == []
