"""The question set's pages: what is marked, written and imported, and what Home says of it."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import AnswerRating, CheckDay, CheckQuestion, Turn
from sessions_app.question_pages import NAMES
from sessions_app.tasks import check_questions
from tests.forms import save
from tests.remembering import remember
from tests.shown import found_in, words_of
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db
LIST = "/admin/sessions_app/checkquestion/"
IMPORT = f"{LIST}import/"


def shown(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, address
    return words_of(answer.content.decode())


def imported(client: Client, text: str, **more: str) -> str:
    return words_of(client.post(IMPORT, {"text": text, **more}, follow=True).content.decode())


def test_an_answer_that_is_marked_right_is_listed_with_what_it_expects(
    admin_client: Client, world: World
) -> None:
    memory = remember("We open at 9 on weekdays", visibility="public")
    world.say(CLIENT, "When do you open on weekdays?")
    turn = Turn.objects.get()
    why = f"/admin/sessions_app/turn/{turn.pk}/"
    assert "this is right" in shown(admin_client, f"{why}change/")
    admin_client.post(f"{why}rate/", {"verdict": "good"})
    question = CheckQuestion.objects.get()
    listed = shown(admin_client, LIST)
    assert "When do you open on weekdays?" in listed
    assert "We open at 9 on weekdays" in listed
    page = admin_client.get(f"{LIST}{question.pk}/change/").content.decode()
    assert f"/admin/memories_app/memory/{memory.pk}/change/" in page
    assert 'name="text"' not in page, "nobody edits what a person asked"
    reads = AuditEvent.objects.filter(action="conversation.read", object_type="question")
    assert [event.object_id for event in reads] == [str(question.pk)]
    save(admin_client, f"{LIST}{question.pk}/change/", {"expected": "weekdays"})
    question.refresh_from_db()
    assert (question.expected, question.memory_id) == ("weekdays", memory.pk)
    admin_client.post(f"{LIST}{question.pk}/delete/", {"post": "yes"})
    assert not CheckQuestion.objects.exists()
    assert AnswerRating.objects.count() == 1


def test_a_written_question_needs_words_and_is_in_the_set_once(admin_client: Client) -> None:
    data = {"text": "Is there parking?", "user_role": "client", "language": "en"}
    assert "required" in words_of(admin_client.post(f"{LIST}add/", data).content.decode())
    for _time in range(2):
        last = admin_client.post(f"{LIST}add/", {**data, "expected": "parking"})
    assert "in the set already" in words_of(last.content.decode())
    question = CheckQuestion.objects.get()
    assert (question.created_by, question.source) == ("admin", "hand")
    CheckQuestion.objects.update(state="passes", passed_at=timezone.now())
    change = {**data, "expected": "garage"}
    save(admin_client, f"{LIST}{question.pk}/change/", change)
    question.refresh_from_db()
    assert (question.expected, question.state, question.passed_at) == ("garage", "new", None)


@pytest.mark.parametrize(
    ("table", "stored", "told"),
    [
        ("Is there parking?;parking;owner;en", [("parking", "godfather", "en")], "added: 1"),
        ("יש חניה?\tחניה\tלקוח\tעברית", [("חניה", "client", "he")], "added: 1"),
        (
            "expected words,question\nparking,Is it free?",
            [("parking", "client", "")],
            "left out: 0",
        ),
        ("question;expected;role\nA?;;client\n;b;client\nC?;c;nobody", [], "left out: 3"),
        ("A?;a\na?;b", [("a", "client", "")], "added: 1. Rows left out: 1"),
        ("A?;a;client;xx", [], "left out: 1"),
        (f"{'x' * 501};a", [], "left out: 1"),
    ],
)
def test_a_table_is_imported_and_tells_the_errors_of_its_rows(
    admin_client: Client, table: str, stored: list[Any], told: str
) -> None:
    before = imported(admin_client, table, do="preview")
    assert not CheckQuestion.objects.exists()
    assert "Add the questions" in before
    assert told in imported(admin_client, table, do="store")
    rows = CheckQuestion.objects.values_list("expected", "user_role", "language")
    assert list(rows) == stored


def test_what_can_not_be_read_says_why(admin_client: Client) -> None:
    opened = admin_client.get(f"{LIST}import/")
    assert (opened.status_code, opened.context["form"].errors) == (200, {})
    assert "Choose a file" in imported(admin_client, "", do="preview")
    assert "quotation marks" in imported(admin_client, 'a;"b', do="preview")
    rows = imported(admin_client, "question;words;role\nA?;;client\nB?;b;nobody", do="preview")
    assert "Expected words: This field is required" in rows
    assert "row 3" in rows
    assert "nobody is not one of the available choices" in rows


@pytest.mark.parametrize("key", NAMES["starters"])
def test_each_beginning_has_twenty_questions_that_its_answers_pass(
    admin_client: Client, world: World, key: str
) -> None:
    assert f"?starter={key}" in admin_client.get(LIST).content.decode()
    page = admin_client.get(IMPORT, {"starter": key})
    rows = page.context["rows"]
    text = page.context["form"]["text"].value()
    assert len(rows) == 20
    imported(admin_client, text, do="store")
    assert CheckQuestion.objects.filter(language=key[-2:], user_role="client").count() == 20
    for _number, form, answer in rows:
        assert form.is_valid() or "already" in str(form.errors)
        remember(f"{form['text'].value()} {answer}", visibility="public")
    check_questions()
    assert [each.text for each in CheckQuestion.objects.exclude(state="passes")] == []
    assert "?starter=" not in admin_client.get(LIST).content.decode()


def test_home_names_what_passed_before_and_fails_now(admin_client: Client, world: World) -> None:
    assert 'id="figure-regressed"' in admin_client.get("/admin/").content.decode()
    CheckQuestion.objects.create(text="Never passed?", expected="a", state="fails")
    past = {"state": "fails", "passed_at": timezone.now(), "since": timezone.now()}
    lost = CheckQuestion.objects.create(text="Passed?", expected="b", **past)
    home = admin_client.get("/admin/").content.decode()
    assert f"{LIST}{lost.pk}/change/" in home
    listed = shown(admin_client, f"{LIST}?state=regressed")
    assert "Passed?" in listed
    assert "Never passed?" not in listed


def test_results_are_a_plot_with_a_table(admin_client: Client) -> None:
    CheckDay.objects.create(day="2026-03-01", passed=17, failed=3)
    page = admin_client.get(LIST).content.decode()
    assert '<rect class="passed" x="0.1" y="0" width="0.8" height="17"/>' in page
    assert "<td>17</td><td>3</td>" in page
    # One run is one bar of a week, under its day and beside its scale.
    assert '<svg viewBox="-6 0 7 20"' in page
    plot = words_of(found_in(r'<div class="plot">.*?</div>', page))
    assert plot == "20 0 1 Mar 2026"
    for day in range(2, 9):
        CheckDay.objects.create(day=f"2026-03-{day:02}", passed=20, failed=0)
    page = admin_client.get(LIST).content.decode()
    assert '<svg viewBox="-0 0 8 20"' in page
    plot = words_of(found_in(r'<div class="plot">.*?</div>', page))
    assert plot == "20 0 1 Mar 2026 8 Mar 2026"


def test_who_may_not_see_texts_sees_none(client: Client) -> None:
    CheckQuestion.objects.create(text="Is there parking?", expected="parking")
    user = User.objects.create_user("reader", is_staff=True)
    client.force_login(user)
    rights = ["view_chat", "view_message", "view_memory"]
    for lacking in rights:
        given = [name for name in rights if name != lacking]
        user.user_permissions.set(Permission.objects.filter(codename__in=given))
        assert client.get(LIST).status_code == 403, lacking
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    assert client.get(LIST).status_code == 200
    assert client.get(IMPORT).status_code == 403
