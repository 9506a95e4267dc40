"""Exports of other products, moved in by the command: files as those products write them."""

from __future__ import annotations

import html
import json
import re
import zipfile
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import OperationalError
from django.test import Client

from memories_app.models import Memory
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.inbound.facade import old_thread_take
from sessions_app.models import Chat, MediaFile, Message, Turn
from sessions_app.moving import store_records
from tests.shown import found_in, words_of
from tests.threads import begin
from tests.world import CLIENT, OTHER_CLIENT, World

pytestmark = pytest.mark.django_db
SAMPLES = Path(__file__).parent / "samples"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4


@pytest.fixture(autouse=True)
def memory_on(settings: Any, tmp_path: Path) -> None:
    settings.ENABLE_MEMORY_SYSTEM = True
    settings.DATA_DIR = tmp_path / "data"
    settings.BUSINESS_TIME_ZONE = "Asia/Jerusalem"


def moved(kind: str, path: Path, *options: str, fails: bool = False) -> dict[str, Any]:
    """The report of the command; ``fails``: it ends with 1."""
    out = StringIO()
    command = ("import_from", kind, str(path), "--no-vectors", "--json", *options)
    if fails:
        with pytest.raises(CommandError):
            call_command(*command, stdout=out, stderr=StringIO())
    else:
        call_command(*command, stdout=out, stderr=StringIO())
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def refused(kind: str, path: Path, *options: str) -> str:
    with pytest.raises(CommandError) as error:
        call_command("import_from", kind, str(path), *options, stdout=StringIO())
    return str(error.value)


def said(chat: str = CLIENT) -> list[tuple[str, str]]:
    rows = Message.objects.filter(chat__whatsapp_chat=chat).order_by(
        "session__created_at", "order_num"
    )
    return list(rows.values_list("role", "content"))


ANDROID = """12/31/25, 9:05 PM - Messages and calls are end-to-end encrypted. Tap to learn more.
12/31/25, 9:05\u202fPM - Dana: Do you deliver on Friday?
12/31/25, 9:06 PM - Bakery: Yes: until noon.
Shall I note it?

1/2/26, 8:00 AM - Dana: <Media omitted>
1/2/26, 8:01 AM - Dana: \u200eIMG-20260102-WA0001.jpg (file attached)
Like this one
1/2/26, 8:02 AM - Dana: This message was deleted
1/2/26, 8:03 AM - Bakery: Lovely <This message was edited>
1/2/26, 8:03 AM - Dana: ok
1/2/26, 8:03 AM - Dana: ok
"""


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_chat_of_whatsapp_comes_in_once_without_an_answer(tmp_path: Path) -> None:
    path = write(tmp_path, "WhatsApp Chat with Dana.txt", ANDROID)
    preview = moved("whatsapp", path, "--chat", CLIENT, "--preview")
    assert (preview["messages"], preview["skipped"], preview["bad"]) == (7, 2, 0)
    assert preview["chats"] == [{"whatsapp_chat": CLIENT, "messages": 7}]
    assert preview["first"][0]["text"] == "Do you deliver on Friday?"
    out = StringIO()
    call_command("import_from", "whatsapp", str(path), "--chat", CLIENT, "--preview", stdout=out)
    ours = "line 3, 2025-12-31T19:06:00+00:00, Bakery (the business): Yes: until noon."
    assert ours in out.getvalue()
    assert not Chat.objects.exists()
    assert moved("whatsapp", path, "--chat", "\u2066+1 555-010-0123\u2069")["messages"] == 7
    assert said() == [
        ("user", "Do you deliver on Friday?"),
        ("assistant", "Yes: until noon.\nShall I note it?"),
        ("user", ""),
        ("user", "Like this one"),
        ("assistant", "Lovely"),
        ("user", "ok"),
        ("user", "ok"),
    ]
    first = Message.objects.get(content="Do you deliver on Friday?")
    assert first.timestamp.isoformat() == "2025-12-31T19:05:00+00:00"
    again = moved("whatsapp", path, "--chat", CLIENT)
    assert (again["messages"], again["there"]) == (0, 7)
    write(tmp_path, path.name, ANDROID + "1/2/26, 8:03 AM - Dana: ok\n")
    assert moved("whatsapp", path, "--chat", CLIENT)["messages"] == 1
    assert not Turn.objects.filter(reply__isnull=False).exists()
    assert Chat.objects.get().client_name == "Dana"
    assert AuditEvent.objects.filter(action="move.in").count() == 3


def test_times_are_those_of_the_business(
    tmp_path: Path, settings: Any, admin_client: Client
) -> None:
    path = write(tmp_path, "WhatsApp Chat with Dana.txt", ANDROID)
    for zone, at in (("Asia/Jerusalem", "19:05"), ("America/New_York", "02:05"), ("UTC", "21:05")):
        settings.BUSINESS_TIME_ZONE = zone
        shown = moved("whatsapp", path, "--chat", CLIENT, "--preview")["first"][0]["at"]
        assert shown[11:16] == at, zone
    # What came in under another zone is corrected by the same file, and isn't doubled.
    assert moved("whatsapp", path, "--chat", CLIENT)["messages"] == 7
    settings.BUSINESS_TIME_ZONE = "Asia/Jerusalem"
    again = moved("whatsapp", path, "--chat", CLIENT)
    assert (again["messages"], again["there"]) == (0, 7)
    first = Message.objects.get(content="Do you deliver on Friday?")
    assert first.timestamp.isoformat() == "2025-12-31T19:05:00+00:00"
    fields = {
        "kind": "whatsapp",
        "whatsapp_chat": OTHER_CLIENT,
        "business": "Bakery",
        "do": "store",
    }
    file = SimpleUploadedFile(path.name, ANDROID.encode())
    admin_client.post("/admin/moving/", {**fields, "file": file})
    times = Message.objects.filter(chat__whatsapp_chat=OTHER_CLIENT).values_list(
        "timestamp", flat=True
    )
    assert min(times).isoformat() == "2025-12-31T19:05:00+00:00"


def test_an_hour_that_clocks_show_twice_keeps_its_order(tmp_path: Path) -> None:
    clocks = ("01:50", "01:10", "01:40", "02:05")
    lines = [f"26/10/2025, {at} - Dana: {number}" for number, at in enumerate(clocks)]
    path = write(tmp_path, "WhatsApp Chat with Dana.txt", "\n".join(lines))
    moved("whatsapp", path, "--chat", CLIENT, "--business", "Bakery")
    times = Message.objects.order_by("content").values_list("timestamp", flat=True)
    # Jerusalem's clocks went back at 02:00, at 23:00 UTC.
    assert [f"{at:%H:%M}" for at in times] == ["22:50", "23:10", "23:40", "00:05"]


# By the phone: the first two lines of a chat, the second of which is ours, and the first one's
# time; and how each language tells of files.
PHONES = json.loads((SAMPLES / "phones.json").read_text(encoding="utf-8"))
FORMS, MEDIA = PHONES["forms"], PHONES["media"]


@pytest.mark.parametrize("form", FORMS)
def test_every_phone_writes_its_own_form(form: str, tmp_path: Path) -> None:
    text, at = FORMS[form]
    report = moved(
        "whatsapp", write(tmp_path, "_chat.txt", text), "--chat", CLIENT, "--business", "bakery"
    )
    assert report["bad"] == 0
    assert said()[:2] == [("user", "hello"), ("assistant", "fine")]
    assert Message.objects.get(content="hello").timestamp.isoformat() == f"{at}+00:00"


@pytest.mark.parametrize("language", MEDIA)
def test_files_are_told_in_every_language(language: str, tmp_path: Path) -> None:
    left_out, android, iphone, iphone_left_out = MEDIA[language]
    lines = [
        f"[1/2/26, 8:0{n}:00] Dana: {text}"
        for n, text in enumerate(
            (
                left_out,
                f"\u200e{android}\nSee",
                f"\u200e{iphone}",
                iphone_left_out,
                "<b>no file</b> here",
            )
        )
    ]
    path = write(tmp_path, "_chat.txt", "\n".join([*lines, "[1/2/26, 8:09:00] Bakery: nice"]))
    moved("whatsapp", path, "--chat", CLIENT, "--business", "Bakery")
    kinds = list(Message.objects.order_by("timestamp").values_list("kind", "content"))
    assert kinds == [
        ("unsupported", ""),
        ("image", "See"),
        ("image", ""),
        ("image", ""),
        ("text", "<b>no file</b> here"),
        ("text", "nice"),
    ]


def zipped(folder: Path, name: str, **files: bytes) -> Path:
    path = folder / name
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, content in files.items():
            archive.writestr(file, content)
    return path


def test_files_of_a_zip_come_in_and_go_on_where_they_were_left(
    tmp_path: Path, settings: Any
) -> None:
    text = (
        "[1/2/26, 8:00:00] +1 555\u2011010\u20110123: \u200e<attached: 01-PHOTO.png>\n"
        "[1/2/26, 8:01:00] +1 555\u2011010\u20110123: \u200e<attached: 02-DOC.exe>\n"
        "[1/2/26, 8:01:30] +1 555\u2011010\u20110123: a.txt is not a chat\n"
        "[1/2/26, 8:02:00] Bakery: got it\n"
    )
    files = {"01-PHOTO.png": PNG, "02-DOC.exe": b"MZ", "a.txt": b"of mine", "../up.png": PNG}
    path = zipped(tmp_path, "WhatsApp Chat - Dana.zip", **{"_chat.txt": text.encode(), **files})
    settings.MEDIA_RETENTION_DAYS = 0
    assert moved("whatsapp", path)["files"] == 0
    settings.MEDIA_RETENTION_DAYS = 365
    assert moved("whatsapp", path, "--preview")["files"] == 2
    assert not MediaFile.objects.exists()
    report = moved("whatsapp", path)
    assert (report["messages"], report["there"], report["files"]) == (0, 4, 1)
    assert [one["place"] for one in report["notes"]] == ["line 2"]
    assert moved("whatsapp", path)["files"] == 0
    kept = MediaFile.objects.get(state="stored")
    assert kept.message is not None
    assert kept.message.chat.whatsapp_chat == CLIENT
    assert kept.content_type == "image/png"


def test_a_group_has_its_authors(tmp_path: Path) -> None:
    group = "120363000000000001@g.us"
    text = (
        "1/2/26, 8:00 - Dana created group “Team: cakes”\n1/2/26, 8:00 - Dana: one\n"
        "1/2/26, 8:01 - +1 555-010-0456: two\n1/2/26, 8:02 - Bakery: three\n"
    )
    path = write(tmp_path, "WhatsApp Chat with Team.txt", text)
    assert "Dana, +1 555-010-0456, Bakery" in refused("whatsapp", path, "--chat", group)
    assert "--chat" in refused("whatsapp", path, "--business", "Bakery")
    assert "Dana" in refused("whatsapp", path, "--business", "Nobody", "--chat", group)
    moved("whatsapp", path, "--business", "Bakery", "--chat", group)
    assert said(group) == [("user", "one"), ("user", "two"), ("assistant", "three")]
    chat = Chat.objects.get()
    assert chat.is_group
    authors = Message.objects.order_by("order_num").values_list("metadata__sender_name", flat=True)
    assert list(authors) == ["Dana", "+1 555-010-0456", "Bakery"]


def test_what_is_stored_already_by_a_webhook_is_not_doubled(tmp_path: Path, world: World) -> None:
    world.say(CLIENT, "from today")
    live = Message.objects.get(content="from today")
    at = live.timestamp.astimezone(ZoneInfo("Asia/Jerusalem"))
    text = f"{at:%d/%m/%Y, %H:%M} - Dana: from today\n{at:%d/%m/%Y, %H:%M} - Bakery: new\n"
    path = write(tmp_path, "WhatsApp Chat with Dana.txt", text)
    report = moved("whatsapp", path, "--chat", CLIENT)
    assert (report["messages"], report["there"]) == (1, 1)


def test_what_came_by_a_webhook_and_was_forgotten_stays_so(tmp_path: Path, world: World) -> None:
    world.say(CLIENT, "My secret is 12")
    live = Message.objects.get(content="My secret is 12")
    at = live.timestamp.astimezone(ZoneInfo("Asia/Jerusalem"))
    text = f"{at:%d/%m/%Y, %H:%M} - Dana: My secret is 12\n{at:%d/%m/%Y, %H:%M} - Bakery: new\n"
    path = write(tmp_path, "WhatsApp Chat with Dana.txt", text)
    world.forget("message", live.pk)
    assert moved("whatsapp", path, "--chat", CLIENT)["messages"] == 1
    world.forget("chat", world.chat(CLIENT).pk)
    write(tmp_path, path.name, text.replace("new", "other"))
    assert moved("whatsapp", path, "--chat", CLIENT)["messages"] == 0
    assert not Chat.objects.exists()


def test_forgotten_messages_stay_forgotten(tmp_path: Path, world: World) -> None:
    path = write(tmp_path, "WhatsApp Chat with Dana.txt", ANDROID)
    moved("whatsapp", path, "--chat", CLIENT)
    world.forget("message", Message.objects.get(content="Like this one").pk)
    report = moved("whatsapp", path, "--chat", CLIENT)
    assert (report["messages"], report["there"]) == (0, 6)
    assert {"place": "line 7", "why": "it was forgotten here", "bad": False} in report["notes"]
    world.forget("chat", world.chat(CLIENT).pk)
    assert moved("whatsapp", path, "--chat", CLIENT)["messages"] == 0


def test_where_memory_is_off_nothing_comes_in(tmp_path: Path, world: World) -> None:
    path = write(tmp_path, "WhatsApp Chat with Dana.txt", ANDROID)
    world.say(CLIENT, "hello")
    Chat.objects.update(memory_enabled=False)
    report = moved("whatsapp", path, "--chat", CLIENT)
    assert (report["messages"], report["skipped"]) == (0, 9)


NAMED = ("--business", "helper")
# By its kind: messages, memories, what is left out, and the chats.
COUNTS: dict[str, tuple[int, int, int, set[str | None]]] = {
    "mem0": (0, 3, 1, {CLIENT, "alex@external", None}),
    "zep": (2, 2, 2, {"alex@external"}),
    "honcho": (3, 4, 0, {"alice@external"}),
    "langgraph": (0, 2, 0, {None}),
    "chatwoot": (4, 0, 2, {CLIENT}),
}


@pytest.mark.parametrize("kind", COUNTS)
def test_exports_of_other_products(kind: str, tmp_path: Path) -> None:
    messages, memories, skipped, chats = COUNTS[kind]
    path = SAMPLES / f"{kind}.json"
    options = NAMED if kind == "honcho" else ()
    preview = moved(kind, path, *options, "--preview")
    assert not Chat.objects.exists()
    assert not Memory.objects.exists()
    report = moved(kind, path, *options)
    for each in (preview, report):
        assert (each["messages"], each["memories"]) == (messages, memories), each
        assert (each["skipped"], each["bad"]) == (skipped, 0), each
        assert {chat["whatsapp_chat"] for chat in each["chats"]} == chats
    again = moved(kind, path, *options)
    assert (again["messages"], again["memories"]) == (0, 0)
    assert again["there"] == messages + memories
    # As lines of JSON in a Zip, and under another product's name.
    (whole,) = [json.loads(path.read_text())]
    many = "\n".join(json.dumps(each) for each in (whole if isinstance(whole, list) else [whole]))
    lines = zipped(tmp_path, "export.zip", **{"all.ndjson": many.encode()})
    assert moved(kind, lines, *options)["there"] == messages + memories
    other = next(each for each in COUNTS if each != kind)
    assert f"use the kind {kind}" in refused(other, path)


def test_what_products_say_of_a_memory_stays(tmp_path: Path) -> None:
    for kind in ("mem0", "zep", "langgraph"):
        moved(kind, SAMPLES / f"{kind}.json")
    vegan = Memory.objects.get(content="Is vegan and likes oat milk")
    assert vegan.tags == ["food"]
    assert vegan.metadata["mem0"] == {"user_id": "alex"}
    assert vegan.created_at.isoformat() == "2026-03-01T09:00:00+00:00"
    moved_away = Memory.objects.get(content="Alex lives in Haifa")
    assert moved_away.valid_until
    assert moved_away.valid_until.isoformat().startswith("2026-02-01")
    theme = Memory.objects.get(content__contains="dark")
    assert theme.metadata["langgraph"]["namespace"] == ["users", "42"]
    assert theme.metadata["langgraph"]["key"] == "theme"
    assert (theme.visibility, vegan.visibility) == ("owner", "chat")


def test_forgotten_memories_are_not_learned_again(world: World) -> None:
    moved("mem0", SAMPLES / "mem0.json")
    world.forget("memory", Memory.objects.get(content="Is vegan and likes oat milk").pk)
    report = moved("mem0", SAMPLES / "mem0.json")
    assert (report["memories"], report["there"]) == (0, 2)
    assert "it was forgotten here" in [one["why"] for one in report["notes"]]


def test_what_agents_and_bots_wrote_is_told_apart() -> None:
    moved("chatwoot", SAMPLES / "chatwoot.json")
    rows = Message.objects.filter(role="assistant").order_by("timestamp")
    assert [row.metadata.get("by_hand", False) for row in rows] == [True, False]
    assert not any("by_phone" in row.metadata for row in rows)
    assert "Refund him" not in {row.content for row in Message.objects.all()}


BAD = '{"memory": "One", "user_id": "a"}\n{"memory": \n{"memory": ""}\n{"memory": "Two"}\n'


def test_lines_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    path = write(tmp_path, "mem0.jsonl", BAD)
    refused = moved("mem0", path, "--all-or-nothing", fails=True)
    assert refused["refused"]
    assert not Memory.objects.exists()
    report = moved("mem0", path, fails=True)
    assert (report["memories"], report["bad"]) == (2, 2)
    assert [one["place"] for one in report["notes"]] == ["line 2", "line 3"]


ODD = [
    {"id": "1", "memory": "Likes tea", "user_id": "+15554009999"},
    {"id": "2", "user_id": "+15554009999"},
    {"id": "3", "memory": "", "user_id": "x"},
    {"id": "4", "memory": "Owns a dog", "user_id": "+12", "created_at": "yesterday"},
]


def test_nothing_is_left_out_or_changed_without_a_word(tmp_path: Path) -> None:
    path = write(tmp_path, "mem0.json", json.dumps({"results": ODD}))
    report = moved("mem0", path, fails=True)
    assert (report["memories"], report["bad"], report["skipped"]) == (2, 2, 0)
    told = {one["place"]: one["why"] for one in report["notes"]}
    assert told == {
        "results[2]": "it lacks what the others of its list have",
        "results[3]": "it has no text",
        "results[4]": "it comes in without a time of its own: yesterday is none that can be read",
    }
    chats = {each["whatsapp_chat"] for each in report["chats"]}
    assert [each.partition("@")[2] for each in sorted(chats)] == ["c.us", "external"]
    assert "12 is no number" in refused("mem0", path, "--chat", "12")


SPELLINGS = (
    "+972501234567",
    "972501234567",
    "00972501234567",
    "0501234567",
    "972 50-123-4567",
    "+972 (0)50-123-4567",
    "whatsapp:+972501234567",
    "972501234567@c.us",
    "972501234567@s.whatsapp.net",
    "972501234567:12@S.WhatsApp.net",
    "\u202a+972\u00a050\u2011123\u20114567\u202c",
)
# Each writes a person as the product does: a memory, or a message of them.
WITH_PERSON: dict[str, Callable[[str, int], dict[str, Any]]] = {
    "mem0": lambda who, n: {"id": str(n), "memory": f"Fact {n}", "user_id": who},
    "zep": lambda who, n: {"fact": f"Fact {n}", "uuid": str(n), "user_id": who},
    "honcho": lambda who, n: {"id": str(n), "content": f"Fact {n}", "observed_id": who},
    "chatwoot": lambda who, n: {
        **{"id": n, "message_type": 0, "content": f"Fact {n}", "created_at": 1_764_000_000 + n},
        "sender": {"type": "contact", "name": "Dana", "phone_number": who},
        "conversation_id": n,
    },
}


@pytest.mark.parametrize("kind", WITH_PERSON)
def test_a_person_is_one_however_their_number_is_written(
    kind: str, tmp_path: Path, settings: Any
) -> None:
    settings.GODFATHER_PHONE = frozenset({"972550000000@c.us"})
    rows = [WITH_PERSON[kind](who, number) for number, who in enumerate(SPELLINGS)]
    report = moved(kind, write(tmp_path, "export.json", json.dumps(rows)))
    assert {one["whatsapp_chat"] for one in report["chats"]} == {"972501234567@c.us"}
    assert report["memories"] + report["messages"] == len(SPELLINGS)


OTHERS = {
    # Ids that are no numbers: of a table, of Telegram and Facebook, a time, a name with a number.
    **dict.fromkeys(("1234567", "6581234567", "100012345678901", "u-972501234567"), "external"),
    "1764400000000": "external",
    "123456789012345@lid": "lid",
    "0": "external",
}


def test_other_ids_are_no_numbers(tmp_path: Path, settings: Any) -> None:
    settings.GODFATHER_PHONE = frozenset()
    others = {**OTHERS, "0501234567": "external"}
    rows = [WITH_PERSON["mem0"](who, number) for number, who in enumerate(others)]
    report = moved("mem0", write(tmp_path, "export.json", json.dumps(rows)))
    found = {one["whatsapp_chat"].partition("@")[::2] for one in report["chats"]}
    assert found == {(who.partition("@")[0], domain) for who, domain in others.items()}


@pytest.mark.parametrize("typed", SPELLINGS)
def test_the_chat_is_given_in_any_spelling(typed: str, tmp_path: Path, settings: Any) -> None:
    settings.GODFATHER_PHONE = frozenset({"972550000000@c.us"})
    path = write(tmp_path, "export.json", json.dumps([{"memory": "Likes tea", "user_id": "x"}]))
    (chat,) = moved("mem0", path, f"--chat={typed}")["chats"]
    assert chat["whatsapp_chat"] == "972501234567@c.us"


def test_the_page_says_all_of_it_in_the_readers_language(admin_client: Client) -> None:
    admin_client.cookies["django_language"] = "he"

    def sent(content: str, **fields: str) -> str:
        file = SimpleUploadedFile("export.jsonl", content.encode())
        form = {"kind": "mem0", "do": "preview", "file": file, **fields}
        shown = html.unescape(admin_client.post("/admin/moving/", form).content.decode())
        report = found_in(
            r"(?:<h2 id=\"report-title\".*?)?(?=<form class=\"plain card import\")", shown
        )
        return words_of(report) + words_of(" ".join(ERRORS.findall(shown)))

    lines = [json.dumps(one) for one in ODD]
    for shown in (
        sent("no json\n"),
        sent("\n".join([*lines, "{"])),
        sent("\n".join(lines), whatsapp_chat="12"),
        sent(json.dumps({"memory": "5 " * 10_000})),
        sent(lines[0], kind="zep"),
        sent(lines[0], kind="archive"),
    ):
        english = set(re.findall(r"[A-Za-z]{3,}", shown)) - NAMES
        assert not english, shown
    assert "אין בו" in sent("no json\n")


# Names, and what the file has.
NAMES = {"mem", "JSON", "Zep", "zep", "archive", "export", "jsonl", "Likes", "tea", "Owns", "dog"}
NAMES |= {"yesterday", "external", "results", "content"}
ERRORS = re.compile(r'<ul class="errorlist.*?</ul>', re.DOTALL)


@pytest.mark.parametrize(
    ("kind", "name", "text", "told"),
    [
        ("mem0", "a.json", "{", "1 could not be read"),
        ("zep", "a.json", "{}", "Nothing in a.json"),
        ("zep", "a.json", "{", "1 could not be read"),
        ("chatwoot", "report.csv", "Agent,Conversations\nDana,4\n", "figures only"),
        ("honcho", "a.json", '[{"content": "x", "peer_id": "p", "session_id": "s"}]', "--business"),
        ("mem0", "_chat.txt", "1/2/26, 8:00 - Dana: one\n", "use the kind whatsapp"),
        ("whatsapp", "a.txt", "no chat", "Nothing in a.txt is of the kind whatsapp."),
        ("whatsapp", "a.txt", "", "Nothing in a.txt is of the kind whatsapp."),
        ("zep", "missing.json", None, "isn't there"),
        ("zep", "bin.json", "\ud800", "isn't text in UTF-8"),
    ],
)
def test_what_cannot_come_in_is_told(
    kind: str, name: str, text: str | None, told: str, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / name).write_bytes(text.encode(errors="surrogatepass"))
    message = refused(kind, tmp_path / name)
    assert message.endswith(told) if told.endswith(".") else told in message


def test_a_bomb_and_a_locked_zip_are_refused(tmp_path: Path) -> None:
    bomb = zipped(tmp_path, "bomb.zip", **{"a.json": b"[" + b" " * (80 * 1024 * 1024) + b"]"})
    assert "too large" in refused("zep", bomb)
    (tmp_path / "no.zip").write_bytes(b"PK\x03\x04 broken")
    assert "no.zip" in refused("zep", tmp_path / "no.zip")


def test_a_run_that_broke_off_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "{:02}/01/2026, 08:00 - {}: number {}\n"
    many = [line.format(1 + n % 28, ("Dana", "Bakery")[n % 2], n) for n in range(700)]
    path = write(tmp_path, "WhatsApp Chat with Dana.txt", "".join(many))
    begun: list[int] = []

    def breaks_off(*args: Any) -> Any:
        begun.append(1)
        if len(begun) == 2:
            raise OperationalError("the connection is gone")
        return old_thread_take(*args)

    with monkeypatch.context() as changed:
        changed.setattr(store_records, "old_thread_take", breaks_off)
        assert "run it again" in refused("whatsapp", path, "--chat", CLIENT)
    assert Message.objects.count() == 500
    report = moved("whatsapp", path, "--chat", CLIENT)
    assert (report["messages"], report["there"]) == (200, 500)


@pytest.mark.django_db(transaction=True)
def test_two_runs_at_once_store_everything_once(tmp_path: Path) -> None:
    path = write(tmp_path, "WhatsApp Chat with Dana.txt", ANDROID)

    def move_both() -> None:
        moved("whatsapp", path, "--chat", CLIENT)
        moved("mem0", SAMPLES / "mem0.json")

    for each in [begin(move_both), begin(move_both)]:
        each.result()
    assert (len(said()), Memory.objects.count()) == (7, 3)


def test_the_page_names_its_fields_and_shows_times_and_the_business(admin_client: Client) -> None:
    text = "1/2/26, 8:00 - Dana: one\n1/2/26, 8:01 - Bakery: two\n1/2/26, 8:02 - Omar: three\n"

    def sent(**fields: str) -> str:
        file = SimpleUploadedFile("_chat.txt", text.encode())
        form = {"kind": "whatsapp", "do": "preview", "file": file, **fields}
        return html.unescape(admin_client.post("/admin/moving/", form).content.decode())

    shown = sent()
    assert "Say who the business is in it: Dana, Bakery, Omar" in shown
    assert "--business" not in shown
    assert "Say whose it is" in sent(business="Bakery")
    shown = sent(business="Bakery", whatsapp_chat="120363000000000000@g.us")
    assert "<bdi>Bakery</bdi> (the business)" in shown
    assert '<time datetime="2026-02-01T' in shown or '<time datetime="2026-01-02T' in shown
    admin_client.cookies["django_language"] = "he"
    assert "ציינו מי בו הוא העסק" in sent()
