"""What staff do so that answers become better: they rate them, go through those that are to be
reviewed, teach facts, correct memories in place, and see which questions were unknown."""

from __future__ import annotations

import csv
import html
import io
import re
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories_app.models import Memory, MemoryStatus
from memoryproject.foundation.audit.audit_events import audit_key, pseudonyms_of
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.llm.base import ChatModelError, ChatRequest
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.foundation.integrations.whatsapp.base import SendError
from sessions_app.models import AnswerRating, MessageEmbedding, Turn
from tests.dashboard.staff import page, staff_with
from tests.shown import found_in, words, words_of
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, asked, remember

pytestmark = pytest.mark.django_db

LIST = "/admin/sessions_app/turn/"
WAITING = "/admin/memories_app/memory/waiting/"
QUEUE = f"{LIST}?review=todo"
UNKNOWN = f"{LIST}unknown/"
REFUSED = SendError("window closed", permanent=True)
THIRD = "15550100789@c.us"
OPEN, FACT = "Are you open on Fridays?", "We are open on Fridays until 14:00"
PAYS = "TestCorp pays its invoices within 30 days"


def why(turn: Turn, query: str = "") -> str:
    return f"{LIST}{turn.pk}/change/{query}"


def posted(client: Client, turn: Turn, what: str, **data: str) -> Any:
    return client.post(f"{LIST}{turn.pk}/{what}", data, follow=True)


def rate(client: Client, turn: Turn, verdict: str, reason: str = "") -> Any:
    return posted(client, turn, "rate/", verdict=verdict, reason=reason)


def listed(client: Client, address: str = QUEUE) -> list[int]:
    cell = r"<th [^>]*field-exchange.*?/turn/(\d+)/"
    return [int(key) for key in re.findall(cell, page(client, address), re.S)]


def is_about(event: AuditEvent, turn: Turn) -> bool:
    """By whom, about which answer, and in the trail of its person."""
    in_trail = event.chat in pseudonyms_of(key=audit_key(), chat_id=turn.chat_id)
    return (event.actor, event.object_id) == ("admin", str(turn.turn_id)) and in_trail


# Ratings


def test_an_answer_is_rated_and_page_and_list_tell(admin_client: Client, world: World) -> None:
    turn = asked(world, "Hello")
    answer = rate(admin_client, turn, "bad", "tone")
    assert answer.redirect_chain == [(f"{why(turn)}#rating", 302)]
    assert "You rated this answer bad" in words(answer)
    assert 'value="tone" selected' in answer.content.decode()
    assert "This answer is to be reviewed: staff rated it bad." in words(answer)
    assert "The tone or the language is wrong" in words_of(page(admin_client, LIST))
    # Each of the staff has an own one, and sees the others.
    dana = staff_with("sessions_app.view_turn", "sessions_app.review_chat")
    assert "admin : bad" in words(rate(dana, turn, "bad", "wrong"))
    assert "dana : bad It says something wrong" in words_of(page(admin_client, why(turn)))
    rate(admin_client, turn, "good", "tone")
    own = AnswerRating.objects.get(user_name="admin")
    assert (own.is_good, own.reason, own.is_open) == (True, "", False)
    posted(admin_client, turn, "resolve/")
    rate(admin_client, turn, "none")
    assert AnswerRating.objects.count() == 1
    events = AuditEvent.objects.filter(action__startswith="answer.", actor="admin").order_by("id")
    actions = ["answer.rate", "answer.rate", "answer.resolve", "answer.unrate"]
    assert [each.action for each in events] == actions
    assert events[0].details == {"good": False, "reason": "tone"}
    assert all(is_about(event, turn) for event in events)


def test_what_there_is_not_is_refused(admin_client: Client, world: World) -> None:
    turn = asked(world, "Hello")
    for verdict, reason in (("great", ""), ("", ""), ("bad", "mood")):
        assert rate(admin_client, turn, verdict, reason).status_code == 400
    Turn.objects.filter(pk=turn.pk).update(by_hand=True)
    assert "Is this a good answer?" not in words_of(page(admin_client, why(turn)))
    assert rate(admin_client, turn, "good").status_code == 400, "one by hand isn't rated"
    assert not AnswerRating.objects.exists()


# The queue of those to be reviewed


def test_bad_failed_and_unknown_answers_are_to_be_reviewed_until_they_are_dealt_with(
    admin_client: Client, world: World
) -> None:
    asked(world, "Good morning")
    unknown = asked(world, "Where can I park?")
    world.provider.fail_next(REFUSED)
    failed = asked(world, "Thank you")
    bad = asked(world, "Goodbye", OTHER_CLIENT)
    rate(admin_client, bad, "bad")
    assert listed(admin_client) == [bad.pk, failed.pk, unknown.pk]
    assert "Answers to review 3" in words_of(page(admin_client, LIST))
    assert "and nothing was recalled for it." in words_of(page(admin_client, why(unknown)))
    assert "to be reviewed: it failed." in words_of(page(admin_client, why(failed)))
    rate(admin_client, unknown, "good")
    assert listed(admin_client, f"{LIST}?review=good") == [unknown.pk]
    resolved = posted(admin_client, failed, "resolve/")
    assert "The answer is resolved." in words(resolved)
    assert "is to be reviewed:" not in words(resolved)
    assert listed(admin_client) == [bad.pk]
    # A later failure and a later bad rating open it again.
    world.provider.fail_next(REFUSED)
    posted(admin_client, failed, "rerun/")
    world.work()
    assert listed(admin_client) == [bad.pk, failed.pk]
    posted(admin_client, failed, "resolve/")
    posted(admin_client, bad, "resolve/")
    assert listed(admin_client, f"{LIST}?review=bad") == [bad.pk], "also after it is resolved"
    rate(admin_client, failed, "bad")
    rate(admin_client, bad, "bad")
    assert listed(admin_client) == [bad.pk, failed.pk]


def test_they_are_decided_one_by_one_in_the_queue(admin_client: Client, world: World) -> None:
    old = asked(world, "Where can I park?")
    asked(world, "Hello")
    new = asked(world, "Where is it?")

    def shown() -> list[int]:
        return [int(key) for key in re.findall(r'id="answer-(\d+)"', page(admin_client, WAITING))]

    assert shown() == [new.pk, old.pk]
    answer = posted(admin_client, new, "resolve/", next=f"{WAITING}#answers")
    assert answer.redirect_chain == [(f"{WAITING}#answers", 302)]
    assert shown() == [old.pk]
    posted(admin_client, old, "rate/", verdict="bad", next=f"{WAITING}#answers")
    assert shown() == [old.pk], "it stays"
    # Elsewhere is never led to.
    answer = posted(admin_client, old, "resolve/", next="https://elsewhere.example/admin/")
    assert answer.redirect_chain == [(why(old), 302)]
    assert shown() == []


# Teaching


def teach(client: Client, turn: Turn, text: str = FACT, audience: str = "client") -> Any:
    return posted(client, turn, "teach/", **{"content": text, "for": audience})


def field(shown: str, name: str) -> str:
    found = found_in(rf'<textarea id="{name}"[^>]*>\n(.*?)</textarea>', shown)
    return html.unescape(found)


@pytest.mark.parametrize(
    ("by", "audience", "told", "visibility", "known_by"),
    [
        (CLIENT, "client", "this client", "chat", [CLIENT]),
        (CLIENT, "everyone", "everyone", "public", [CLIENT, OTHER_CLIENT]),
        (GODFATHER, "client", "the owner", "owner", [GODFATHER]),
    ],
)
def test_a_fact_is_taught_to_those_whom_it_is_for(
    admin_client: Client,
    world: World,
    settings: Any,
    by: str,
    audience: str,
    told: str,
    visibility: str,
    known_by: list[str],
) -> None:
    settings.GODFATHER_PHONE = frozenset({GODFATHER})
    world.with_answer_rules(min_similarity=0.0)
    turn = asked(world, OPEN, by)
    shown = page(admin_client, why(turn))
    assert field(shown, "teach-text") == OPEN, "it begins with what the person wrote"
    assert f'data-text="answer to: {OPEN}"' in shown
    answer = teach(admin_client, turn, audience=audience)
    assert answer.redirect_chain == [(why(turn), 302)]
    assert f"It is remembered for {told} from now on." in words(answer)
    memory = Memory.objects.get()
    assert (memory.content, memory.visibility, memory.source) == (FACT, visibility, "staff")
    assert memory.chat_id == (None if visibility == "public" else turn.chat_id)
    for person in (CLIENT, OTHER_CLIENT, GODFATHER):
        knows = person in known_by or person == GODFATHER
        assert (FACT in world.seen_by_model(person, "Until when on Fridays?")) == knows, person
    event = AuditEvent.objects.get(action="memory.teach")
    assert is_about(event, turn)
    assert event.content_hash == memory.content_hash


def test_what_teaches_nothing_is_refused_and_kept(admin_client: Client, world: World) -> None:
    turn = asked(world, OPEN)
    for text, problem in (
        (" Are you open  on Fridays? ", "Write what the assistant should know."),
        ("word " * 4_000 + "end", "at most 8192"),
        (" ", "The text is empty."),
    ):
        answer = teach(admin_client, turn, text)
        assert problem in words(answer)
        assert field(answer.content.decode(), "teach-text") == text.strip(" ") or text[:1] == " "
        assert '<details class="teach" open>' in answer.content.decode()
    assert teach(admin_client, turn, audience="nobody").status_code == 400
    assert not Memory.objects.exists()
    assert not AuditEvent.objects.filter(action="memory.teach").exists()


def test_an_apology_stands_beside_the_message_that_it_is_for(
    admin_client: Client, world: World
) -> None:
    def out_of_order(_request: ChatRequest) -> str:
        raise ChatModelError(ErrorText("model_unreachable"))

    world.use(chat_model=ScriptedChatModel(out_of_order))
    world.say(CLIENT, "Who sells umbrellas?")
    shown = page(admin_client, LIST)
    assert shown.count("Who sells umbrellas?") == Turn.objects.count() == 2
    assert "It isn't kept" not in html.unescape(shown)


# Correcting in place


@pytest.fixture
def recalled(world: World) -> Memory:
    world.with_answer_rules(min_similarity=0.0)
    world.remember(CLIENT, PAYS)
    world.say(CLIENT, "/reset")
    asked(world, "When does TestCorp pay its invoices?")
    return Memory.objects.get()


def correct(client: Client, memory: Memory, text: str, seen: str = "") -> Any:
    turn, memory = Turn.objects.latest("id"), Memory.objects.get(pk=memory.pk)
    what = f"memory/{memory.pk}/"
    return posted(client, turn, what, content=text, seen=seen or memory.content_hash)


def test_a_recalled_memory_is_corrected_in_place(admin_client: Client, recalled: Memory) -> None:
    turn, seen = Turn.objects.latest("id"), recalled.content_hash
    assert field(page(admin_client, why(turn)), f"correct-{recalled.pk}") == PAYS
    answer = correct(admin_client, recalled, "TestCorp pays within 45 days")
    assert answer.redirect_chain == [(why(turn), 302)]
    assert "The memory is corrected." in words(answer)
    assert "says something else today" in words(answer)
    assert [each.content for each in recalled.revisions.all()] == [PAYS]
    event = AuditEvent.objects.get(action="memory.update")
    assert (event.actor, event.object_id) == ("admin", str(recalled.pk))
    # Who saw it before is told; having seen it, staff may insist.
    answer = correct(admin_client, recalled, "TestCorp pays within 60 days", seen)
    assert "Somebody else changed this memory meanwhile." in words(answer)
    assert "What is stored: TestCorp pays within 45 days" in words(answer)
    shown = answer.content.decode()
    assert field(shown, f"correct-{recalled.pk}") == "TestCorp pays within 60 days"
    correct(admin_client, recalled, "TestCorp pays within 60 days")
    recalled.refresh_from_db()
    assert recalled.content == "TestCorp pays within 60 days"


def test_a_text_about_a_superseded_one_is_kept(admin_client: Client, recalled: Memory) -> None:
    Memory.objects.filter(pk=recalled.pk).update(status=MemoryStatus.SUPERSEDED)
    answer = correct(admin_client, recalled, "TestCorp pays within 60 days")
    assert "superseded: change the newer one." in words(answer)
    assert "Your text, to copy" in words(answer)
    assert "TestCorp pays within 60 days" in words(answer)
    assert f'id="correct-{recalled.pk}"' not in answer.content.decode()


# Unknown questions


def topics(client: Client, query: str = "") -> list[str]:
    shown = page(client, f"{UNKNOWN}{query}")
    found = re.findall(r'<h2 id="topic-\d+"[^>]*><bdi>(.*?)</bdi></h2>', shown)
    return [html.unescape(each) for each in found]


def post_topic(client: Client, do: str, *turns: Turn, text: str = "") -> Any:
    data = {"turns": ",".join(str(turn.pk) for turn in turns), "about": turns[0].pk}
    return client.post(f"{UNKNOWN}{do}/", {**data, "content": text, "period": "7"}, follow=True)


def test_unknown_questions_are_grouped_by_topic(admin_client: Client, world: World) -> None:
    bread = asked(world, "Do you have gluten free bread?")
    for person in (CLIENT, OTHER_CLIENT, THIRD):
        asked(world, "Is there parking?", person)
    asked(world, "Do you have parking near the shop?", "15550100780@c.us")
    assert topics(admin_client) == ["Is there parking?", "Do you have gluten free bread?"]
    shown = page(admin_client, UNKNOWN)
    assert "asked 4 times · by 4 people" in words_of(shown)
    assert "asked 1 time · by 1 person" in words_of(shown)
    assert why(bread) in shown
    Turn.objects.filter(pk=bread.pk).update(created_at=timezone.now() - timedelta(days=10))
    assert topics(admin_client) == ["Is there parking?"]
    assert len(topics(admin_client, "?period=30")) == 2
    asked(world, "יש לכם חניה?")
    asked(world, "איפה החניה שלכם?", OTHER_CLIENT)
    assert len(topics(admin_client)) == 2, "by words where there are no vectors"


def test_what_is_no_question_or_known_or_gone_is_absent(admin_client: Client, world: World) -> None:
    world.with_answer_rules(min_similarity=0.0)
    for text in ("Good morning, how are you?", "Thank you!", "/memories what do you know?"):
        asked(world, text)
    world.remember(OTHER_CLIENT, "Parking is behind the house")
    asked(world, "Where can I park?", OTHER_CLIENT)
    turn = asked(world, "Is there a lift?", THIRD)
    world.forget("message", turn.message_id)
    assert topics(admin_client) == []
    shown = words_of(page(admin_client, UNKNOWN))
    assert "No question was unknown in this period." in shown


def test_what_was_left_to_people_or_rated_bad_is_there(admin_client: Client, world: World) -> None:
    turn = asked(world, "Please tell me about catering")
    rate(admin_client, turn, "bad", "tone")
    assert topics(admin_client) == []
    rate(admin_client, turn, "bad", "unknown")
    pause = f"{LIST}takeover/{world.chat(CLIENT).pk}/pause/"
    admin_client.post(pause, {"lasts": "1h"})
    asked(world, "Is there parking?")
    assert Turn.objects.latest("id").state == "held"
    assert topics(admin_client) == ["Is there parking?", "Please tell me about catering"]
    shown = words_of(page(admin_client, UNKNOWN))
    assert "left to a person" in shown
    assert "staff rated it bad" in shown


def test_a_topic_is_taught_or_ignored_until_asked_again(admin_client: Client, world: World) -> None:
    one = asked(world, "Is there parking?")
    two = asked(world, "Do you have parking near the shop?", OTHER_CLIENT)
    cars = asked(world, "Do you sell cars?")
    refused = post_topic(admin_client, "teach", cars, text="Do you sell cars?")
    assert refused.status_code == 400
    assert "This is the question as it was asked." in words(refused)
    assert '<details class="teach" open>' in refused.content.decode()
    text = "Is there parking? Yes, behind the house."
    # Who may not review teaches, and the topic stays.
    rights = ("sessions_app.view_turn", "sessions_app.view_message", "memories_app.add_memory")
    reader = staff_with(*rights)
    post_topic(reader, "teach", cars, text="Ask at the counter")
    assert len(topics(reader)) == 2
    answer = post_topic(admin_client, "teach", one, two, text=text)
    assert "It is remembered for everyone from now on." in words(answer)
    memory = Memory.objects.get(content=text)
    assert (memory.visibility, memory.chat_id) == ("public", None)
    assert topics(admin_client) == ["Do you sell cars?"]
    assert len(topics(admin_client, "?closed=1")) == 2
    assert "1 question is ignored." in words(post_topic(admin_client, "ignore", cars))
    assert topics(admin_client) == []
    closed = AuditEvent.objects.filter(action="answer.resolve").order_by("id")
    assert [event.details["why"] for event in closed] == ["taught", "taught", "ignored"]
    asked(world, "Do you sell cars?", THIRD)
    assert topics(admin_client) == ["Do you sell cars?"]
    for turns in ("", "x", "1,x", "-1", "9" * 30):
        assert admin_client.post(f"{UNKNOWN}ignore/", {"turns": turns}).status_code == 400


def test_what_is_near_and_what_staff_replied_are_offered(
    admin_client: Client, world: World
) -> None:
    known = remember(world, "The parking is behind the house, for guests")
    world.with_answer_rules(min_similarity=0.99)
    for person in (OTHER_CLIENT, CLIENT):
        asked(world, "Is there parking?", person)
    pause = f"{LIST}takeover/{world.chat(CLIENT).pk}/"
    admin_client.post(f"{pause}pause/", {"lasts": "1h"})
    reply = "Yes, park in the yard & ring"
    admin_client.post(f"{pause}reply/", {"text": reply, "key": str(uuid.uuid4())})
    asked(world, "Do you have parking?", THIRD)
    shown = page(admin_client, UNKNOWN)
    assert "Nearest of what everyone may know: The parking is" in words_of(shown)
    assert f"/memory/{known.pk}/change/" in shown
    assert "Teach staff's reply…" in words_of(shown)
    (number,) = re.findall(r'<textarea id="(text-\d+)"', shown)
    assert field(shown, number) == reply
    turns = html.unescape(found_in(r'name="turns" value="([^"]*)"', shown)).split(",")
    post_topic(admin_client, "teach", *Turn.objects.filter(pk__in=turns), text=reply)
    assert topics(admin_client) == [], "all of the topic are answered"
    # Who may not see memories sees none.
    asked(world, "Is there parking?", "15550100781@c.us")
    reader = staff_with("sessions_app.view_turn", "sessions_app.view_message")
    assert "Nearest of what everyone" not in words_of(page(reader, UNKNOWN))


def test_many_topics_are_paged_and_cost_no_more_statements(
    admin_client: Client, world: World
) -> None:
    counts = []
    for number, letter in enumerate("abcdefghijklmnopqrstu"):
        asked(world, f"What is {letter}erim{letter}ol?", f"155501008{number:02}@c.us")
        if number in (0, 20):
            MessageEmbedding.objects.all().delete()
            page(admin_client, UNKNOWN)
            with CaptureQueriesContext(connection) as captured:
                page(admin_client, UNKNOWN)
            counts.append(len(captured))
    assert counts[0] == counts[1]
    assert (len(topics(admin_client)), len(topics(admin_client, "?p=2"))) == (20, 1)


def test_the_csv_has_every_question_and_is_audited(admin_client: Client, world: World) -> None:
    asked(world, "Is there parking?")
    turn = asked(world, "=is there parking near you?", OTHER_CLIENT)
    answer: Any = admin_client.get(f"{UNKNOWN}?table=questions")
    rows = list(csv.DictReader(io.StringIO(answer.getvalue().decode("utf-8-sig"))))
    told = [(row["questions"], row["people"], row["why"]) for row in rows]
    assert told == [("2", "2", "unknown")] * 2
    assert rows[0]["question"] == "'=is there parking near you?"
    assert rows[0]["answer_id"] == str(turn.pk)
    event = AuditEvent.objects.get(action="export")
    assert (event.object_type, event.details) == ("questions", {"rows": 2})
    assert admin_client.get(f"{UNKNOWN}?table=people").status_code == 400
