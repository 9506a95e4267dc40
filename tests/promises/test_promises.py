"""Promises from the answer to the memory, the prompt of a later session, and what undoes them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories_app.models import Memory
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.foundation.integrations.whatsapp.events import Media
from sessions_app.conversations.phrases import text_for
from sessions_app.conversations.session_lifecycle import session_end
from sessions_app.inbound.message_changes import message_edit, message_revoke
from sessions_app.merging.merge_chats import chat_merge
from sessions_app.models import Chat, ChatSession, Message
from sessions_app.promises.store import (
    PromiseReader,
    promise_mark,
    promises_read,
    promises_waiting,
    today,
)
from sessions_app.recall.facade import Viewer, recall
from sessions_app.tasks import read_promises
from tests.doubles.hashing_embedder import HashingEmbedder
from tests.sessions.test_hours import closed_today, set_hours
from tests.sessions.test_model_tools import call, calling, use
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db

QUOTE = "I'll send you the quote by tomorrow."


@pytest.fixture
def answers(world: World) -> Callable[..., list[Memory]]:
    """The assistant answers so, workers read it; returns the promises that are active then."""

    def answer(text: str, *, by: str = CLIENT, asked: str = "and now?") -> list[Memory]:
        world.use(chat_model=ScriptedChatModel(lambda _request: text))
        world.say(by, asked)
        return read(world)

    return answer


def read(world: World) -> list[Memory]:
    """What workers do, by the sweep; twice, which changes nothing."""
    reader = PromiseReader(embedder=world.dependencies.embedder)
    waiting = promises_waiting(timezone.now())
    for session_id in waiting:
        promises_read(session_id=session_id, reader=reader)
    assert promises_waiting(timezone.now()) == []
    ChatSession.objects.filter(pk__in=waiting).update(promises_until=None)
    for session_id in waiting:
        promises_read(session_id=session_id, reader=reader)
    return list(Memory.objects.filter(type="promise", status="active").order_by("said_at"))


def by_business(world: World, text: str, **changes: Any) -> list[Memory]:
    """Somebody of the business writes on its phone."""
    world.receive(message_from(CLIENT, text, from_business=True, **changes))
    return read(world)


def state(memory: Memory) -> str:
    return str(memory.metadata["promise"]["state"])


def last() -> Message:
    return Message.objects.filter(role="assistant").latest("order_num")


def test_an_answer_is_a_promise_of_its_chat(world: World, answers: Any) -> None:
    (promise,) = answers(f"Sure! {QUOTE}")
    day = f"{today().day} {today():%B %Y}"
    assert promise.content == f"Promised on {day} to Test User: {QUOTE}"
    assert (promise.visibility, promise.chat_id) == ("chat", world.chat(CLIENT).pk)
    assert promise.source_message_id == last().pk
    assert promise.told_count == 1
    tomorrow = today() + timedelta(days=1)
    assert promise.metadata["promise"] == {
        "state": "open",
        "by": "assistant",
        "due": tomorrow.isoformat(),
    }
    # It is overdue after its day, not ended.
    assert promise.valid_until is None


@pytest.mark.parametrize(
    ("language", "text", "first"),
    [
        ("he", QUOTE, "הובטח"),
        ("", "אשלח לך את ההצעה מחר", "הובטח"),
        ("", "Mañana te envío el presupuesto por aquí", "Prometido"),
        ("", "Завтра пришлю вам смету", "Обещано"),
    ],
)
def test_it_is_worded_in_the_language_of_the_chat_or_else_in_its_own(
    world: World, answers: Any, language: str, text: str, first: str
) -> None:
    answers("Hello")
    Chat.objects.update(language=language)
    (promise,) = by_business(world, text)
    assert promise.content.split()[0] == first
    assert promise.content.endswith(f": {text}")


def test_the_owner_promises_by_phone_in_a_paused_chat(world: World, answers: Any) -> None:
    answers("Hello")
    (promise,) = by_business(world, "אחזור אלייך מחר")
    assert promise.metadata["promise"]["by"] == "business"
    assert promise.content.endswith(": אחזור אלייך מחר")


def test_a_later_session_recalls_it_with_its_state(world: World, answers: Any) -> None:
    (promise,) = answers("I'll send you the quote by tomorrow.")
    session_end(session=world.session(CLIENT), at=timezone.now())
    promise.metadata["promise"]["due"] = "2026-01-05"
    promise.save()
    world.use(chat_model=ScriptedChatModel(lambda _request: "Soon."))
    seen = world.seen_by_model(CLIENT, "When will you send me the quote?")
    assert "our promise, overdue, due 2026-01-05) Promised on" in seen
    assert "said by this person" not in seen
    assert "Promised on" not in world.seen_by_model(OTHER_CLIENT, "When will you send the quote?")


@pytest.mark.parametrize(
    "text",
    [
        "I don't know that, I'll ask the owner.",
        "Let me check, I'll get back to you shortly.",
        "אבדוק עם הצוות ואחזור אלייך",
        "No lo sé, voy a preguntar y te digo.",
        "Não sei, vou perguntar ao responsável.",
        "Не знаю, спрошу у владельца.",
        "سأسأل المالك وأخبرك",
    ],
)
def test_a_promise_to_ask_alone_is_listed_and_answers_nothing(
    world: World, answers: Any, text: str
) -> None:
    """Else each "I'll ask the owner" stood among what is remembered for each question."""
    (promise,) = answers(text)
    viewer = Viewer("client", world.chat(CLIENT).pk)
    for query in (promise.content, text, "Have you asked?"):
        hits = recall(query=query, viewer=viewer, embedder=HashingEmbedder(), min_similarity=0).hits
        assert promise.pk not in {hit.id for hit in hits}
    owner = Viewer("godfather", None)
    hits = recall(query=promise.content, viewer=owner, embedder=HashingEmbedder()).hits
    assert promise.pk in {hit.id for hit in hits}


@pytest.mark.parametrize(
    "text", ["I'll ask the owner about gluten-free bread", "I'll call you", "אבדוק אם יש חלות"]
)
def test_a_promise_with_its_matter_is_recalled(world: World, answers: Any, text: str) -> None:
    (promise,) = answers(text)
    viewer = Viewer("client", world.chat(CLIENT).pk)
    hits = recall(query=promise.content, viewer=viewer, embedder=HashingEmbedder()).hits
    assert promise.pk in {hit.id for hit in hits}


def test_a_group_promises_to_who_asked(world: World) -> None:
    world.use(chat_model=ScriptedChatModel(lambda _request: QUOTE))
    group = {"group_id": "120363000000000001@g.us", "mentions_us": True}
    world.say(CLIENT, "@DeniDin and the quote?", **group)
    (promise,) = read(world)
    assert " to Test User: " in promise.content
    assert promise.chat_id == world.chat("120363000000000001@g.us").pk
    assert promise.visibility == "chat"


def test_it_moves_with_a_merge_of_contacts(world: World, answers: Any) -> None:
    (promise,) = answers(QUOTE)
    answers("Hello", by=OTHER_CLIENT)
    stays = chat_merge(world.chat(OTHER_CLIENT), world.chat(CLIENT))
    promise.refresh_from_db()
    assert promise.chat_id == stays.pk
    (promise,) = by_business(world, "I've sent the quote.")
    assert state(promise) == "kept"


@pytest.mark.parametrize("undone", [message_revoke, "edit", "erase", "session"])
def test_it_goes_with_its_message(world: World, answers: Any, undone: Any) -> None:
    answers(QUOTE)
    message, memory = last(), world.rules.chat_memory
    if undone == "edit":
        changed = "I'll call you on Sunday."
        message_edit(message=message, content=changed, chat_memory=memory, now=timezone.now())
        (promise,) = read(world)
        assert promise.content.endswith(changed)
        return
    if undone == "erase":
        world.forget("message", message.pk)
    elif undone == "session":
        world.forget("session", message.session_id)
    else:
        undone(message=message, chat_memory=memory, now=timezone.now())
    assert read(world) == []


def test_what_was_erased_is_not_found_again(world: World, answers: Any) -> None:
    (promise,) = answers(QUOTE)
    world.forget("memory", promise.pk)
    ChatSession.objects.update(promises_until=None)
    assert read(world) == []


class TestSaidAgain:
    def test_a_repeated_promise_is_told_again(self, answers: Any) -> None:
        answers(QUOTE)
        (promise,) = answers("As I said, I will send the quote tomorrow!")
        assert promise.told_count == 2
        assert promise.tellings.count() == 2

    def test_another_day_replaces_it(self, answers: Any) -> None:
        (first,) = answers(QUOTE)
        (second,) = answers("Sorry, I'll send the quote within 3 days.")
        first.refresh_from_db()
        assert (first.status, first.superseded_by_id) == ("superseded", second.pk)
        due = (today() + timedelta(days=3)).isoformat()
        assert second.metadata["promise"]["due"] == due

    @pytest.mark.parametrize(
        ("first", "again"),
        [
            (QUOTE, "Yes, the quote will be sent tomorrow."),
            ("Te mandaré la factura mañana.", "Sí, te envío la factura mañana."),
            ("Vou te mandar a fatura amanhã.", "Sim, amanhã envio a fatura."),
        ],
    )
    def test_in_other_words_of_sending(self, answers: Any, first: str, again: str) -> None:
        answers(first)
        (promise,) = answers(again)
        assert promise.told_count == 2

    def test_other_promises_stay_beside_it(self, answers: Any) -> None:
        answers(QUOTE)
        assert len(answers("Dana will call you about the delivery today.")) == 2


class TestKept:
    @pytest.mark.parametrize(
        ("promised", "text"),
        [
            (QUOTE, "Here is the quote: https://example.com/q"),
            (QUOTE, "I've sent the quote."),
            (QUOTE, "Quote sent!"),
            (QUOTE, "Sent!"),
            ("אשלח לך את החשבונית מחר", "החשבונית נשלחה"),
            ("Te mandaré la factura mañana.", "Ya te mandé la factura"),
            ("Vou te mandar a fatura amanhã.", "Fatura enviada"),
            ("Пришлю счёт завтра.", "Счёт отправлен"),
        ],
    )
    def test_the_business_says_so(
        self, world: World, answers: Any, promised: str, text: str
    ) -> None:
        answers(promised)
        (promise,) = by_business(world, text)
        assert state(promise) == "kept"
        assert promise.metadata["promise"]["evidence"] == str(last().pk)

    @pytest.mark.parametrize(
        "text",
        [
            "I haven't sent the quote yet.",
            "Here is the menu: https://example.com",
            "We sent the parcel",
            "I called about the quote",
            "Thanks!",
        ],
    )
    def test_it_says_something_else(self, world: World, answers: Any, text: str) -> None:
        answers(QUOTE)
        assert state(by_business(world, text)[0]) == "open"

    def test_a_file_after_a_promise_to_send(self, world: World, answers: Any) -> None:
        answers(QUOTE)
        file = Media(media_id="1", mime_type="application/pdf", filename="quote.pdf")
        (promise,) = by_business(world, "", kind="document", media=file)
        assert state(promise) == "kept"

    def test_staff_decide(self, world: World, answers: Any) -> None:
        (promise,) = answers(QUOTE)
        staff = Actor("staff", "dana")
        for chosen in ("dropped", "open"):
            promise_mark(memory_id=promise.pk, state=chosen, actor=staff)
        assert state(by_business(world, "I've sent the quote.")[0]) == "open"

    def test_done_answers_another_request(self, answers: Any) -> None:
        answers(QUOTE)
        assert state(answers("Done!", asked="Please change my address")[0]) == "open"

    def test_of_two_promises_none_is_certain(self, world: World, answers: Any) -> None:
        answers(f"{QUOTE} Dana will call you today about the delivery.")
        assert [state(each) for each in by_business(world, "Sent!")] == ["open", "open"]

    def test_evidence_that_is_revoked_opens_it_again(self, world: World, answers: Any) -> None:
        answers(QUOTE)
        by_business(world, "I've sent the quote.")
        message_revoke(message=last(), chat_memory=world.rules.chat_memory, now=timezone.now())
        assert state(read(world)[0]) == "open"


class TestNotRead:
    def test_memory_off_stores_nothing(self, world: World, answers: Any) -> None:
        answers("Hello")
        chat = world.chat(CLIENT)
        chat.memory_enabled = False
        chat.save()
        assert answers(QUOTE) == []

    def test_switched_off_before_it_was_read(self, world: World) -> None:
        world.use(chat_model=ScriptedChatModel(lambda _request: QUOTE))
        world.say(CLIENT, "hi")
        chat = world.chat(CLIENT)
        chat.memory_enabled = False
        chat.save()
        assert read(world) == []

    def test_long_term_memory_is_off(self, answers: Any, settings: Any) -> None:
        settings.LONGTERM_ENABLED = False
        assert answers(QUOTE) == []

    def test_a_person_promises_nothing_of_ours(self, answers: Any) -> None:
        assert answers("Thank you", asked="I'll send you the money tomorrow") == []

    @pytest.mark.parametrize("language", ["en", "ar", "ru", "pt"])
    def test_the_text_that_hands_over(self, world: World, language: str) -> None:
        world.say(CLIENT, "hello")
        Chat.objects.update(language=language, fixed_language=language)
        set_hours(**closed_today())
        use(world, calling(call("hand_over", reason="wish"), text=""), QUOTE)
        (sent,) = world.say(CLIENT, "Call somebody")
        assert text_for("handover_waiting", language) in sent
        (promise,) = read(world)
        assert promise.content.endswith(QUOTE)

    def test_texts_of_the_system(self, world: World) -> None:
        world.say(CLIENT, "/remember I'll send you the quote tomorrow")
        world.say(CLIENT, "/memories")
        assert read(world) == []


def test_the_job_of_the_queue_reads_it(world: World, settings: Any) -> None:
    settings.ENABLE_MEMORY_SYSTEM = True
    world.use(chat_model=ScriptedChatModel(lambda _request: QUOTE))
    world.say(CLIENT, "hi")
    assert read_promises(str(world.session(CLIENT).pk)) == 1
    assert Memory.objects.filter(type="promise").count() == 1
