"""What members of staff are told of: by browser push, e-mail, Telegram and webhook, each once."""

from __future__ import annotations

import base64
import json
import socketserver
import threading
import uuid
from collections.abc import Iterator
from datetime import datetime, time, timedelta, timezone
from typing import Any

import http_ece
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.contrib.auth.models import User
from django.test import Client
from django_q.models import OrmQ

from memories_app.facts.validation import NewMemory
from memories_app.models import Memory
from memories_app.store.remember import memories_remember
from memoryproject.foundation.audit.audit_events import SYSTEM, Actor
from memoryproject.foundation.integrations.loopback.httpd import Answer, Request
from memoryproject.foundation.staff_notices import Kind, notify
from memoryproject.staff_site.models import Notification, NotificationSettings, PushDevice
from memoryproject.staff_site.notification_delivery import notices_store, notifications_tend
from sessions_app.inbox.labels import chats_assign
from sessions_app.inbox.move_markers import chats_review
from sessions_app.models import Chat, ChatMark, CheckQuestion, Rule, Turn
from sessions_app.rules import tell
from sessions_app.turns.question_set import questions_check_store
from tests.doubles.hashing_embedder import HashingEmbedder
from tests.hooks.receiver import verified
from tests.loopback.httpd import FaultyServer
from tests.staff.people import person, told, type_password
from tests.threads import in_threads
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db

PAGE = "/admin/account/notifications/"
ASKS = "I want to talk to a human please"
NOON = datetime(2030, 5, 6, 12, tzinfo=timezone.utc)


class Outside(FaultyServer):
    """A push service, Telegram's Bot API, and a webhook of a person."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = Answer(201, {})

    def handle(self, request: Request) -> Answer:
        return self.answer

    def texts(self) -> list[str]:
        return [request.body["text"] for request in self.requests if request.body]


class MailServer(socketserver.ThreadingTCPServer):
    """Takes e-mails by SMTP (RFC 5321)."""

    def __init__(self) -> None:
        self.mails: list[str] = []
        super().__init__(("127.0.0.1", 0), _Mails)
        threading.Thread(target=self.serve_forever, args=(0.05,)).start()


class _Mails(socketserver.StreamRequestHandler):
    server: MailServer

    def say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())

    def handle(self) -> None:
        self.say("220 mail")
        while (line := self.rfile.readline()) and not line.upper().startswith(b"QUIT"):
            if line.upper().startswith(b"DATA"):
                self.say("354 go on")
                lines = iter(self.rfile.readline, b".\r\n")
                self.server.mails.append(b"".join(lines).decode())
            self.say("250 ok")
        self.say("221 bye")


class Browser:
    """The keys of a browser's subscription, by which it reads what is pushed."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint, self.auth = endpoint, b"sixteen bytes 16"
        self.key = ec.generate_private_key(ec.SECP256R1())
        point = self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        self.keys = {"p256dh": _base64(point), "auth": _base64(self.auth)}

    def turn_on(self, client: Client) -> None:
        client.post(PAGE, {"do": "subscribe", "endpoint": self.endpoint, **self.keys})

    def read(self, request: Request) -> dict[str, Any]:
        assert request.headers["content-encoding"] == "aes128gcm"
        token, key = request.headers["authorization"].removeprefix("vapid t=").split(", k=")
        point = base64.urlsafe_b64decode(key + "=")
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
        origin = self.endpoint.rpartition("/")[0]
        claims = jwt.decode(token, public, ["ES256"], audience=origin)
        assert claims["sub"].startswith(("mailto:", "https://"))
        plain = http_ece.decrypt(request.raw, private_key=self.key, auth_secret=self.auth)
        found: dict[str, Any] = json.loads(plain)
        return found


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


@pytest.fixture
def outside(settings: Any) -> Iterator[Outside]:
    settings.WEBHOOKS_PRIVATE_NETWORKS, settings.WEBHOOKS_ALLOW_HTTP = ["127.0.0.0/8"], True
    with Outside() as running:
        settings.TELEGRAM_API_URL, settings.TELEGRAM_BOT_TOKEN = running.url, "1:token"
        yield running


@pytest.fixture
def mail(settings: Any) -> Iterator[MailServer]:
    server = MailServer()
    settings.EMAIL_URL = "smtp://127.0.0.1"
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.server_address[1]
    settings.EMAIL_TIMEOUT = 10
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def dana() -> User:
    return person("dana", "Reviewer", email="dana@example.com")


@pytest.fixture
def staff(client: Client, dana: User) -> Client:
    type_password(client, "dana")
    return client


def choose(user: User, *wanted: str, **values: Any) -> NotificationSettings:
    values = {"time_zone": "UTC", **values, "wanted": list(wanted)}
    return NotificationSettings.objects.update_or_create(user=user, defaults=values)[0]


def tend(now: datetime | None = None) -> int:
    """What the workers do."""
    work()
    return notifications_tend(now or datetime.now(timezone.utc))


def work() -> None:
    """Do the jobs of ``notify``, without sending."""
    for job in OrmQ.objects.order_by("id"):
        if job.task["func"].endswith(".notify_staff"):
            notices_store(*job.task["args"])
            job.delete()


def later(**by: float) -> datetime:
    return datetime.now(timezone.utc) + timedelta(**by)


def form(**values: Any) -> dict[str, Any]:
    return {"rhythm": "0", "time_zone": "UTC", **values}


# What is told.


def test_who_asks_for_a_person_is_told_by_all_that_is_set_up(
    world: World, staff: Client, outside: Outside, mail: MailServer, settings: Any
) -> None:
    settings.BASE_URL = "https://memory.example.com/desk"
    browser = Browser(f"{outside.url}/push")
    browser.turn_on(staff)
    every = [f"asked:{each}" for each in ("push", "email", "telegram", "webhook")]
    hook = form(wanted=every, telegram_chat="12345", webhook_url=f"{outside.url}/mine")
    staff.post(PAGE, hook)
    secret = NotificationSettings.objects.get().webhook_secret
    world.say(CLIENT, ASKS)
    assert (tend(), tend()) == (4, 0), "each once"
    address = f"https://memory.example.com/desk/admin/sessions_app/chat/{world.chat(CLIENT).pk}/"
    by_path = {request.path: request for request in outside.requests}
    assert set(by_path) == {"/push", "/mine", "/bot1:token/sendMessage"}
    shown = browser.read(by_path["/push"])
    assert shown["title"] == "A client asked for a person"
    assert shown["body"] == ""
    assert shown["url"].startswith(address)
    event = verified(by_path["/mine"], secret)
    assert event["type"] == "staff.notification"
    for text in (
        event["data"]["text"],
        (by_path["/bot1:token/sendMessage"].body or {})["text"],
        mail.mails[0],
    ):
        assert "A client asked for a person" in text
        assert ASKS in text
    assert address in mail.mails[0].replace("=\n", "")
    assert "To: dana@example.com" in mail.mails[0]


def test_a_push_holds_words_only_where_the_operator_allows_it(
    world: World, staff: Client, outside: Outside, settings: Any
) -> None:
    settings.PUSH_SHOWS_TEXT = True
    browser = Browser(f"{outside.url}/push")
    browser.turn_on(staff)
    world.say(CLIENT, ASKS)
    tend()
    assert browser.read(outside.requests[0])["body"] == f"Test User: {ASKS}"


def test_who_may_not_see_texts_is_told_no_words(
    world: World, outside: Outside, mail: MailServer
) -> None:
    blind = person("omer", email="omer@example.com")
    blind.user_permissions.set([*_rights("view_chat")])
    auditor = person("audit", "Auditor", email="audit@example.com")
    choose(blind, "asked:email")
    choose(auditor, "asked:email")
    world.say(CLIENT, ASKS)
    assert tend() == 1
    (only,) = mail.mails
    assert "omer@example.com" in only
    assert "A client asked for a person" in only
    assert "Test User" not in only
    assert "human" not in only


def _rights(*names: str) -> Any:
    from django.contrib.auth.models import Permission  # noqa: PLC0415

    return Permission.objects.filter(codename__in=names, content_type__app_label="sessions_app")


def _fail(world: World) -> Turn:
    """A question whose answer could not be sent."""
    world.say(CLIENT, "When do you open?")
    turn = Turn.objects.latest("id")
    Turn.objects.filter(pk=turn.pk).update(state="failed", outcome="failed")
    notify(Kind.FAILED, [(turn.turn_id, turn.chat_id)])
    return turn


def _late(world: World) -> Turn:
    from tests.world import message_from  # noqa: PLC0415

    world.receive(message_from(CLIENT, "When do you open?"))
    Turn.objects.update(created_at=later(minutes=-15))
    return Turn.objects.get()


def _unknown(world: World) -> Turn:
    world.say(CLIENT, "When do you open on Sundays?")
    return Turn.objects.get()


def _asked(world: World) -> Turn:
    world.say(CLIENT, ASKS)
    return Turn.objects.get()


def _suggested(world: World) -> Memory:
    new = NewMemory(content="The cafe opens at 8", visibility="owner", proposed=True)
    return memories_remember(memories=[new], embedder=HashingEmbedder(), actor=SYSTEM)[0].memory


def _assigned(world: World) -> None:
    world.say(CLIENT, "Hello")
    dana = User.objects.get(username="dana")
    chats_assign(chat_ids=[world.chat(CLIENT).pk], assignee=dana, actor=Actor("staff", "omer"))


def _rule(world: World) -> None:
    world.say(CLIENT, "Hello")
    made = Rule.objects.create(name="VIP", when="message")
    tell(rule=made, chat_id=world.chat(CLIENT).pk, event_id=uuid.uuid4())


def _overdue(world: World) -> None:
    world.say(CLIENT, "Hello")
    ChatMark.objects.create(chat=world.chat(CLIENT), due_at=later(minutes=-1))


def _regression(world: World) -> None:
    CheckQuestion.objects.create(
        text="Is there parking?", expected="garage", state="passes", passed_at=NOON
    )
    for _night in range(2):
        questions_check_store(dependencies=world.dependencies, now=later())


EVENTS = {
    "due": (_rule, "A rule applies, or something is due", "Test User"),
    "overdue": (_overdue, "A rule applies, or something is due", "Test User"),
    "regression": (_regression, "A test of the answers failed", "/checkquestion/"),
    "asked": (_asked, "A client asked for a person", ASKS),
    "failed": (_fail, "An answer failed or is late", "When do you open?"),
    "late": (_late, "An answer failed or is late", "When do you open?"),
    "unknown": (_unknown, "know an answer", "on Sundays?"),
    "suggested": (_suggested, "A memory was suggested", "opens at 8"),
    "assigned": (_assigned, "A conversation was assigned to you", "Test User"),
}


@pytest.mark.parametrize("event", EVENTS)
def test_each_kind_is_told_to_who_wants_it(
    world: World, dana: User, outside: Outside, event: str
) -> None:
    happens, title, words = EVENTS[event]
    kind = {"late": "failed", "overdue": "due"}.get(event, event)
    choose(dana, f"{kind}:telegram", telegram_chat="1")
    other = "failed" if kind == "due" else "due"
    choose(person("other", "Reviewer"), f"{other}:telegram", telegram_chat="2")
    happens(world)
    tend()
    tend()
    (text,) = outside.texts()
    assert title in text
    assert words in text


def _reply(world: World) -> None:
    Turn.objects.create(
        chat=world.chat(CLIENT), by_hand=True, state="sent", provider="cloud", asked_at=later()
    )


def _review(world: World) -> None:
    by = User.objects.get(username="dana")
    chats_review(user=by, chat_ids=[world.chat(CLIENT).pk], actor=SYSTEM)


def _take_over(world: World) -> None:
    omer = person("omer", "Reviewer")
    chats_assign(chat_ids=[world.chat(CLIENT).pk], assignee=omer, actor=Actor("staff", "omer"))


def _lose_rights(world: World) -> None:
    User.objects.get(username="dana").groups.clear()


def _leave(world: World) -> None:
    User.objects.update(is_active=False)


def _change_mind(world: World) -> None:
    NotificationSettings.objects.update(wanted=[])


@pytest.mark.parametrize(
    "meanwhile", [_reply, _review, _take_over, _lose_rights, _leave, _change_mind]
)
@pytest.mark.parametrize("rhythm", [0, 24])
def test_nothing_is_told_of_what_is_dealt_with(
    world: World, dana: User, outside: Outside, mail: MailServer, rhythm: int, meanwhile: Any
) -> None:
    choose(dana, "asked:telegram", "asked:email", telegram_chat="1", rhythm=rhythm)
    world.say(CLIENT, ASKS)
    meanwhile(world)
    assert tend(later(days=2)) == 0
    assert not outside.requests
    assert not mail.mails
    assert not Notification.objects.exclude(due_at=None).exists()


def test_a_decided_memory_and_an_erased_chat_are_told_of_no_more(
    world: World, dana: User, outside: Outside
) -> None:
    choose(dana, "suggested:telegram", "asked:telegram", telegram_chat="1")
    Memory.objects.filter(pk=_suggested(world).pk).update(status="active")
    world.say(CLIENT, ASKS)
    world.forget("chat", world.chat(CLIENT).pk)
    assert tend() == 0
    assert not Notification.objects.exclude(chat=None).exists()


# When it is told.


@pytest.mark.parametrize(
    ("zone", "begin", "end", "at", "until"),
    [
        ("UTC", "22:00", "07:00", "23:00", "07:00"),
        ("UTC", "22:00", "07:00", "06:59", "07:00"),
        ("UTC", "22:00", "07:00", "07:00", ""),
        ("UTC", "13:00", "14:00", "13:30", "14:00"),
        ("Asia/Jerusalem", "22:00", "07:00", "20:00", "04:00"),
        ("America/New_York", "22:00", "07:00", "20:00", ""),
    ],
)
def test_nothing_is_told_in_quiet_hours(
    dana: User, outside: Outside, zone: str, begin: str, end: str, at: str, until: str
) -> None:
    quiet = {"quiet_from": time.fromisoformat(begin), "quiet_until": time.fromisoformat(end)}
    choose(dana, "due:telegram", telegram_chat="1", time_zone=zone, **quiet)
    notify(Kind.DUE, [("a", None), ("b", None)])
    work()
    Notification.objects.update(due_at=NOON - timedelta(days=9), created_at=NOON)
    now = datetime.combine(NOON.date(), time.fromisoformat(at), timezone.utc)
    assert tend(now) == (0 if until else 2)
    if until:
        assert {f"{row.due_at:%H:%M}" for row in Notification.objects.all()} == {until}
        assert tend(now + timedelta(hours=12)) == 2
        assert len(outside.requests) == 1, "together"


@pytest.mark.parametrize(("rhythm", "hours"), [(0, 0), (1, 1), (24, 24)])
def test_e_mails_come_in_the_rhythm_that_was_chosen(
    dana: User, mail: MailServer, rhythm: int, hours: int
) -> None:
    choose(dana, "due:email", rhythm=rhythm)
    for key in ("a", "b"):
        notify(Kind.DUE, [(key, None)])
    work()
    first = Notification.objects.order_by("due_at")[0].due_at
    assert first is not None
    assert first <= later(hours=hours)
    assert tend(first - timedelta(seconds=1)) == 0
    assert tend(later(hours=hours)) == 2
    assert len(mail.mails) == 1, "both in one"


# What fails.


@pytest.mark.parametrize(
    ("answer", "is_over", "wait"),
    [
        (Answer(429, {"ok": False, "parameters": {"retry_after": 600}}), False, 600),
        (Answer(500, {}), False, 5),
        (Answer(502, {}, content=b"<html>"), False, 5),
        (Answer(403, {"ok": False, "description": "Forbidden: bot was blocked"}), True, 0),
        (Answer(400, {"ok": False, "description": "Bad Request: chat not found"}), True, 0),
    ],
)
def test_telegram_is_tried_again_unless_it_refuses(
    dana: User, outside: Outside, answer: Answer, is_over: bool, wait: int
) -> None:
    choose(dana, "due:telegram", telegram_chat="1")
    notify(Kind.DUE, [("a", None)])
    work()
    outside.answer, now = answer, later()
    assert tend(now) == 0
    row = Notification.objects.get()
    assert "token" not in str(row.error)
    assert (row.due_at is None) == is_over
    if row.due_at:
        assert row.due_at - now >= timedelta(seconds=wait)
        outside.answer = Answer(200, {"ok": True})
        assert tend(row.due_at) == 1
    assert str(answer.status) in str(row.error)


def test_a_long_text_says_how_many_events_there_are(dana: User, outside: Outside) -> None:
    choose(dana, "due:telegram", telegram_chat="1")
    chat = Chat.objects.create(whatsapp_chat=CLIENT, client_name="🦓" * 200)
    ChatMark.objects.create(chat=chat, rule_name="VIP")
    notify(Kind.DUE, [(number, chat.pk) for number in range(30)])
    work()
    assert tend() == 30
    (text,) = outside.texts()
    assert text.startswith("30 events\n\n")
    assert 4000 * 2 - 4 < len(text.encode("utf-16-le")) <= 4096 * 2


@pytest.mark.parametrize(("status", "is_gone"), [(404, True), (410, True), (503, False)])
def test_a_dead_subscription_is_removed(
    world: World, staff: Client, outside: Outside, status: int, is_gone: bool
) -> None:
    Browser(f"{outside.url}/push").turn_on(staff)
    outside.answer = Answer(status, {}, {"Retry-After": "60"})
    world.say(CLIENT, ASKS)
    assert tend() == 0
    assert PushDevice.objects.exists() != is_gone
    assert Notification.objects.exclude(due_at=None).exists() != is_gone


@pytest.mark.django_db(transaction=True)
def test_two_workers_tell_it_once(dana: User, outside: Outside) -> None:
    choose(dana, "due:webhook", webhook_url=f"{outside.url}/", webhook_secret="whsec_" + "A" * 40)
    notify(Kind.DUE, [(number, None) for number in range(6)])
    notify(Kind.DUE, [("0", None)])
    work()
    now = later()
    assert sum(in_threads(lambda: tend(now), 3)) == 6
    assert len(outside.requests) == 6


# The page.


def test_the_page_says_what_is_missing_and_tests_each_channel(
    staff: Client, outside: Outside, mail: MailServer, settings: Any
) -> None:
    settings.EMAIL_URL = settings.TELEGRAM_BOT_TOKEN = ""
    shown = staff.get(PAGE).content.decode()
    assert "EMAIL_URL" in shown
    assert "TELEGRAM_BOT_TOKEN" in shown
    settings.EMAIL_URL, settings.TELEGRAM_BOT_TOKEN = "smtp://127.0.0.1", "1:token"
    mine = form(telegram_chat="5", webhook_url=f"{outside.url}/mine", wanted=["due:email"])
    tests = {"email": "sent", "telegram": "sent", "webhook": "sent", "push": "Push is on in no"}
    for channel, words in tests.items():
        page = staff.post(PAGE, {**mine, "do": f"test:{channel}"}, follow=True)
        assert words in " ".join(map(str, page.context["messages"])), channel
    outside.answer = Answer(401, {"description": "Unauthorized"})
    page = staff.post(PAGE, {**mine, "do": "test:telegram"}, follow=True)
    assert "Telegram answered 401: Unauthorized" in page.content.decode()
    assert NotificationSettings.objects.get().wanted == ["due:email"]
    assert told("user.notifications")


@pytest.mark.parametrize(
    "wrong",
    [
        {"webhook_url": "https://10.0.0.1/"},
        {"webhook_url": "https://localhost/"},
        {"quiet_from": "22:00"},
        {"quiet_from": "22:00", "quiet_until": "22:00"},
        {"time_zone": "Mars/Olympus"},
        {"wanted": ["asked:pigeon"]},
        {"rhythm": ""},
        {"telegram_chat": "abc"},
        {"telegram_chat": "+1 555"},
    ],
)
def test_what_can_not_be_is_refused(staff: Client, wrong: dict[str, Any]) -> None:
    assert staff.post(PAGE, form(**wrong)).context["form"].errors
    assert not NotificationSettings.objects.exists()


@pytest.mark.parametrize("endpoint", ["https://10.0.0.1/push", "http://push.example", "", "x" * 9])
def test_pushes_go_to_no_private_network(staff: Client, endpoint: str) -> None:
    Browser(endpoint).turn_on(staff)
    assert not PushDevice.objects.exists()


# The app.


@pytest.mark.parametrize("language", ["en", "he"])
def test_phones_install_the_pages_as_an_app(client: Client, language: str) -> None:
    headers = {"Accept-Language": language}
    answer = client.get("/admin/manifest.webmanifest", headers=headers)
    found = json.loads(answer.content)
    assert (found["lang"], found["dir"]) == (language, "rtl" if language == "he" else "ltr")
    assert found["start_url"].startswith(found["scope"])
    for icon in found["icons"]:
        served = client.get(icon["src"])
        assert served["Content-Type"] == "image/png"
        served.close()
    worker = client.get("/admin/worker.js", headers=headers)
    assert worker["Content-Type"].startswith("text/javascript")
    assert "sessionid" not in worker.cookies
