"""The replay of a turn: what it shows, who may see and do what, and the list that leads to it."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories_app.models import Memory
from memoryproject.foundation.admin_kit.list_csv import MAX_ROWS
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.llm.base import ChatModelError
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.foundation.integrations.whatsapp.base import SendError
from sessions_app.forgetting.execute import ForgetDependencies
from sessions_app.forgetting.forget_objects import object_forget
from sessions_app.models import Message, Turn, TurnReplay
from tests.dashboard.staff import staff_with
from tests.shown import messages_of, words_of
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db
LIST = "/admin/sessions_app/turn/"
REFUSED = SendError("window closed", permanent=True)
NASTY = '<script>alert("x")</script> \u202eevil\u200b ' + "long" * 25_000


def address(turn: Turn, rest: str = "change/") -> str:
    return f"{LIST}{turn.pk}/{rest}"


def page(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer
    return answer.content.decode()


def newest() -> Turn:
    return Turn.objects.latest("id")


@pytest.fixture
def recalled(world: World) -> World:
    """The godfather was told something and asked about it in a later session."""
    world.with_answer_rules(min_similarity=0.0)
    world.remember(GODFATHER, "TestCorp pays its invoices within 30 days")
    world.say(GODFATHER, "/reset")
    world.say(GODFATHER, "When does TestCorp pay its invoices?")
    return world


def test_it_shows_question_answer_and_what_was_recalled(
    admin_client: Client, recalled: World
) -> None:
    shown = page(admin_client, address(newest()))
    memory = Memory.objects.get()
    assert words_of(shown).count("When does TestCorp pay its invoices?") >= 2
    assert "answer to: When does TestCorp pay" in words_of(shown)
    assert f'href="/admin/memories_app/memory/{memory.pk}/change/"' in shown
    assert f"?at={memory.source_message_id}#m-{memory.source_message_id}" in shown
    hit = newest().replay.recalled[0]
    assert f"{hit['score']:.2f}" in words_of(shown)
    assert f'<rect class="value" width="{round(hit["score"] * 100)}"' in shown


def test_a_message_that_is_no_text_is_named_in_words(admin_client: Client, world: World) -> None:
    world.receive(message_from(CLIENT, "Is this the vase?", kind="image"))
    world.work()
    shown = words_of(page(admin_client, address(newest())))
    assert "Picture Is this the vase?" in shown


def test_a_recalled_memory_leads_to_the_preview_of_its_erasure(
    admin_client: Client, recalled: World
) -> None:
    memory = Memory.objects.get()
    shown = page(admin_client, address(newest()))
    form = re.search(
        r'<form method="post" action="(/admin/memories_app/memory/\?state=all)">(.*?)</form>', shown
    )
    assert form is not None
    fields = dict(re.findall(r'name="(action|_selected_action)" value="([^"]*)"', form[2]))
    preview = admin_client.post(form[1], fields, follow=True)
    assert preview.redirect_chain[0][0].startswith("/admin/sessions_app/forgetrun/")
    told = preview.getvalue().decode()
    assert "TestCorp pays its invoices within 30 days" in words_of(told)
    assert Memory.objects.get() == memory


def test_who_may_not_erase_is_offered_no_erasure(recalled: World) -> None:
    reader = staff_with("sessions_app.view_turn", "memories_app.view_memory")
    shown = page(reader, address(newest()))
    assert "Open the memory" in shown
    assert 'value="forget_selected"' not in shown


def test_it_shows_the_prompt_with_its_data_fenced_off(
    admin_client: Client, recalled: World
) -> None:
    shown = page(admin_client, address(newest()))
    fenced = re.search(r'<div class="fenced">(.*?)</div>', shown, re.S)
    assert fenced is not None
    assert "TestCorp pays its invoices within 30 days" in fenced[1]
    assert "You are DeniDin" not in fenced[1]
    assert newest().turn_id.hex[:12] not in shown


def test_it_shows_where_the_time_went(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "Hi")
    turn = newest()
    timings = {"waited_ms": 2_000, "recall_ms": 500, "model_ms": 1_400, "total_ms": 2_000}
    TurnReplay.objects.update(timings=timings)
    turn.finished_at = turn.created_at + timedelta(seconds=5)
    turn.save()
    shown = page(admin_client, address(turn))
    for told in ("Waiting 2.0 s", "Recall 500 ms", "Chat model 1.4 s", "Sending 1.0 s", "5.0 s"):
        assert told in words_of(shown)
    widths = re.findall(r'<rect class="(\w+)" x="([\d.]+)" width="([\d.]+)" height="10"/>', shown)
    assert widths[0] == ("waiting", "0.0", "40.0")
    assert widths[-1] == ("sending", "80.0", "20.0")


def test_what_was_forgotten_since_is_shown_as_forgotten(
    admin_client: Client, recalled: World
) -> None:
    turn = newest()
    dependencies = ForgetDependencies(
        embedder=recalled.dependencies.embedder, chat_memory=recalled.rules.chat_memory
    )
    object_forget(kind="memory", object_id=Memory.objects.get().pk, dependencies=dependencies)
    shown = words_of(page(admin_client, address(turn)))
    assert "erased since" in shown
    assert "within 30 days" not in shown


def test_a_forgotten_question_is_told_and_not_shown(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "My code is 4711")
    turn = newest()
    assert turn.message is not None
    dependencies = ForgetDependencies(
        embedder=world.dependencies.embedder, chat_memory=world.rules.chat_memory
    )
    object_forget(kind="message", object_id=turn.message.pk, dependencies=dependencies)
    shown = words_of(page(admin_client, address(turn)))
    assert "4711" not in shown
    assert "It isn't kept" in shown


def test_a_memory_that_was_changed_since_says_so(admin_client: Client, recalled: World) -> None:
    Memory.objects.update(content="TestCorp pays within 60 days")
    assert "says something else today" in words_of(page(admin_client, address(newest())))


def test_what_the_budget_left_out_is_told_in_sentences(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "Hi")
    left_out = {
        "messages_until": 12,
        "messages_over_context": 3,
        "recalled": 1,
        "messages_cut": 2,
        "recalled_cut": 1,
        "profile_cut": 1,
        "refused_prompts": 4,
        "recall_degraded": True,
        "passage": "a short passage",
        "summarized_until": 8,
    }
    TurnReplay.objects.update(left_out=left_out)
    shown = words_of(page(admin_client, address(newest())))
    for told in (
        "up to message no. 12 did not fit",
        "3 messages were too much",
        "1 recalled text found no room",
        "2 messages were too long and were shortened",
        "Of 1 recalled text only the passage that fits was sent",
        "1 text of the assistant's profile was too long",
        "The model refused 4 longer prompts before",
        "could not be searched",
        "a short passage",
        "up to message no. 8",
    ):
        assert told in shown


def test_a_model_that_failed_is_told_in_words(admin_client: Client, world: World) -> None:
    def fail(_: object) -> str:
        raise ChatModelError("the model is down", permanent=True)

    world.dependencies = replace(world.dependencies, chat_model=ScriptedChatModel(fail))
    world.say(CLIENT, "Hi")
    shown = words_of(page(admin_client, address(newest())))
    assert "The chat model gave no answer" in shown
    assert "the model is down" in shown


@pytest.mark.parametrize("hebrew", [False, True])
def test_hostile_texts_are_shown_as_text(admin_client: Client, world: World, hebrew: bool) -> None:
    if hebrew:
        admin_client.cookies[settings.LANGUAGE_COOKIE_NAME] = "he"
    world.say(CLIENT, "Hi")
    message = world.messages(CLIENT)[0]
    Message.objects.filter(pk=message.pk).update(content=NASTY)
    entry = {"source": "message", "id": str(message.pk), "content": NASTY, "score": 2.0}
    around = {"role": "user", "content": NASTY}
    Turn.objects.update(error=NASTY)
    TurnReplay.objects.update(
        prompt=[{"role": "system", "content": NASTY}, {"role": NASTY[:40], "content": NASTY}],
        recalled=[{**entry, "before": around}, {"id": "x", "similarity": -0.4}],
        left_out={"passage": NASTY, "messages_until": "many"},
        model=NASTY[:100],
        timings={"total_ms": "soon", "recall_ms": -5},
    )
    for rest in ("change/", "recall/"):
        shown = page(admin_client, address(newest(), rest))
        assert "<script>alert" not in shown
        assert "&lt;script&gt;alert" in shown
        assert shown.rstrip().endswith("</html>")


def test_a_page_takes_as_many_queries_for_sixty_recalled_as_for_three(
    admin_client: Client, world: World
) -> None:
    world.say(CLIENT, "Hi")
    chat = world.chat(CLIENT)
    memories = [
        Memory.objects.create(
            content=f"fact {place}",
            visibility="chat",
            chat_id=chat.pk,
            content_hash="x",
            fact_key=f"key {place}",
        )
        for place in range(60)
    ]
    counts = []
    for several in (3, 60):
        recalled = [
            {"source": "memory", "id": str(memory.pk), "content": memory.content}
            for memory in memories[:several]
        ]
        prompt = [{"role": "user", "content": "x"}] * several
        TurnReplay.objects.update(recalled=recalled, prompt=prompt)
        page(admin_client, address(newest()))
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert page(admin_client, address(newest())).count("Open the memory") == several
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_recall_now_compares_with_what_was_recalled_then(
    admin_client: Client, recalled: World, settings: Any
) -> None:
    settings.GODFATHER_PHONE = frozenset({GODFATHER})
    settings.RECALL_MIN_SIMILARITY = 0.0
    turn = newest()
    gone = {"source": "memory", "id": "00000000-0000-4000-8000-000000000001", "content": "old"}
    TurnReplay.objects.filter(turn=turn).update(recalled=[gone, *turn.replay.recalled])
    recalled.remember(GODFATHER, "TestCorp pays its invoices by bank transfer")
    shown = page(admin_client, address(turn, "recall/"))
    then, now = shown.split('id="now-title"')
    assert "not recalled today" in words_of(then)
    assert "was no." in words_of(now)
    assert "by bank transfer" in now
    assert "by bank transfer" not in then
    assert re.search(r'class="state good">new<', now)
    assert AuditEvent.objects.filter(details={"recalled_now": True}).count() == 1


def test_recall_now_goes_by_the_rights_of_its_chat(
    admin_client: Client, world: World, settings: Any
) -> None:
    settings.GODFATHER_PHONE = frozenset({GODFATHER})
    settings.RECALL_MIN_SIMILARITY = 0.0
    world.remember(GODFATHER, "The secret margin of TestCorp is nine percent")
    world.say(CLIENT, "What is the secret margin of TestCorp?")
    assert "nine percent" not in page(admin_client, address(newest(), "recall/"))
    world.say(GODFATHER, "What is the secret margin of TestCorp?")
    assert "nine percent" in page(admin_client, address(newest(), "recall/"))


def test_recall_now_says_where_there_is_nothing_to_ask(admin_client: Client, world: World) -> None:
    world.with_rules(memory_enabled=False)
    world.say(CLIENT, "Hi")
    assert "can't be asked" in words_of(page(admin_client, address(newest(), "recall/")))


def test_a_failed_turn_is_run_again_after_a_confirmation(
    admin_client: Client, world: World
) -> None:
    world.provider.fail_next(REFUSED)
    world.say(CLIENT, "Lost")
    turn = newest()
    assert address(turn, "rerun/") in page(admin_client, address(turn))
    asked = page(admin_client, address(turn, "rerun/"))
    seen = re.search(r'name="seen" value="([^"]+)"', asked)
    assert seen is not None
    turn.refresh_from_db()
    assert turn.state == "failed"
    told = []
    for _ in range(2):
        answer = admin_client.post(address(turn, "rerun/"), {"seen": seen[1]}, follow=True)
        told += messages_of(answer)
    assert told[0] == "It is being sent again."
    assert told[1].startswith("Nothing was done")
    world.work()
    assert [part.text for part in world.provider.sent] == ["answer to: Lost"]
    assert AuditEvent.objects.filter(action="turn.resend").count() == 1


def test_the_confirmation_shows_the_person_and_the_text_and_is_recorded(
    admin_client: Client, world: World
) -> None:
    world.provider.fail_next(REFUSED)
    world.say(CLIENT, "Lost")
    turn = newest()
    shown = words_of(page(admin_client, address(turn, "rerun/")))
    assert f"To: {turn.chat}" in shown.replace("\u2068", "").replace("\u2069", "")
    assert "They wrote Lost" in shown
    assert "This is sent answer to: Lost" in shown
    event = AuditEvent.objects.filter(action="conversation.read").latest("id")
    assert (event.object_id, event.details) == (str(turn.pk), {"rerun": True})


def test_the_confirmation_of_a_new_answer_promises_no_text(
    admin_client: Client, world: World
) -> None:
    world.with_answer_rules()
    world.say(CLIENT, "Lost")
    turn = newest()
    turn.parts.all().delete()
    Turn.objects.filter(pk=turn.pk).update(state="failed", reply=None)
    shown = words_of(page(admin_client, address(turn, "rerun/")))
    assert "They wrote Lost" in shown
    assert "This is sent" not in shown


def test_a_missed_message_leads_to_a_reply_by_hand(admin_client: Client, world: World) -> None:
    long_ago = timezone.now() - timedelta(days=3)
    world.receive(message_from(CLIENT, "too late", timestamp=long_ago))
    turn = newest()
    assert turn.state == "missed"
    shown = page(admin_client, address(turn))
    assert "Reply in the conversation" in words_of(shown)
    assert "Reply in the conversation" not in words_of(
        page(staff_with("sessions_app.view_turn"), address(turn))
    )
    world.say(CLIENT, "Hello")
    assert "Reply in the conversation" not in words_of(page(admin_client, address(newest())))


def test_an_unconfirmed_one_warns_that_it_may_come_twice(
    admin_client: Client, world: World
) -> None:
    world.provider.fail_next(SendError("timed out", outcome_unknown=True))
    world.say(CLIENT, "Lost")
    turn = newest()
    turn.parts.update(state="unconfirmed")
    Turn.objects.update(state="unconfirmed")
    assert "may get it twice" in words_of(page(admin_client, address(turn, "rerun/")))


def test_outside_the_window_it_is_refused_in_words(admin_client: Client, world: World) -> None:
    world.provider.fail_next(REFUSED)
    world.say(CLIENT, "Lost")
    long_ago = timezone.now() - timedelta(hours=30)
    Turn.objects.update(asked_at=long_ago)
    Message.objects.update(timestamp=long_ago)
    turn = newest()
    shown = words_of(page(admin_client, address(turn)))
    assert "WhatsApp's window for it is closed" in shown
    assert "Send it again" not in shown
    answer = admin_client.post(address(turn, "rerun/"), {}, follow=True)
    assert "window" in str(next(iter(answer.context["messages"])))
    turn.refresh_from_db()
    assert turn.state == "failed"


def test_who_may_only_read_runs_nothing(world: World) -> None:
    world.provider.fail_next(REFUSED)
    world.say(CLIENT, "Lost")
    turn = newest()
    reader = staff_with("sessions_app.view_turn")
    shown = page(reader, address(turn))
    assert address(turn, "rerun/") not in shown
    assert "/admin/memories_app/memory/" not in shown
    for method in (reader.get, reader.post):
        assert method(address(turn, "rerun/")).status_code == 403
    assert reader.post(address(turn), {}).status_code == 403
    action = {"action": "send_again", "_selected_action": [turn.pk]}
    reader.post(LIST, action)
    turn.refresh_from_db()
    assert turn.state == "failed"


@pytest.mark.parametrize("rest", ["change/", "rerun/", "recall/"])
def test_without_the_right_nothing_is_shown(world: World, rest: str) -> None:
    world.say(CLIENT, "Hi")
    client = staff_with("sessions_app.view_message")
    assert client.get(address(newest(), rest)).status_code == 403
    assert Client().get(address(newest(), rest)).status_code == 302


@pytest.mark.parametrize("key", ["0", "99999999999999999999999", "x", "1e5", "٣", "-1"])
@pytest.mark.parametrize("rest", ["change/", "rerun/", "recall/"])
def test_an_unknown_turn_is_not_found(admin_client: Client, key: str, rest: str) -> None:
    answer = admin_client.get(f"{LIST}{key}/{rest}", follow=True)
    assert answer.status_code == 404


@pytest.mark.parametrize("seen", ["", "yesterday", "2026-13-45T00:00:00Z", "2026-01-01T00:00:00"])
def test_a_forged_form_harms_nobody(admin_client: Client, world: World, seen: str) -> None:
    world.say(CLIENT, "Fine")
    answer = admin_client.post(address(newest(), "rerun/"), {"seen": seen}, follow=True)
    assert answer.status_code == 200
    assert newest().state == "sent"


def test_the_list_leads_to_what_failed_and_shows_how_it_went(
    admin_client: Client, world: World
) -> None:
    world.say(CLIENT, "Fine")
    world.provider.fail_next(REFUSED)
    world.say(OTHER_CLIENT, "Lost")
    answered = TurnReplay.objects.filter(turn__state="sent")
    answered.update(model="model-one", prompt_tokens=1204)
    shown = page(admin_client, LIST)
    assert re.search(r'href="[^"]*\?state__exact=failed" class="bad">Failed <span[^>]*>1<', shown)
    assert "window closed" in shown
    assert "model-one" in shown
    assert "1,204" in shown
    only = page(admin_client, f"{LIST}?state__exact=failed")
    assert "window closed" in only
    assert "1,204" not in only
    assert "1,204" in page(admin_client, f"{LIST}?model=model-one")


@pytest.mark.parametrize(
    ("term", "found"),
    [(CLIENT, 1), ("15550100123", 1), ("Test User", 2), ("nobody", 0), ("\x00", 2), ("%", 0)],
)
def test_turns_are_found_by_their_chat(
    admin_client: Client, world: World, term: str, found: int
) -> None:
    world.say(CLIENT, "Fine")
    world.say(OTHER_CLIENT, "Fine")
    answer = admin_client.get(LIST, {"q": term})
    assert answer.context["cl"].result_count == found


@pytest.mark.slow
def test_the_list_takes_as_many_queries_for_sixty_as_for_three(
    admin_client: Client, world: World
) -> None:
    counts = []
    for several in (3, 57):
        for place in range(several):
            world.receive(message_from(f"1555020{several}{place:03}@c.us", "Hi"))
        admin_client.get(LIST)
        with CaptureQueriesContext(connection) as queries:
            assert admin_client.get(LIST).status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_an_endless_list_is_never_counted_whole(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "Fine")
    with CaptureQueriesContext(connection) as queries:
        page(admin_client, LIST)
    counting = [each["sql"] for each in queries if "COUNT(" in each["sql"]]
    turns = [sql for sql in counting if '"sessions_app_turn"' in sql]
    assert turns
    assert all("LIMIT" in sql for sql in turns)
    assert any(f"LIMIT {MAX_ROWS + 1})" in sql for sql in turns)
