"""Staff forget from the admin: choose, see what would go, type, see what came of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from psycopg.errors import DiskFull

from memories_app.models import Memory
from memoryproject.foundation.admin_kit.staff_pages import late_page
from memoryproject.foundation.audit.audit_events import audit_key, pseudonyms_for
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.text.phone_numbers import number_shown
from sessions_app.forgetting.choose_pages import WORDS
from sessions_app.forgetting.runs import run_draft
from sessions_app.models import Chat, ForgetItem, ForgetReceipt, ForgetRun, Message
from sessions_app.tasks import run_forgetting
from tests.forgetting.pages import FACT, OTHER, RECEIPTS, RUNS, SEARCH, text
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World

pytestmark = pytest.mark.django_db

CHOSEN = "admin/sessions_app/forgetrun/chosen.html"
NASTY = '<script>alert(1)</script> \u202egnitirw\u200b\u2066 & "quotes" \'' + "x" * 2_000


@pytest.fixture
def staff(admin_client: Client) -> Client:
    return admin_client


def choose(staff: Client, page: str, *keys: Any) -> str:
    """Choose in a list; the address of what would go."""
    chosen = {"action": "forget_selected", "_selected_action": [str(key) for key in keys]}
    answer = staff.post(reverse(f"admin:{page}_changelist"), chosen)
    assert answer.status_code == 302, answer.content.decode()[:500]
    return str(answer["Location"])


def confirm(staff: Client, address: str, typed: str) -> Any:
    return staff.post(address.replace("/change/", "/confirm/"), {"typed": typed}, follow=True)


def work() -> None:
    """What the workers do."""
    for run in ForgetRun.objects.filter(state="waiting"):
        run_forgetting(str(run.pk))


@pytest.mark.parametrize(
    ("page", "key"),
    [
        ("memories_app_memory", lambda world: Memory.objects.get().pk),
        ("sessions_app_message", lambda world: Message.objects.earliest("order_num").pk),
        ("sessions_app_chatsession", lambda world: world.session(CLIENT).pk),
        ("sessions_app_chat", lambda world: world.chat(CLIENT).pk),
    ],
)
def test_from_a_list_to_the_receipt(
    world: World, staff: Client, page: str, key: Callable[[World], UUID]
) -> None:
    world.remember(CLIENT, FACT)
    world.say(CLIENT, "Hello")
    chosen = key(world)
    address = choose(staff, page, chosen)
    shown = text(staff.get(address))
    assert FACT in shown
    assert "Restoring is impossible" in shown
    assert "Nothing has been erased yet" in shown
    assert not ForgetReceipt.objects.exists()

    typed = CLIENT if page == "sessions_app_chat" else "FORGET"
    assert "Erasing" in text(confirm(staff, address, typed))
    work()

    receipt = ForgetReceipt.objects.get()
    assert (receipt.object_id, receipt.actor) == (chosen, "admin")
    done = text(staff.get(address))
    assert str(receipt.receipt_id) in done
    assert FACT not in done
    kept = text(staff.get(f"{RECEIPTS}{receipt.pk}/change/"))
    assert "Searched afterwards, not found." in kept
    assert receipt.content_hash in kept


@pytest.mark.parametrize(
    ("typed", "is_right"),
    [
        ("+1 555-010-0123", True),
        ("15550100123", True),
        ("\u2066+1 (555) 010-0123\u2069", True),
        # As people of the country write it.
        ("(555) 010-0123", True),
        ("0555-010-0123", True),
        ("٠٥٥٥٠١٠٠١٢٣", True),
        ("+1 555-010-0124", False),
        ("0555-010-0124", False),
        ("500-1234", False),
        ("0100123", False),
        ("FORGET", False),
        ("Test User", False),
    ],
)
def test_it_takes_the_number(world: World, staff: Client, typed: str, is_right: bool) -> None:
    world.say(CLIENT, "Hello")
    world.say(OTHER_CLIENT, "Hello")
    address = choose(staff, "sessions_app_chat", world.chat(CLIENT).pk)
    confirm(staff, address, typed)
    assert ForgetRun.objects.get().state == ("waiting" if is_right else "draft")


def test_several_and_all_of_a_list(world: World, staff: Client) -> None:
    world.remember(CLIENT, FACT)
    world.remember(GODFATHER, OTHER)
    keys = [memory.pk for memory in Memory.objects.all()]
    assert (
        ForgetRun.objects.get(pk=choose(staff, "memories_app_memory", *keys).split("/")[-3]).total
        == 2
    )
    post = {"action": "forget_selected", "_selected_action": str(keys[0]), "select_across": "1"}
    answer = staff.post(reverse("admin:memories_app_memory_changelist"), post)
    assert ForgetRun.objects.get(pk=answer["Location"].split("/")[-3]).total == 2


def test_what_somebody_else_forgot_meanwhile_is_told(world: World, staff: Client) -> None:
    world.remember(CLIENT, FACT)
    key = Memory.objects.get().pk
    Memory.objects.all().delete()
    post = {"action": "forget_selected", "_selected_action": str(key)}
    answer = staff.post(reverse("admin:memories_app_memory_changelist"), post, follow=True)
    assert "in the list any more" in text(answer)
    assert not ForgetRun.objects.exists()


def test_a_preview_that_was_read_is_found_by_each_person(world: World, staff: Client) -> None:
    world.remember(CLIENT, FACT)
    world.say(OTHER_CLIENT, "Hello")
    memory = Memory.objects.get()
    other = world.messages(OTHER_CLIENT)[0]
    run = run_draft(
        chosen=[("memory", memory.pk), ("message", other.pk), ("message", uuid4())],
        asked_by="admin",
    )
    text(staff.get(f"{RUNS}{run.pk}/change/"))
    read = AuditEvent.objects.filter(action="conversation.read", object_id=str(run.pk))
    people = [world.chat(whose).pk for whose in (CLIENT, OTHER_CLIENT)]
    names = pseudonyms_for(key=audit_key(), chat_ids=people)
    assert sorted(read.values_list("chat", flat=True)) == sorted(names.values())


class TestWhatTakesItsTime:
    """What was chosen is told before it is tried out."""

    def test_what_was_chosen_is_sent_first(self, world: World, staff: Client) -> None:
        world.remember(CLIENT, FACT)
        address = choose(staff, "sessions_app_chat", world.chat(CLIENT).pk)
        with CaptureQueriesContext(connection) as asked:
            parts = iter(staff.get(address))
            first = next(parts).decode()
            before = len(asked)
            rest = b"".join(parts).decode()
        for told in (
            "1 thing was chosen",
            "Nothing has been erased yet",
            number_shown(CLIENT),
            "Preparing the preview",
        ):
            assert told in first
        assert FACT not in first
        assert FACT in rest
        assert "Restoring is impossible" in rest
        assert rest.rstrip().endswith("</html>")
        assert before < 30 < len(asked)
        assert not ForgetReceipt.objects.exists()

    def test_the_late_part_speaks_the_readers_language(self, world: World, staff: Client) -> None:
        world.remember(CLIENT, FACT)
        address = choose(staff, "memories_app_memory", Memory.objects.get().pk)
        page = text(staff.get(address, headers={"accept-language": "he"}))
        assert "שחזור בלתי אפשרי" in page.partition('class="awaited"')[2]

    @pytest.mark.parametrize(
        ("error", "told"),
        [(ValueError("a secret"), "Something went wrong."), (DiskFull(), "The disk is full")],
    )
    def test_a_failing_part_leaves_the_page_whole(self, error: Exception, told: str) -> None:
        def fails() -> tuple[str, dict[str, Any]]:
            raise error

        request = RequestFactory().get("/admin/")
        shown = {"run": ForgetRun(total=1)}
        page = late_page(request, CHOSEN, shown, late=fails)
        first, late, _ = (part.decode() for part in page)
        assert "Preparing the preview" in first
        assert told in late
        assert 'role="alert"' in late
        assert "secret" not in late


@pytest.mark.parametrize("typed", ["", "yes", "FORGE", CLIENT, "\x00", "FORGET " * 200])
def test_something_else_typed_forgets_nothing(world: World, staff: Client, typed: str) -> None:
    world.remember(CLIENT, FACT)
    address = choose(staff, "memories_app_memory", Memory.objects.get().pk)
    answer = staff.post(address.replace("/change/", "/confirm/"), {"typed": typed})
    assert answer.status_code == 400
    page = text(answer)
    assert "othing is forgotten" in page or "errorlist" in page
    assert ForgetRun.objects.get().state == "draft"


@pytest.mark.parametrize("typed", [*WORDS.values(), "forget", " \u200fלשכוח\u200e "])
def test_the_word_counts_in_both_languages(world: World, staff: Client, typed: str) -> None:
    world.remember(CLIENT, FACT)
    address = choose(staff, "memories_app_memory", Memory.objects.get().pk)
    confirm(staff, address, typed)
    assert ForgetRun.objects.get().state == "waiting"


def test_texts_of_any_kind_are_shown_as_texts(world: World, staff: Client) -> None:
    world.say(CLIENT, NASTY)
    world.say(CLIENT, f"I said {NASTY}")
    message = Message.objects.earliest("order_num")
    shown = text(staff.get(choose(staff, "sessions_app_message", message.pk)))
    assert "<script>alert(1)" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    found = text(staff.post(SEARCH, {"words": "alert", "kinds": ["message"], "how": "words"}))
    assert "&lt;script&gt;" in found
    assert "<script>alert" not in found


def test_a_choice_is_its_makers_at_first(world: World, staff: Client, client: Client) -> None:
    world.remember(CLIENT, FACT)
    address = choose(staff, "memories_app_memory", Memory.objects.get().pk)
    client.force_login(User.objects.create_superuser("other"))
    assert client.get(address).status_code == 404
    assert confirm(client, address, "FORGET").status_code == 404
    confirm(staff, address, "FORGET")
    assert client.get(address).status_code == 200
    assert address.split("/")[-3] in text(client.get(RUNS))


def test_progress_is_told(world: World, staff: Client) -> None:
    world.remember(CLIENT, FACT)
    address = choose(staff, "memories_app_memory", Memory.objects.get().pk)
    confirm(staff, address, "FORGET")
    progress = address.replace("/change/", "/progress/")
    told = staff.get(progress).json()
    assert told == {"done": 0, "total": 1, "over": False, "text": "0 of 1"}
    assert '<meta http-equiv="refresh"' in text(staff.get(address))
    work()
    assert staff.get(progress).json()["over"] is True
    assert '<meta http-equiv="refresh"' not in text(staff.get(address))
    assert staff.post(progress).status_code == 405


def test_troubles_are_told_for_each_thing(staff: Client) -> None:
    run = ForgetRun.objects.create(
        asked_by="admin", state="done", total=2, done=2, failed=2, finished_at=timezone.now()
    )
    chat = Chat.objects.create(whatsapp_chat=CLIENT, provider="cloud")
    where = f"It is still told in message {uuid4()}."
    ForgetItem.objects.create(
        run=run, number=1, kind="memory", object_id=uuid4(), state="found", error=where
    )
    ForgetItem.objects.create(
        run=run, number=2, kind="chat", object_id=uuid4(), state="moved", moved_to=chat.pk
    )
    shown = text(staff.get(f"{RUNS}{run.pk}/change/"))
    assert "2 items were not erased" in shown
    assert where in shown
    assert f"{RUNS}person/{chat.pk}/" in shown


def test_a_long_run_is_shown_in_pages_by_as_many_queries(staff: Client) -> None:
    runs = []
    for count in (3, 60):
        run = ForgetRun.objects.create(asked_by="x", state="done", total=count, done=count)
        receipts = ForgetReceipt.objects.bulk_create(
            ForgetReceipt(kind="memory", object_id=uuid4(), content_hash="", probe="absent")
            for _ in range(count)
        )
        ForgetItem.objects.bulk_create(
            ForgetItem(
                run=run, number=n, kind="memory", object_id=uuid4(), state="forgotten", receipt=r
            )
            for n, r in enumerate(receipts, start=1)
        )
        runs.append(run)
    for address in (
        f"{RUNS}{{}}/change/",
        f"{RUNS}{{}}/receipts/",
        f"{RUNS}{{}}/text/",
        RUNS,
        RECEIPTS,
    ):
        counts = []
        for run in runs:
            staff.get(address.format(run.pk))
            with CaptureQueriesContext(connection) as queries:
                assert staff.get(address.format(run.pk)).status_code == 200
            counts.append(len(queries))
        assert counts[0] == counts[1], address


def test_a_person_is_exported_first(world: World, staff: Client) -> None:
    world.remember(CLIENT, FACT)
    world.say(CLIENT, NASTY)
    world.say(OTHER_CLIENT, OTHER)
    chat = world.chat(CLIENT)
    page = text(staff.get(f"{RUNS}person/{chat.pk}/"))
    assert number_shown(CLIENT) in page
    export = staff.get(f"{RUNS}person/{chat.pk}/export/")
    lines = [json.loads(line) for line in export.getvalue().splitlines()]
    told = {line["record"] for line in lines}
    assert {"chat", "chataddress", "chatsession", "message", "memory", "turn"} <= told
    contents = [line.get("content") for line in lines]
    assert FACT in contents
    assert NASTY in contents
    assert OTHER not in contents
    assert AuditEvent.objects.get(action="export").details["everything"] is True
    begun = staff.post(f"{RUNS}person/{chat.pk}/")
    assert ForgetItem.objects.get().object_id == chat.pk
    assert "export first" in text(staff.get(begun["Location"]))


def test_receipts_are_found_by_id_kind_and_staff(world: World, staff: Client) -> None:
    world.remember(CLIENT, FACT)
    memory = Memory.objects.get()
    confirm(staff, choose(staff, "memories_app_memory", memory.pk), "FORGET")
    work()
    receipt = ForgetReceipt.objects.get()
    ForgetReceipt.objects.create(
        kind="chat", object_id=uuid4(), actor_kind="api", content_hash="", probe="absent"
    )
    for key in (receipt.receipt_id, memory.pk):
        assert text(staff.get(f"{RECEIPTS}?q={key}")).count("field-whose") == 1
    assert "field-whose" not in text(staff.get(f"{RECEIPTS}?q=nothing"))
    for query in ("by=admin", "kind__exact=memory", "who=staff"):
        listed = text(staff.get(f"{RECEIPTS}?{query}"))
        assert listed.count("field-whose") == 1, query


def test_the_list_of_receipts_names_people(world: World, staff: Client, client: Client) -> None:
    for person in (CLIENT, OTHER_CLIENT):
        world.remember(person, FACT)
    Chat.objects.filter(pk=world.chat(CLIENT).pk).update(staff_name="Dana Levi")
    memory, chat = Memory.objects.get(chat_id=world.chat(CLIENT).pk), world.chat(OTHER_CLIENT)
    confirm(staff, choose(staff, "memories_app_memory", memory.pk), "FORGET")
    work()
    confirm(staff, choose(staff, "sessions_app_chat", chat.pk), OTHER_CLIENT)
    work()
    listed = text(staff.get(RECEIPTS))
    cells = re.findall(r"field-whose[^>]*>(.*?)</td>", listed, re.DOTALL)
    names = [re.sub(r"<[^>]+>", "", cell).strip() for cell in cells]
    assert names == ["an erased contact", "Dana Levi"]
    assert not any(str(key) in listed for key in (memory.pk, chat.pk))
    # A name is a contact's.
    of_receipts = a_member(client, "sessions_app.view_forgetreceipt")
    assert "Dana Levi" not in text(of_receipts.get(RECEIPTS))


def test_receipts_as_documents(world: World, staff: Client) -> None:
    world.remember(CLIENT, FACT)
    address = choose(staff, "memories_app_memory", Memory.objects.get().pk)
    confirm(staff, address, "FORGET")
    work()
    receipt = ForgetReceipt.objects.get()
    for base in (f"{RECEIPTS}{receipt.receipt_id}/", address.replace("change/", "")):
        plain = staff.get(f"{base}text/")
        assert plain["Content-Type"] == "text/plain; charset=utf-8"
        assert str(receipt.receipt_id) in text(plain)
        assert FACT not in text(plain)
        assert "attachment" in plain["Content-Disposition"]


def a_member(client: Client, *rights: str) -> Client:
    """One of the staff, who gets these rights besides those they have."""
    user, _made = User.objects.get_or_create(username="member", is_staff=True)
    for right in rights:
        app, _, name = right.partition(".")
        granted = Permission.objects.get(content_type__app_label=app, codename=name)
        user.user_permissions.add(granted)
    client.force_login(user)
    return client


READ = ("sessions_app.view_message", "memories_app.view_memory", "sessions_app.view_chat")


def test_who_may_forget_and_not_read_sees_numbers_alone(world: World, client: Client) -> None:
    world.remember(CLIENT, FACT)
    client = a_member(client, "sessions_app.forget")
    run = ForgetRun.objects.create(asked_by="member", total=1)
    ForgetItem.objects.create(run=run, number=1, kind="memory", object_id=Memory.objects.get().pk)
    shown = text(client.get(f"{RUNS}{run.pk}/change/"))
    assert "not read conversations" in shown
    assert FACT not in shown
    assert client.get(SEARCH).status_code == 403
