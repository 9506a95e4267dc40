"""The page of questions that the assistant couldn't answer, by topic."""

from __future__ import annotations

import csv
import html
import io
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memories_app.models import Memory
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.process.narrowing import present
from sessions_app.forgetting.facade import ForgetDependencies, object_forget
from sessions_app.models import Turn
from tests.dashboard.staff import staff_with
from tests.shown import words
from tests.world import CLIENT, OTHER_CLIENT, World, asked

pytestmark = pytest.mark.django_db
PAGE = "/admin/sessions_app/turn/unknown/"
READS = ("sessions_app.view_turn", "sessions_app.view_message")
THIRD = "15550100789@c.us"


def topics(client: Client, query: str = "") -> list[str]:
    page = client.get(f"{PAGE}{query}").content.decode()
    found = re.findall(r'<h2 id="topic-\d+"[^>]*><bdi>(.*?)</bdi></h2>', page)
    return [html.unescape(each) for each in found]


def post(client: Client, do: str, *turns: Turn, text: str = "") -> Any:
    data = {"turns": ",".join(str(turn.pk) for turn in turns), "about": turns[0].pk}
    return client.post(f"{PAGE}{do}/", {**data, "content": text, "period": "7"}, follow=True)


class TestPage:
    def test_questions_are_grouped_by_topic_with_those_who_asked(
        self, admin_client: Client, world: World
    ) -> None:
        turn = asked(world, "Do you have gluten free bread?")
        for person in (CLIENT, OTHER_CLIENT, THIRD):
            asked(world, "Is there parking?", person)
        asked(world, "Do you have parking near the shop?", "15550100780@c.us")
        assert topics(admin_client) == ["Is there parking?", "Do you have gluten free bread?"]
        page = admin_client.get(PAGE)
        assert "asked 4 times · by 4 people" in words(page)
        assert "asked 1 time · by 1 person" in words(page)
        assert f"/admin/sessions_app/turn/{turn.pk}/change/" in page.content.decode()

    def test_what_is_no_question_or_was_known_is_not_there(
        self, admin_client: Client, world: World
    ) -> None:
        world.with_answer_rules(min_similarity=0.0)
        asked(world, "Good morning, how are you?")
        asked(world, "Thank you!")
        asked(world, "/memories what do you know?")
        world.remember(OTHER_CLIENT, "Parking is behind the house")
        asked(world, "Where can I park?", OTHER_CLIENT)
        assert topics(admin_client) == []
        assert "No question was unknown in this period." in words(admin_client.get(PAGE))

    def test_what_was_left_to_a_person_and_what_staff_rated_bad_is_there(
        self, admin_client: Client, world: World
    ) -> None:
        turn = asked(world, "Please tell me about catering")
        rate = f"/admin/sessions_app/turn/{turn.pk}/rate/"
        admin_client.post(rate, {"verdict": "bad", "reason": "tone"})
        assert topics(admin_client) == []
        admin_client.post(rate, {"verdict": "bad", "reason": "unknown"})
        chat = world.chat(CLIENT)
        admin_client.post(f"/admin/sessions_app/turn/takeover/{chat.pk}/pause/", {"lasts": "1h"})
        asked(world, "Is there parking?")
        assert Turn.objects.latest("id").state == "held"
        assert topics(admin_client) == ["Is there parking?", "Please tell me about catering"]
        shown = words(admin_client.get(PAGE))
        assert "left to a person" in shown
        assert "staff rated it bad" in shown

    def test_the_period_is_chosen(self, admin_client: Client, world: World) -> None:
        turn = asked(world, "Is there parking?")
        Turn.objects.filter(pk=turn.pk).update(created_at=timezone.now() - timedelta(days=10))
        assert topics(admin_client) == []
        assert topics(admin_client, "?period=30") == ["Is there parking?"]

    def test_without_vectors_it_goes_by_words(self, admin_client: Client, world: World) -> None:
        asked(world, "יש לכם חניה?")
        asked(world, "איפה החניה שלכם?", OTHER_CLIENT)
        assert len(topics(admin_client)) == 1

    def test_a_message_that_was_erased_is_gone(self, admin_client: Client, world: World) -> None:
        turn = asked(world, "Is there parking?")
        object_forget(
            kind="message",
            object_id=present(turn.message_id),
            dependencies=ForgetDependencies(
                world.dependencies.embedder, world.dependencies.chat_memory
            ),
        )
        assert topics(admin_client) == []

    def test_reading_it_is_audited(self, admin_client: Client, world: World) -> None:
        asked(world, "Is there parking?")
        admin_client.get(PAGE)
        event = AuditEvent.objects.filter(action="conversation.read").latest("id")
        assert (event.actor, event.details["list"]) == ("admin", "unknown_questions")

    def test_it_is_one_click_from_the_answers(self, admin_client: Client, world: World) -> None:
        assert f'href="{PAGE}"' in admin_client.get("/admin/sessions_app/turn/").content.decode()

    def test_no_question_becomes_markup(self, admin_client: Client, world: World) -> None:
        asked(world, "Where is <b>parking</b>?")
        assert "<b>parking" not in admin_client.get(PAGE).content.decode()


class TestTeach:
    def test_what_is_taught_is_known_to_everyone_and_closes_the_topic(
        self, admin_client: Client, world: World
    ) -> None:
        one = asked(world, "Is there parking?")
        two = asked(world, "Do you have parking near the shop?", OTHER_CLIENT)
        text = "Is there parking? Yes, behind the house."
        answer = post(admin_client, "teach", one, two, text=text)
        assert "It is remembered for everyone from now on." in words(answer)
        memory = Memory.objects.get()
        assert (memory.content, memory.visibility, memory.chat_id) == (text, "public", None)
        assert topics(admin_client) == []
        assert len(topics(admin_client, "?closed=1")) == 1
        assert AuditEvent.objects.filter(action="memory.teach").count() == 1
        closed = AuditEvent.objects.filter(action="answer.resolve")
        assert [event.details["why"] for event in closed] == ["taught", "taught"]

    def test_the_question_alone_teaches_nothing_and_the_form_stays_open(
        self, admin_client: Client, world: World
    ) -> None:
        turn = asked(world, "Is there parking?")
        answer = post(admin_client, "teach", turn, text="Is there parking?")
        assert answer.status_code == 400
        assert "This is the question as it was asked." in words(answer)
        assert '<details class="teach" open>' in answer.content.decode()
        assert not Memory.objects.exists()

    def test_who_may_not_review_teaches_and_the_topic_stays(self, world: World) -> None:
        turn = asked(world, "Is there parking?")
        client = staff_with(*READS, "memories_app.add_memory")
        post(client, "teach", turn, text="Parking is behind the house")
        assert Memory.objects.count() == 1
        assert topics(client) == ["Is there parking?"]


class TestIgnore:
    def test_what_is_ignored_is_gone_and_audited_until_it_is_asked_again(
        self, admin_client: Client, world: World
    ) -> None:
        turn = asked(world, "Do you sell cars?")
        asked(world, "Is there parking?", OTHER_CLIENT)
        assert "1 question is ignored." in words(post(admin_client, "ignore", turn))
        assert topics(admin_client) == ["Is there parking?"]
        event = AuditEvent.objects.get(action="answer.resolve")
        assert (event.actor, event.details["why"]) == ("admin", "ignored")
        asked(world, "Do you sell cars?", THIRD)
        assert set(topics(admin_client)) == {"Is there parking?", "Do you sell cars?"}

    @pytest.mark.parametrize("turns", ["", "x", "1,x", "-1", "9" * 30])
    def test_what_names_no_answers_is_refused(
        self, admin_client: Client, world: World, turns: str
    ) -> None:
        assert admin_client.post(f"{PAGE}ignore/", {"turns": turns}).status_code == 400

    def test_answers_that_are_gone_are_no_error(self, admin_client: Client, world: World) -> None:
        answer = admin_client.post(f"{PAGE}ignore/", {"turns": "99"}, follow=True)
        assert "These questions aren't there any more." in words(answer)


class TestRights:
    def test_who_may_only_read_is_offered_nothing_and_refused(self, world: World) -> None:
        turn = asked(world, "Is there parking?")
        reader = staff_with(*READS)
        page = reader.get(PAGE).content.decode()
        assert "Is there parking?" in page
        assert "unknown/teach/" not in page
        assert "unknown/ignore/" not in page
        assert post(reader, "teach", turn, text="x").status_code == 403
        assert post(reader, "ignore", turn).status_code == 403

    @pytest.mark.parametrize("right", READS)
    def test_it_takes_both_rights_to_read(self, world: World, right: str) -> None:
        asked(world, "Is there parking?")
        client = staff_with(right)
        assert client.get(PAGE).status_code == 403
        assert client.get(f"{PAGE}?table=questions").status_code == 403


def test_the_csv_has_every_question_and_is_audited(admin_client: Client, world: World) -> None:
    asked(world, "Is there parking?")
    turn = asked(world, "=is there parking near you?", OTHER_CLIENT)
    answer: Any = admin_client.get(f"{PAGE}?table=questions")
    file = answer.getvalue().decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(file)))
    assert [(row["questions"], row["people"], row["why"]) for row in rows] == [
        ("2", "2", "unknown")
    ] * 2
    assert rows[0]["question"] == "'=is there parking near you?"
    assert rows[0]["answer_id"] == str(turn.pk)
    event = AuditEvent.objects.get(action="export")
    assert (event.object_type, event.details) == ("questions", {"rows": 2})
    assert admin_client.get(f"{PAGE}?table=people").status_code == 400
