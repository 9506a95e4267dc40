"""What staff change of a chat and say of an answer, over REST."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import AnswerRating, Chat, Label, Note
from sessions_app.turns.answer_review import review_reasons
from tests.api.calling import Api, api_with, error_of
from tests.api.test_chat import CLIENT, OTHER, say

pytestmark = pytest.mark.django_db
PATH = f"chats/{CLIENT}/"


def audited(*prefixes: str) -> list[tuple[str, str]]:
    events = AuditEvent.objects.order_by("id").values_list("action", "actor_kind")
    return [(action, kind) for action, kind in events if action.startswith(prefixes)]


def test_all_that_staff_can_change_is_changed_and_audited(api: Api) -> None:
    say(api, "hello")
    User.objects.create_user("dana", is_staff=True)
    Label.objects.create(name="VIP")
    changes = {
        "name": "Test Client of the port",
        "language": "he",
        "memory_enabled": False,
        "labels": ["vip", "complaint"],
        "assignee": "dana",
        "paused": True,
        "paused_until": "2999-01-01T00:00:00Z",
    }
    etag = api.get(PATH)["ETag"]
    changed = api.call("PATCH", PATH, changes, If_Match=etag)
    assert changed.status_code == 200, changed.content
    shown = {**changes, "labels": ["VIP", "complaint"], "fixed_language": "he"}
    assert shown.items() <= changed.json().items()
    assert (api.get(PATH)["ETag"], api.walk("chats/")) == (changed["ETag"], [changed.json()])
    assert error_of(api.call("PATCH", PATH, {"name": "x"}, If_Match=etag), 412)
    assert set(audited("chat.", "takeover.")) == {
        (action, "api") for action in ("chat.update", "chat.label", "chat.assign", "takeover.pause")
    }
    error_of(api.post("chat/", {"whatsapp_chat": CLIENT, "content": "hello?"}), 409)
    back: dict[str, Any] = {
        "language": "",
        "memory_enabled": None,
        "labels": [],
        "assignee": None,
        "paused": False,
    }
    shown = api.call("PATCH", PATH, back).json()
    assert (shown["fixed_language"], shown["paused_until"], shown["labels"]) == ("", None, [])
    assert {**back, "language": "he", "name": changes["name"]}.items() <= shown.items()
    say(api, "hello again")


@pytest.mark.parametrize(
    ("changes", "attr"),
    [
        ({"client_name": "x"}, "client_name"),
        ({"language": "tlh"}, "language"),
        ({"memory_enabled": "no"}, "memory_enabled"),
        ({"labels": "vip"}, "labels"),
        ({"labels": [""]}, "labels.0"),
        ({"assignee": "nobody"}, "assignee"),
        ({"assignee": "client"}, "assignee"),
        ({"paused_until": "2999-01-01T00:00:00Z"}, "paused_until"),
        ({"paused": True, "paused_until": "2020-01-01T00:00:00Z"}, "paused_until"),
        ({"paused": None}, "paused"),
    ],
)
def test_a_wrong_change_changes_nothing(changes: dict[str, Any], attr: str, api: Api) -> None:
    say(api, "hello")
    User.objects.create_user("client", is_staff=False)
    before = api.get(PATH).json()
    assert error_of(api.call("PATCH", PATH, {"name": "new", **changes}), 400)["attr"] == attr
    assert api.get(PATH).json() == before
    error_of(api.call("PATCH", f"chats/{OTHER}/", {"name": "new"}), 404)
    error_of(api_with("write").call("PATCH", PATH, {"name": "new"}), 403)


def test_a_program_s_rating_is_put_before_staff_and_its_comment_is_forgotten(api: Api) -> None:
    turn = say(api, "The gate code is 4711")
    path = f"turns/{turn['turn_id']}/feedback/"
    given = {"rating": "bad", "comment": "It repeats the gate code 4711."}
    answer = api.post(path, given, Idempotency_Key="k")
    assert (answer.status_code, {**answer.json(), **given}) == (200, answer.json())
    assert api.post(path, given, Idempotency_Key="k").content == answer.content
    rating, note = AnswerRating.objects.get(), Note.objects.get()
    assert (rating.user_name, rating.is_good, note.text) == ("tests", False, given["comment"])
    assert review_reasons(rating.turn_id) == ["bad"]
    assert audited("answer.") == [("answer.rate", "api")]
    staff = Client()
    staff.force_login(User.objects.create_superuser("boss"))
    page = staff.get(f"/admin/sessions_app/turn/{rating.turn_id}/change/")
    assert given["comment"] in page.content.decode()
    # The same program changes its mind, and another one doesn't agree.
    api.post(path, {"rating": "good"})
    api_with("write", name="other").post(path, {"rating": "bad"})
    assert list(AnswerRating.objects.order_by("id").values_list("user_name", "is_good")) == [
        ("tests", True),
        ("other", False),
    ]
    for body in ({}, {"rating": 5}, {"rating": "bad", "stars": 1}):
        error_of(api.post(path, body), 400)
    bound = api_with(chat_ids=[Chat.objects.create(whatsapp_chat=OTHER).pk])
    error_of(bound.post(path, {"rating": "bad"}), 404)
    assert api.delete(PATH).status_code == 200
    assert not Note.objects.exists()
    assert not AnswerRating.objects.exists()
