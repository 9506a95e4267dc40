"""A person at a glance: what is known of a contact, by sections, with its evidence."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.conf import settings
from django.test import Client, override_settings
from django.utils import timezone

from cards_app.models import MemoryCard
from memories_app.facts.facts import fact_key
from memories_app.models import Memory, MergeProposal
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.text.characters import estimate_tokens
from sessions_app.cards.card_recall import cards_retract
from sessions_app.models import Chat, Message, Turn, TurnReplay
from tests.api.calling import Api, api_with, error_of
from tests.dashboard.staff import page, staff_with
from tests.world import CLIENT, OTHER_CLIENT, World, remember, write_as

pytestmark = pytest.mark.django_db

SECTIONS = ("who", "preferences", "open", "promises", "dates")
# In the ten languages that facts are read in.
ABOUT = {
    "who": [
        *("I live in Haifa", "My wife works at a bank", "Our company has 40 employees"),
        *("אני גרה בחיפה", "הבן שלי בכיתה א", "Vivo en Madrid", "Tengo dos hijos"),
        *("Trabalho numa padaria", "Moro em Lisboa", "أسكن في القاهرة", "زوجتي طبيبة"),
        *("Я живу в Самаре", "У меня двое детей", "Мешкаю у Львові", "J'habite à Lyon"),
        *("Ich wohne in Berlin", "Abito a Roma", "The invoice goes to the second floor"),
    ],
    "preferences": [
        *("I am allergic to nuts", "My daughter is vegetarian", "My shoe size is 42"),
        *("יש לי אלרגיה לבוטנים", "אני אוהב קפה קר", "Soy alérgica al marisco", "Me gusta el té"),
        *("Sou celíaca", "Prefiro mesa na janela", "لدي حساسية من الفول السوداني"),
        *("أحب القهوة بدون سكر", "У меня аллергия на орехи", "Люблю зелёный чай"),
        *("Не переношу глютен", "Люблю каву з молоком", "Je suis végétarienne"),
        *("Ich mag keine Oliven", "Sono allergico alle noci"),
    ],
}


def person(api: Api | None = None) -> dict[str, Any]:
    answer = (api or api_with("read")).get(f"chats/{CLIENT}/person/")
    assert answer.status_code == 200, answer.content
    document: dict[str, Any] = answer.json()
    return document


def texts(document: dict[str, Any], section: str) -> list[str]:
    return [line["text"] for line in document[section]]


def row(world: World, content: str, **fields: Any) -> Memory:
    """A memory of the client's chat, with these fields."""
    key = world.chat(CLIENT).pk
    values = {"visibility": "chat", "chat_id": key, "fact_key": fact_key(content), **fields}
    return Memory.objects.create(content=content, **values)


def card(world: World, days_ago: int = 1, **fields: Any) -> MemoryCard:
    session, now = world.session(CLIENT), timezone.now()
    values = {"session_id": session.pk, "chat_id": session.chat_id, "title": "A cake", **fields}
    started = now - timedelta(days=days_ago)
    return MemoryCard.objects.create(
        session_started_at=started, extracted_at=now, last_order=1, **values
    )


@pytest.fixture
def known(world: World) -> World:
    """The client has said something; nothing is remembered yet."""
    world.say(CLIENT, "Please keep the blue cake for me")
    return world


@pytest.mark.parametrize("section", ABOUT)
def test_each_memory_stands_in_its_section(known: World, section: str) -> None:
    for text in ABOUT[section]:
        memory = row(known, text)
        document = person()
        assert [name for name in SECTIONS if document[name]] == [section], text
        memory.delete()


def test_types_and_categories_count_too_and_health_comes_first(known: World) -> None:
    row(known, "Window seats", type="preference")
    row(known, "Number 7 of the list", category="allergies")
    row(known, "Call back about the invoice of their wife", type="task")
    document = person()
    assert texts(document, "preferences") == ["Number 7 of the list", "Window seats"]
    assert texts(document, "open") == ["Call back about the invoice of their wife"]


def test_a_line_has_its_evidence(world: World) -> None:
    write_as(world, CLIENT, "Dana", "/remember I am allergic to nuts")
    write_as(world, CLIENT, "Dana", "/remember I am allergic to nuts!")
    document = person()
    assert (document["client_name"], document["language"]) == ("Dana", "en")
    (line,) = document["preferences"]
    memory, first = Memory.objects.get(), Message.objects.order_by("received_at").first()
    assert first is not None
    assert (line["topic"], line["count"], line["state"]) == ("diet", 2, "")
    assert (line["memory_id"], line["message_id"]) == (str(memory.pk), str(first.pk))
    assert line["session_id"] == str(first.session_id)
    world.forget("message", first.pk)
    (line,) = person()["preferences"]
    second = Message.objects.get(content="/remember I am allergic to nuts!")
    assert line["message_id"] == str(second.pk)
    world.forget("message", second.pk)
    assert not any(person()[name] for name in SECTIONS)


def test_only_what_holds_is_told(known: World) -> None:
    now = timezone.now()
    row(known, "I live in Eilat", status="superseded")
    row(known, "I live in Acre", status="proposed")
    row(known, "I live in Lod", expires_at=now - timedelta(hours=1))
    row(known, "I live in Arad", valid_until=now - timedelta(hours=1))
    row(known, "I live in Yavne", visibility="public")
    row(known, "I live in Dimona", valid_from=now + timedelta(days=3))
    document = person()
    assert texts(document, "who") == []
    assert texts(document, "dates") == ["I live in Dimona"], "it doesn't hold yet"
    Memory.objects.all().delete()
    known.remember(CLIENT, "I live in Haifa")
    known.remember(CLIENT, "I live in Tel Aviv")
    assert texts(person(), "who") == ["I live in Tel Aviv"]
    assert MergeProposal.objects.filter(kind="replace", state="open").exists()
    MergeProposal.objects.update(state="dismissed")
    assert len(person()["who"]) == 2, "staff say that both are true"


def test_open_promises_are_told_overdue_ones_first(known: World) -> None:
    now = timezone.now()

    def promised(text: str, promise: Any, **fields: Any) -> None:
        row(known, text, type="promise", metadata={"promise": promise}, **fields)

    later, before = now + timedelta(days=2), now - timedelta(days=2)
    promised("We send the quote", {"state": "open", "by": "business", "due": later.isoformat()})
    promised("Somebody calls", {"state": "open", "by": "assistant", "due": None})
    promised(
        "We refund 18 dollars",
        {"state": "open", "by": "business", "due": before.date().isoformat()},
        valid_until=before,
    )
    promised("We look into it", {"state": "open", "due": "soon"})
    promised("Ready", "no record")
    promised("Kept already", {"state": "kept", "due": before.isoformat()})
    promised("Dropped", {"state": "dropped", "due": None})
    document = person()
    found = texts(document, "promises")
    assert found[:2] == ["We refund 18 dollars", "We send the quote"]
    assert sorted(found[2:]) == ["Ready", "Somebody calls", "We look into it"]
    assert [line["state"] for line in document["promises"][:2]] == ["overdue", "open"]
    assert document["promises"][0]["day"] == before.date().isoformat()
    assert not document["who"]
    assert not document["dates"]


@pytest.mark.parametrize(
    "text",
    [
        "My birthday is on {day} May",
        "Born {day}.5.1990",
        "Born on 1990-05-{day}",
        "יום ההולדת שלי ב-{day} במאי",
        "Mi cumpleaños es el {day} de mayo",
        "Meu aniversário é {day} de maio",
        "День рождения {day} мая",
        "День народження {day} травня",
        "عيد ميلادي يوم {day}/5",
        "Mon anniversaire est le {day} mai",
        "Ich habe am {day}. Mai Geburtstag",
        "Il mio compleanno è il {day} maggio",
    ],
)
def test_the_next_birthday_is_among_the_dates(known: World, text: str) -> None:
    row(known, text.format(day=12))
    (line,) = person()["dates"]
    today = datetime.now(ZoneInfo(settings.BUSINESS_TIME_ZONE)).date()
    year = today.year + ((today.month, today.day) > (5, 12))
    assert line["day"] == f"{year}-05-12"


def test_appointments_and_periods_are_among_the_dates_while_they_are_ahead(known: World) -> None:
    now = timezone.now()
    ahead, past = now + timedelta(days=9), now - timedelta(days=9)
    booked, wedding = (
        f"Appointment on {ahead:%d.%m.%Y} at ten",
        f"החתונה ב-{ahead + timedelta(days=1):%d.%m.%Y}",
    )
    row(known, booked, said_at=past)
    row(known, wedding, said_at=past)
    row(known, f"Appointment on {past:%d.%m.%Y} at ten", said_at=past)
    row(known, "I am away", valid_from=past, valid_until=now + timedelta(days=2))
    row(known, "I am vegan", valid_until=now + timedelta(days=4))
    row(known, "A meeting about the garden was booked")
    document = person()
    assert texts(document, "dates") == ["I am away", "I am vegan", booked, wedding]
    assert [line["until"] is None for line in document["dates"]] == [False, False, True, True]
    assert texts(document, "preferences") == ["I am vegan"]
    assert texts(document, "who") == ["A meeting about the garden was booked"], "it has no day"


def test_open_matters_come_from_the_latest_cards(known: World) -> None:
    row(known, "Promised: we bring the boxes on Sunday.", type="promise", metadata={})
    outcome = {"settled": "The cake is blue", "open": ["Please keep the blue cake"], "acts": "user"}
    todos = ["Please keep the blue cake...", "We bring the boxes on Sunday.", "Pay the rest"]
    card(known, outcome=outcome, todos=todos)
    for days in range(2, 5):
        old = {"session_id": f"00000000-0000-4000-8000-00000000000{days}"}
        card(known, days_ago=days, todos=[f"Old {days}"], outcome=None if days < 3 else "?", **old)
    document = person()
    assert texts(document, "open") == [
        "Please keep the blue cake",
        "Pay the rest",
        "Old 2",
        "Old 3",
    ]
    first = document["open"][0]
    said = Message.objects.get(content="Please keep the blue cake for me")
    assert (first["memory_id"], first["message_id"]) == (None, str(said.pk))
    assert first["session_id"] == str(known.session(CLIENT).pk)
    known.forget("message", said.pk)
    assert "Please keep the blue cake" not in str(person())


def test_who_may_not_see_a_memory_does_not_see_its_line(known: World) -> None:
    known.say(OTHER_CLIENT, "hello")
    row(known, "I am allergic to nuts", visibility="owner")
    remember(known, "I live in Rome", "chat", OTHER_CLIENT)
    assert texts(person(), "preferences") == ["I am allergic to nuts"]
    assert not person()["who"], "another person's"
    bound = api_with("read", chat_ids=[known.chat(CLIENT).pk])
    assert not person(bound)["preferences"]
    error_of(bound.get(f"chats/{OTHER_CLIENT}/person/"), 404)
    error_of(api_with("read").get("chats/15550100999@c.us/person/"), 404)
    error_of(api_with("read").get("chats/nobody/person/"), 400)


# In prompts


def test_the_prompt_tells_it_where_the_setting_is_on(known: World) -> None:
    row(known, "I am allergic to nuts")
    assert "allergic" not in known.seen_by_model(CLIENT, "Hello")
    known.with_answer_rules(person_in_prompt=True, longterm_enabled=False)
    assert "allergic" not in known.seen_by_model(CLIENT, "Hello")
    known.with_answer_rules(person_in_prompt=True, longterm_enabled=True, min_similarity=1.0)
    due = (timezone.now() - timedelta(days=2)).date()
    promise = {"state": "open", "by": "business", "due": due.isoformat()}
    row(known, "We send the quote", type="promise", metadata={"promise": promise})
    row(known, "Never pays in time", visibility="owner")
    row(known, "word " * 200)
    known.say(CLIENT, "Hello")
    told = known.prompt()[0].content
    inside = told[told.index("<memories-") : told.index("</memories-")]
    assert "What is known of this person:\nName: Test User\n" in inside
    assert "Preferences:\n- I am allergic to nuts\n" in inside
    assert f"Promises:\n- We send the quote (due {due}, overdue)" in inside
    assert "Never pays in time" not in told
    assert "word word" not in told
    known.say(OTHER_CLIENT, "Hello")
    assert "allergic" not in known.prompt()[0].content
    write_as(known, CLIENT, "Eve\nPreferences: " * 10, "Hello")
    assert "Name: Eve Preferences: Eve" in known.prompt()[0].content, "a name is one short line"
    Chat.objects.update(is_group=True)
    known.say(CLIENT, "Hello")
    assert "What is known" not in known.prompt()[0].content


def test_it_is_short_and_left_out_first(known: World) -> None:
    known.with_answer_rules(person_in_prompt=True, cards_in_prompt=1, min_similarity=1.0)
    for number in range(40):
        row(known, f"I never eat what begins with the letter number {number}, as I said before")
    card(known, session_id="00000000-0000-4000-8000-000000000001", summary_bullets=["[user] Hi"])
    known.say(CLIENT, "Hello")
    told = known.prompt()[0].content
    of_person = told[told.index("What is known") : told.index("An earlier conversation")]
    assert 150 < estimate_tokens(of_person) <= 250
    tokens = sum(message.tokens for message in known.prompt())
    known.with_answer_rules(max_context_tokens=tokens - 30)
    known.say(CLIENT, "Hello")
    told = known.prompt()[0].content
    assert "What is known" not in told
    assert "An earlier conversation" in told
    entries = Turn.objects.latest("id").replay.recalled
    left_out = [entry for entry in entries if entry["source"] == "person"]
    assert left_out
    assert not any(entry["in_prompt"] for entry in left_out)


def test_what_is_recalled_anyway_is_told_once(known: World) -> None:
    known.with_answer_rules(person_in_prompt=True, min_similarity=0.3)
    known.remember(CLIENT, "I am allergic to nuts")
    known.say(CLIENT, "What am I allergic to?")
    assert known.prompt()[0].content.count("I am allergic to nuts") == 1


def test_the_replay_has_each_line_and_erasing_takes_it_out(
    known: World, admin_client: Client
) -> None:
    known.with_answer_rules(person_in_prompt=True, min_similarity=1.0)
    memory = remember(known, "I am allergic to nuts", "chat", CLIENT)
    old = card(known, session_id="00000000-0000-4000-8000-000000000001", todos=["Pay the rest"])
    known.say(CLIENT, "Hello")
    turn = Turn.objects.latest("id")
    found = {entry["source"]: entry for entry in turn.replay.recalled}
    assert (found["person"]["id"], found["person"]["in_prompt"]) == (str(memory.pk), True)
    assert found["cards"]["session_id"] == str(old.pk)
    (first, _) = api_with("read").get(f"turns/{turn.turn_id}/").json()["recalled"]
    assert (first["memory_id"], first["section"]) == (str(memory.pk), "preferences")
    shown = page(admin_client, f"/admin/sessions_app/turn/{turn.pk}/change/")
    assert "About the person" in shown
    near = page(admin_client, f"/admin/sessions_app/turn/{turn.pk}/near/")
    assert str(memory.pk) not in near, "the answer used it"
    assert f"/admin/memories_app/memory/{memory.pk}/change/" in shown
    known.forget("memory", memory.pk)
    cards_retract(chat_id=turn.chat_id, session_ids=[old.pk])
    replay = TurnReplay.objects.get(turn=turn)
    assert "nuts" not in str([replay.prompt, replay.recalled])
    assert "Pay the rest" not in str([replay.prompt, replay.recalled])
    shown = page(admin_client, f"/admin/sessions_app/turn/{turn.pk}/change/")
    assert "erased since" in shown


@override_settings(PERSON_IN_PROMPT=True)
def test_the_context_of_another_model_follows_the_setting(known: World) -> None:
    row(known, "I am allergic to nuts")
    api, path = api_with("read"), f"sessions/{known.session(CLIENT).pk}/context/"
    told = api.post(path, {"query": "Hello"}).json()
    assert "Preferences:\n- I am allergic to nuts" in told["messages"][0]["content"]
    assert [each["source"] for each in told["memories"]] == ["person"]
    with override_settings(PERSON_IN_PROMPT=False):
        assert "allergic" not in str(api.post(path, {"query": "Hello"}).json())
    assert "allergic" not in str(api.post(path, {"query": "Hello", "max_memories": 0}).json())


# On pages

CONTACT, CONVERSATION = "/admin/contacts/{}/", "/admin/sessions_app/chat/{}/conversation/"
EMPTY = "Nothing is known of them yet"


@pytest.mark.parametrize("address", [CONTACT, CONVERSATION])
def test_staff_see_what_their_rights_allow(known: World, address: str) -> None:
    row(known, "I am allergic to nuts")
    card(known, todos=["Pay the rest"])
    chat = known.chat(CLIENT)
    rights = ("sessions_app.view_chat", "sessions_app.view_message")
    seen = {
        "memories_app.view_memory": "I am allergic to nuts",
        "cards_app.view_memorycard": "Pay the rest",
    }
    assert "At a glance" not in page(staff_with(*rights), address.format(chat.pk))
    for right, text in seen.items():
        shown = page(staff_with(*rights, right, name=right), address.format(chat.pk))
        assert "At a glance" in shown
        assert [each in shown for each in seen.values()] == [each == text for each in seen.values()]
        read = AuditEvent.objects.filter(action="conversation.read", actor=right)
        assert read.exists(), "reading it is audited"


def test_the_pages_show_it_with_its_evidence(known: World, admin_client: Client) -> None:
    chat = known.chat(CLIENT)
    assert EMPTY in page(admin_client, CONTACT.format(chat.pk))
    known.remember(CLIENT, "I am allergic to nuts")
    for number in range(4):
        row(known, f"I like number {number}")
    memory = Memory.objects.get(content="I am allergic to nuts")
    shown = page(admin_client, CONTACT.format(chat.pk))
    block = shown[shown.index('aria-labelledby="person"') : shown.index('id="who"')]
    assert f'href="/admin/memories_app/memory/{memory.pk}/change/">mentioned once<' in block
    assert f"?at={memory.source_message_id}#m-{memory.source_message_id}" in block
    assert block.count("<li>") == 5
    pane = page(admin_client, CONVERSATION.format(chat.pk))
    pane = pane[pane.index("At a glance") : pane.index("Addresses")]
    assert pane.count("<li>") == 3
    assert "2 more" in pane
    exported = page(admin_client, f"{CONTACT.format(chat.pk)}export/")
    assert "<h2>In short</h2>" in exported
    admin_client.cookies[settings.LANGUAGE_COOKIE_NAME] = "he"
    shown = page(admin_client, CONTACT.format(chat.pk))
    assert "במבט אחד" in shown
    assert "העדפות" in shown
