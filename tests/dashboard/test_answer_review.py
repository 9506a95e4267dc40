"""Staff rate answers, and go through those that are to be reviewed."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from memoryproject.foundation.audit.audit_events import audit_key, pseudonyms_of
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.whatsapp.base import SendError
from sessions_app.models import AnswerRating, Turn
from tests.dashboard.staff import staff_with
from tests.shown import words
from tests.world import CLIENT, OTHER_CLIENT, World, asked

pytestmark = pytest.mark.django_db
LIST = "/admin/sessions_app/turn/"
QUEUE = f"{LIST}?review=todo"
REFUSED = SendError("window closed", permanent=True)
RIGHTS = ("sessions_app.view_turn", "sessions_app.review_chat")


def why(turn: Turn, query: str = "") -> str:
    return f"{LIST}{turn.pk}/change/{query}"


def rate(client: Client, turn: Turn, verdict: str, reason: str = "", query: str = "") -> Any:
    data = {"verdict": verdict, "reason": reason}
    return client.post(f"{LIST}{turn.pk}/rate/{query}", data, follow=True)


def resolve(client: Client, turn: Turn, query: str = "") -> Any:
    return client.post(f"{LIST}{turn.pk}/resolve/{query}", follow=True)


def listed(client: Client, address: str = QUEUE) -> list[int]:
    page = client.get(address).content.decode()
    return [int(key) for key in re.findall(r"<th [^>]*field-created_at.*?/turn/(\d+)/", page, re.S)]


class TestRating:
    def test_an_answer_is_rated_bad_with_a_reason_and_the_page_and_the_list_say_so(
        self, admin_client: Client, world: World
    ) -> None:
        turn = asked(world, "Hello")
        answer = rate(admin_client, turn, "bad", "tone")
        assert answer.redirect_chain == [(f"{why(turn)}#rating", 302)]
        assert "You rated this answer bad" in words(answer)
        assert 'value="tone" selected' in answer.content.decode()
        assert "This answer is to be reviewed: staff rated it bad." in words(answer)
        assert "The tone or the language is wrong" in words(admin_client.get(LIST))

    def test_a_rating_is_changed_and_taken_back(self, admin_client: Client, world: World) -> None:
        turn = asked(world, "Hello")
        rate(admin_client, turn, "bad", "tone")
        rate(admin_client, turn, "good", "tone")
        rating = AnswerRating.objects.get()
        assert (rating.is_good, rating.reason, rating.is_open) == (True, "", False)
        rate(admin_client, turn, "none")
        assert not AnswerRating.objects.exists()

    def test_each_of_the_staff_has_an_own_rating_and_sees_the_others(
        self, admin_client: Client, world: World
    ) -> None:
        turn = asked(world, "Hello")
        rate(admin_client, turn, "good")
        dana = staff_with(*RIGHTS)
        page = rate(dana, turn, "bad", "wrong")
        assert AnswerRating.objects.count() == 2
        assert re.search(r"admin : good", words(page))
        assert "dana : bad It says something wrong" in words(admin_client.get(why(turn)))

    def test_a_rating_outlives_the_account(self, admin_client: Client, world: World) -> None:
        turn = asked(world, "Hello")
        rate(staff_with(*RIGHTS), turn, "bad", "wrong")
        User.objects.get(username="dana").delete()
        assert "dana : bad" in words(admin_client.get(why(turn)))

    def test_it_is_audited_with_the_person(self, admin_client: Client, world: World) -> None:
        turn = asked(world, "Hello")
        rate(admin_client, turn, "bad", "tone")
        resolve(admin_client, turn)
        rate(admin_client, turn, "none")
        events = AuditEvent.objects.filter(action__startswith="answer.").order_by("id")
        assert [each.action for each in events] == [
            "answer.rate",
            "answer.resolve",
            "answer.unrate",
        ]
        assert events[0].details == {"good": False, "reason": "tone"}
        for event in events:
            assert (event.actor, event.object_id) == ("admin", str(turn.turn_id))
            assert event.chat in pseudonyms_of(key=audit_key(), chat_id=turn.chat_id)

    @pytest.mark.parametrize(("verdict", "reason"), [("great", ""), ("", ""), ("bad", "mood")])
    def test_what_there_is_not_is_refused(
        self, admin_client: Client, world: World, verdict: str, reason: str
    ) -> None:
        turn = asked(world, "Hello")
        assert rate(admin_client, turn, verdict, reason).status_code == 400
        assert not AnswerRating.objects.exists()

    def test_an_answer_by_hand_is_not_rated(self, admin_client: Client, world: World) -> None:
        turn = asked(world, "Hello")
        Turn.objects.filter(pk=turn.pk).update(by_hand=True)
        assert "Is this a good answer?" not in words(admin_client.get(why(turn)))
        assert rate(admin_client, turn, "good").status_code == 400

    def test_the_list_is_filtered_by_ratings(self, admin_client: Client, world: World) -> None:
        good, bad, none = (asked(world, text) for text in ("One", "Two", "Three"))
        rate(admin_client, good, "good")
        rate(admin_client, bad, "bad")
        assert listed(admin_client, f"{LIST}?review=good") == [good.pk]
        assert listed(admin_client, f"{LIST}?review=bad") == [bad.pk]
        assert listed(admin_client, LIST) == [none.pk, bad.pk, good.pk]
        # Also after it is resolved: it stays rated bad.
        resolve(admin_client, bad)
        assert listed(admin_client, f"{LIST}?review=bad") == [bad.pk]

    def test_who_may_only_look_sees_ratings_and_is_refused(
        self, admin_client: Client, world: World
    ) -> None:
        turn = asked(world, "Hello")
        rate(admin_client, turn, "bad", "tone")
        reader = staff_with("sessions_app.view_turn")
        page = reader.get(why(turn))
        assert "admin : bad" in words(page)
        assert "Is this a good answer?" not in words(page)
        assert "Resolve" not in words(page)
        assert rate(reader, turn, "good").status_code == 403
        assert resolve(reader, turn).status_code == 403
        assert AnswerRating.objects.get().is_open

    def test_who_may_not_see_the_answer_is_refused(self, world: World) -> None:
        turn = asked(world, "Hello")
        reviewer = staff_with("sessions_app.review_chat")
        assert rate(reviewer, turn, "good").status_code == 403
        assert resolve(reviewer, turn).status_code == 403


class TestQueue:
    def test_bad_failed_and_unknown_answers_are_to_be_reviewed_and_no_others(
        self, admin_client: Client, world: World
    ) -> None:
        asked(world, "Good morning")
        unknown = asked(world, "Where can I park?")
        world.provider.fail_next(REFUSED)
        failed = asked(world, "Thank you")
        bad = asked(world, "Goodbye", OTHER_CLIENT)
        rate(admin_client, bad, "bad")
        assert listed(admin_client) == [bad.pk, failed.pk, unknown.pk]
        assert "Answers to review 3" in words(admin_client.get(LIST))
        assert "and nothing was recalled for it." in words(admin_client.get(why(unknown)))
        assert "to be reviewed: it failed." in words(admin_client.get(why(failed)))

    def test_a_question_that_was_answered_with_a_memory_is_not(
        self, admin_client: Client, world: World
    ) -> None:
        world.with_answer_rules(min_similarity=0.0)
        world.remember(CLIENT, "Parking is behind the house")
        asked(world, "Where can I park?")
        assert listed(admin_client) == []

    def test_what_is_rated_good_or_dealt_with_is_gone(
        self, admin_client: Client, world: World
    ) -> None:
        one, two = asked(world, "Where can I park?"), asked(world, "Where can I sit?", OTHER_CLIENT)
        assert listed(admin_client) == [two.pk, one.pk]
        rate(admin_client, one, "good")
        assert listed(admin_client) == [two.pk]
        page = resolve(admin_client, two)
        assert "The answer is resolved." in words(page)
        assert "is to be reviewed:" not in words(page)
        assert listed(admin_client) == []

    def test_a_later_bad_rating_and_a_later_failure_open_it_again(
        self, admin_client: Client, world: World
    ) -> None:
        world.provider.fail_next(REFUSED)
        turn = asked(world, "Thank you")
        resolve(admin_client, turn)
        assert listed(admin_client) == []
        world.provider.fail_next(REFUSED)
        admin_client.post(f"{LIST}{turn.pk}/rerun/")
        world.work()
        assert listed(admin_client) == [turn.pk]
        resolve(admin_client, turn)
        rate(admin_client, turn, "bad")
        assert listed(admin_client) == [turn.pk]

    def test_staff_go_from_one_to_the_next(self, admin_client: Client, world: World) -> None:
        turns = [
            asked(world, "Where can I park?"),
            asked(world, "Hello"),
            asked(world, "Where is it?"),
        ]
        old, new = turns[0], turns[2]
        shown = admin_client.get(QUEUE).content.decode()
        row = re.search(rf'href="([^"]*/{new.pk}/change/[^"]*)"', shown)
        assert row is not None
        page = admin_client.get(html.unescape(row[1]))
        assert "Answers to review 2 left" in words(page)
        assert f'rel="next" href="{why(old, "?queue=1")}"' in page.content.decode()
        assert 'rel="prev"' not in page.content.decode()
        page = admin_client.get(why(old, "?queue=1"))
        assert f'rel="prev" href="{why(new, "?queue=1")}"' in page.content.decode()
        page = resolve(admin_client, new, "?queue=1")
        assert page.redirect_chain == [(why(old, "?queue=1"), 302)]
        page = resolve(admin_client, old, "?queue=1")
        assert page.redirect_chain == [(QUEUE, 302)]
        assert "No other is to be reviewed." in words(page)

    def test_a_rating_stays_in_the_queue(self, admin_client: Client, world: World) -> None:
        turn = asked(world, "Where can I park?")
        page = rate(admin_client, turn, "bad", "unknown", "?queue=1")
        assert page.redirect_chain == [(why(turn, "?queue=1") + "#rating", 302)]
        assert "Resolve, next" in words(page)
