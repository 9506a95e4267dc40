"""Opening hours: their form, questions that need no model, prompts, hand-overs and recall."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone as clock

from memories_app.models import Memory
from memoryproject.foundation.integrations.llm.base import OfflineChatModel
from sessions_app.hours import clock as times, day_spans, hours_of
from sessions_app.hours_answers import hours_answer
from sessions_app.inbox.needs import is_unknown
from sessions_app.models import AssistantProfile, ChatPause, Turn
from sessions_app.tasks import tell_hours
from tests.shown import words
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db

FORM = "/admin/sessions_app/openinghours/1/change/"
# A Sunday, 10:05 in Jerusalem.
NOW = datetime(2026, 11, 29, 8, 5, tzinfo=timezone.utc)
HOURS = {
    "sunday": "9:00-17:00",
    "tuesday": "9-12, 16-19:30",
    "wednesday": "20:00–2:00",
    "thursday": "24 hours",
    "friday": "9:00–13:00",
    "dates": "24/12/2026 closed Christmas Eve\n1.1.2027-3.1.2027: 10:00-12:00",
}

TWO_DAYS = "Friday, 4 December: 9:00–13:00\nToday (Sunday, 29 November): 9:00–17:00"


@pytest.fixture
def jerusalem(settings: Any) -> None:
    settings.BUSINESS_TIME_ZONE = "Asia/Jerusalem"


@pytest.mark.usefixtures("jerusalem")
@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("Are you open now?", "We are open now.\nToday (Sunday, 29 November): 9:00–17:00"),
        ("hi, are you still open?", "We are open now.\nToday (Sunday, 29 November): 9:00–17:00"),
        ("Are you open on Friday?", "Friday, 4 December: 9:00–13:00"),
        ("are you open tomorrow", "Tomorrow (Monday, 30 November): closed"),
        ("Are you open on 24 December?", "Thursday, 24 December: closed (Christmas Eve)"),
        ("Are you open on 24/12?", "Thursday, 24 December: closed (Christmas Eve)"),
        ("open on Jan 2nd?", "Saturday, 2 January 2027: 10:00–12:00"),
        ("until when are you open on wednesday?", "Wednesday, 2 December: 20:00–2:00"),
        ("עד מתי אתם פתוחים היום?", "היום (ראשון, 29 נובמבר): 9:00–17:00"),
        ("אתם פתוחים בשישי?", "שישי, 4 דצמבר: 9:00–13:00"),
        ("האם אתם פתוחים ב-24 בדצמבר?", "חמישי, 24 דצמבר: סגור (Christmas Eve)"),
        ("אתם פתוחים ביום ג'?", "שלישי, 1 דצמבר: 9:00–12:00, 16:00–19:30"),
        ("¿Están abiertos el viernes?", "Viernes, 4 diciembre: 9:00–13:00"),
        ("Até que horas vocês estão abertos na sexta?", "Sexta-feira, 4 Dezembro: 9:00–13:00"),
        ("Êtes-vous ouverts vendredi ?", "Vendredi, 4 décembre: 9:00–13:00"),
        ("Habt ihr am Freitag offen?", "Freitag, 4 Dezember: 9:00–13:00"),
        ("Siete aperti venerdì?", "Venerdì, 4 Dicembre: 9:00–13:00"),
        ("Вы работаете в пятницу?", "Пятница, 4 декабря: 9:00–13:00"),
        ("Ви працюєте у п'ятницю?", "П'ятниця, 4 грудня: 9:00–13:00"),
        ("Cuma günü açık mısınız?", "Cuma, 4 Aralık: 9:00–13:00"),
        ("Apakah kalian buka hari Jumat?", "Jumat, 4 Desember: 9:00–13:00"),
        ("هل أنتم مفتوحون يوم الجمعة؟", "الجمعة, 4 ديسمبر: 9:00–13:00"),
        ("क्या आप शुक्रवार को खुले हैं?", "शुक्रवार, 4 दिसमबर: 9:00–13:00"),
        ("Is the terrace open this morning?", None),
        ("are you open at 8?", None),
        ("are you open on the 24th?", "Thursday, 24 December: closed (Christmas Eve)"),
        ("do you have open positions?", None),
        ("why are you closed?", None),
        # All the time; and five days, of which two are named.
        ("Are you open 24/7?", None),
        ("are you open monday-friday?", None),
        ("are you open friday and sunday?", TWO_DAYS),
        ("are you open friday to sunday?", None),
        # A time, and dates.
        ("are you open on friday at 8.10?", "Friday, 4 December: 9:00–13:00"),
        ("are you open on 2.1?", "Saturday, 2 January 2027: 10:00–12:00"),
        ("are you open at 24.12?", "Thursday, 24 December: closed (Christmas Eve)"),
        # By the name that staff gave a day.
        ("open on christmas eve?", "Thursday, 24 December: closed (Christmas Eve)"),
        ("are you open the day after christmas eve?", None),
        # "Tomorrow", or "good morning".
        ("Morgen, habt ihr auf?", None),
        # Days by other names.
        ("open xmas?", "Friday, 25 December: 9:00–13:00"),
        ("xmas eve?", "Thursday, 24 December: closed (Christmas Eve)"),
        ("¿abren en nochebuena?", "Jueves, 24 diciembre: cerrado (Christmas Eve)"),
        ("habt ihr heiligabend offen", "Donnerstag, 24 Dezember: geschlossen (Christmas Eve)"),
        ("פתוח בערב חג המולד?", "חמישי, 24 דצמבר: סגור (Christmas Eve)"),
        ("are you open 5 Dezember?", "Saturday, 5 December: closed"),
        ("open viernes?", "Friday, 4 December: 9:00–13:00"),
        ("seid ihr am 24. geöffnet?", "Donnerstag, 24 Dezember: geschlossen (Christmas Eve)"),
        ("פתוחים במוצש?", "שבת, 5 דצמבר: סגור"),
        ("פתוח בחנוכה?", None),
        ("do you sell xmas trees?", None),
        ("merry xmas", None),
        ("what about sunday?", None),
    ],
)
def test_questions(question: str, told: str | None) -> None:
    hours = hours_of(AssistantProfile(hours=HOURS))
    assert hours is not None
    assert hours_answer(question, hours=hours, now=NOW, language="en") == told


@pytest.mark.parametrize(
    "text", ["Dana", "3", "?", "pizza", "24.12", "sunday", "¡Feliz Navidad!", "0501234567"]
)
@pytest.mark.parametrize("language", ["", "ja"])
def test_a_chat_without_a_known_language(text: str, language: str) -> None:
    hours = hours_of(AssistantProfile(hours=HOURS))
    assert hours is not None
    assert hours_answer(text, hours=hours, now=NOW, language=language) is None


@pytest.mark.usefixtures("jerusalem")
@pytest.mark.parametrize(
    ("at", "is_open", "opens"),
    [
        (datetime(2026, 11, 29, 15, 0), False, datetime(2026, 12, 1, 7, 0)),
        (datetime(2026, 12, 1, 11, 0), False, datetime(2026, 12, 1, 14, 0)),
        # After midnight it is still the day before.
        (datetime(2026, 12, 2, 23, 59), True, datetime(2026, 12, 4, 7, 0)),
        (datetime(2026, 12, 24, 9, 0), False, datetime(2026, 12, 25, 7, 0)),
    ],
)
def test_times(at: datetime, is_open: bool, opens: datetime) -> None:
    hours = hours_of(AssistantProfile(hours=HOURS))
    assert hours is not None
    at = at.replace(tzinfo=timezone.utc)
    assert hours.is_open(at) is is_open
    assert hours.opens_at(at) == opens.replace(tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("9-5", None),
        ("9:30 to 5:30", None),
        ("9-5pm", ["9:00–17:00"]),
        ("20-4", ["20:00–4:00"]),
        ("6am-2am", ["6:00–2:00"]),
    ],
)
def test_nine_to_five_is_no_night(text: str, told: list[str] | None) -> None:
    spans = day_spans(text)
    shown = [f"{times(span.start)}–{times(span.end)}" for span in spans or ()]
    assert shown == (told or [])
    assert (spans is None) is (told is None)


def test_a_holiday_of_weeks_is_one_line() -> None:
    august = "1/8/2027-31/8/2027 closed Holiday\n24/12/2027 closed"
    past = "\n".join(f"{day}/10/2025 closed" for day in range(1, 31))
    given = {"hours": {"dates": f"{past}\n{august}"}, "languages": "en"}
    AssistantProfile.objects.create(pk=1, **given)
    assert tell_hours() == 1
    assert Memory.objects.get().content.endswith(
        "Saturday: closed; Sunday, 1 August 2027 – Tuesday, 31 August 2027: closed (Holiday); "
        "Friday, 24 December 2027: closed"
    )


def test_without_any_hours_nothing_is_known() -> None:
    assert hours_of(AssistantProfile(hours={"away_text": "We are away"})) is None


def set_hours(**texts: str) -> None:
    AssistantProfile.objects.update_or_create(pk=1, defaults={"hours": texts})


def closed_today() -> dict[str, str]:
    """Open around the clock but today and yesterday."""
    today = clock.now().date()
    dates = f"{today - timedelta(days=1)} - {today} closed Holiday"
    return {**dict.fromkeys(HOURS, "24 hours"), "saturday": "24h", "monday": "24h", "dates": dates}


def test_no_model_is_needed(world: World) -> None:
    set_hours(**closed_today())
    world.use(chat_model=OfflineChatModel())
    (told,) = world.say(CLIENT, "Are you open now?")
    assert told.startswith("We are closed now.\nToday (")
    assert told.endswith(") at 0:00.")
    (told,) = world.say(CLIENT, "האם אתם פתוחים היום?")
    assert told.startswith("אנחנו סגורים עכשיו.\nהיום (")
    # They aren't among the questions without an answer.
    assert not Turn.objects.filter(is_unknown()).exists()


@pytest.mark.parametrize(
    "later",
    ["what about sunday?", "and friday?", "y el viernes?", "а в пятницу?", "ומה עם ראשון?", "xmas"],
)
def test_a_day_goes_on_asking(world: World, later: str) -> None:
    set_hours(**closed_today())
    world.use(chat_model=OfflineChatModel())
    (unknown,) = world.say(CLIENT, later)
    assert "0:00–24:00" not in unknown
    for text in ("are you open now?", "and monday?"):
        world.say(CLIENT, text)
    (told,) = world.say(CLIENT, later)
    assert told.endswith(": 0:00–24:00") or "Holiday" in told


@pytest.mark.parametrize(
    "text",
    ["do you have parking on sunday?", "how much is delivery on friday?", "do you deliver friday?"],
)
def test_questions_about_something_else_get_no_timetable(world: World, text: str) -> None:
    set_hours(**closed_today())
    tell_hours()
    world.use(chat_model=OfflineChatModel())
    (unknown,) = world.say(CLIENT, text)
    assert "24:00" not in unknown
    world.remember(CLIENT, "There is free parking behind the shop on Sunday, delivery on Friday")
    (known,) = world.say(CLIENT, text)
    assert "free parking" in known
    assert "24:00" not in known


def test_a_model_reads_them(world: World) -> None:
    set_hours(**closed_today())
    world.say(CLIENT, "Can I come by?")
    system = world.prompt()[0].content
    assert "Opening hours:\nWe are closed now.\nToday (" in system
    assert "Tomorrow (" in system


def test_a_hand_over_says_when_somebody_answers(world: World) -> None:
    set_hours(**closed_today())
    (told,) = world.say(CLIENT, "human please")
    assert "\nSomebody answers from 0:00 tomorrow (" in told
    ChatPause.objects.all().delete()
    set_hours(**{**closed_today(), "dates": ""})
    (told,) = world.say(CLIENT, "human please")
    assert "Somebody answers" not in told


def posted(**texts: str) -> dict[str, Any]:
    names = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
    return {**dict.fromkeys((*names, "dates", "away_text"), ""), **texts}


def test_whoever_may_only_read_sees_the_hours_in_hebrew(client: Client) -> None:
    AssistantProfile.objects.create(pk=1, hours={"sunday": "9:00-17:00"})
    reader = User.objects.create_user("reader", is_staff=True)
    reader.user_permissions.add(Permission.objects.get(codename="view_openinghours"))
    client.force_login(reader)
    client.post("/admin/language/", {"language": "he", "next": "/admin/"})
    shown = words(client.get(FORM))
    names = "ראשון 9:00-17:00 שני – שלישי – רביעי – חמישי – שישי – שבת –"
    for text in (names, "ימים אחרים –", "טקסט בזמן סגירה –"):
        assert text in shown
    assert "None" not in shown


def test_the_form(admin_client: Client) -> None:
    assert admin_client.get("/admin/sessions_app/openinghours/", follow=True).status_code == 200
    seen = admin_client.get(FORM).context["adminform"].form["seen"].value()
    for dates in ("24/12 closed", f"24/12/2026 closed {'x' * 200}"):
        refused = admin_client.post(FORM, posted(sunday="nine to five", dates=dates, seen=seen))
        assert {*refused.context["adminform"].form.errors} == {"sunday", "dates"}
    for first, second in (
        ("24/12/2026 closed", "24.12.2026 9-13"),
        ("24/12/2026-26/12/2026 closed", "25/12/2026 9-13"),
    ):
        dates = f"{first}\n{second}"
        refused = admin_client.post(FORM, posted(sunday="9-17", dates=dates, seen=seen))
        (told,) = refused.context["adminform"].form.errors["dates"]
        assert told.startswith("The date of this line has hours already: “2")
        assert second in told
    saved = admin_client.post(FORM, posted(**HOURS, seen=seen))
    assert saved.status_code == 302
    assert AssistantProfile.objects.get().hours == HOURS
    assert b"24 hours" in admin_client.get(FORM).content


def test_recall_finds_them() -> None:
    AssistantProfile.objects.update_or_create(pk=1, defaults={"hours": HOURS, "languages": "he"})
    assert tell_hours() == 2
    assert tell_hours() == 2
    english, hebrew = Memory.objects.order_by("key").values_list("content", flat=True)
    assert "Friday: 9:00–13:00" in english
    assert "שישי: 9:00–13:00" in hebrew
    # What is over leaves the places to what comes.
    today = clock.localdate()
    over = "".join(f"{today - timedelta(days=n)} closed\n" for n in range(1, 30))
    set_hours(**{**HOURS, "dates": f"{over}{today + timedelta(days=9)} closed Eve"})
    assert tell_hours() == 2
    assert "closed (Eve)" in Memory.objects.get(status="active", key__endswith="en").content
    set_hours()
    assert tell_hours() == 0
    assert not Memory.objects.filter(status="active").exists()
