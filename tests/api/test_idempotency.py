"""The same call twice."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.test import RequestFactory
from django.utils import timezone
from rest_framework.request import Request

from memoryproject.foundation.rest_kit.errors import PreconditionFailed
from memoryproject.foundation.rest_kit.idempotency import KEPT, answers_drop
from memoryproject.foundation.rest_kit.models import IdempotentAnswer
from memoryproject.foundation.rest_kit.tasks import tidy
from memoryproject.foundation.rest_kit.views import etag_of, is_known, require_match
from sessions_app.models import Message
from tests.api.calling import Api, api_with, error_of
from tests.api.test_sessions import opened

pytestmark = pytest.mark.django_db

SAID = {"messages": [{"role": "user", "content": "said once"}]}


@pytest.fixture
def path(api: Api) -> str:
    return f"sessions/{opened(api)['session_id']}/messages/"


TEXT = "User: When do you open?\nAssistant: At nine.\n"
CHAT = {"whatsapp_chat": "15550100456@c.us"}
# What the calls take that create something; {session} is an open one.
CREATING: dict[str, Any] = {
    "sessions/": CHAT,
    "sessions/{session}/messages/": SAID,
    "sessions/{session}/reset/": {},
    "sessions/{session}/card/": {},
    "chat/": {**CHAT, "content": "hello"},
    "memories/": {"content": "We open at 9"},
    "memories/batch/": {"memories": [{"content": "We open at 9"}]},
    "memories/import/": b'{"content": "We open at 9", "visibility": "public"}',
    "transcripts/": {**CHAT, "text": TEXT},
}


@pytest.mark.parametrize("where", CREATING)
def test_whatever_is_created_is_created_once_by_its_key(api: Api, path: str, where: str) -> None:
    session = path.split("/")[1]
    api.post(path, SAID)
    address, body = where.format(session=session), CREATING[where]
    first, again = (api.call("POST", address, body, Idempotency_Key="k") for _ in range(2))
    assert first.status_code in (200, 201), first.content
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again["Idempotent-Replayed"] == "true"
    other = body + b"\n" if isinstance(body, bytes) else {**body, "content": "else"}
    error_of(api.call("POST", address, other, Idempotency_Key="k"), 422)


def test_another_body_or_address_under_the_same_key_is_422(api: Api, path: str) -> None:
    api.post(path, SAID, Idempotency_Key="k")
    other = {"messages": [{"role": "user", "content": "something else"}]}
    assert "new key" in error_of(api.post(path, other, Idempotency_Key="k"), 422)["detail"]
    elsewhere = path.replace("messages", "expire")
    error_of(api.post(elsewhere, SAID, Idempotency_Key="k"), 422)
    assert Message.objects.count() == 1


def test_the_order_of_fields_makes_no_other_body(api: Api, path: str) -> None:
    one = b'{"messages": [{"role": "user", "content": "x"}]}'
    same = b'{"messages":[{"content":"x","role":"user"}]}'
    first = api.call("POST", path, one, Idempotency_Key="k")
    assert api.call("POST", path, same, Idempotency_Key="k").content == first.content


def test_keys_of_two_tokens_are_two_keys(api: Api, path: str) -> None:
    api.post(path, SAID, Idempotency_Key="k")
    assert api_with().post(path, SAID, Idempotency_Key="k").status_code == 201
    assert Message.objects.count() == 2


def test_what_was_refused_may_be_tried_again(api: Api, path: str) -> None:
    wrong = {"messages": [{"role": "robot", "content": "x"}]}
    error_of(api.post(path, wrong, Idempotency_Key="k"), 400)
    assert not IdempotentAnswer.objects.exists()
    assert api.post(path, SAID, Idempotency_Key="k").status_code == 201


def test_of_a_row_only_the_answer_can_be_read(api: Api, path: str) -> None:
    api.post(path, SAID, Idempotency_Key="order of Mr. Nobody")
    row = IdempotentAnswer.objects.get()
    assert "Nobody" not in f"{row.key_hash} {row.request_hash} {row.headers}"
    assert "said once" in row.body


def test_after_a_day_the_key_is_free_again(api: Api, path: str) -> None:
    api.post(path, SAID, Idempotency_Key="k")
    IdempotentAnswer.objects.update(created_at=timezone.now() - KEPT)
    assert api.post(path, SAID, Idempotency_Key="k").status_code == 201
    assert Message.objects.count() == 2
    assert answers_drop() == 0
    IdempotentAnswer.objects.update(created_at=timezone.now() - KEPT)
    assert tidy()["answers"] == 1


def in_progress(api: Api, path: str, **changes: Any) -> IdempotentAnswer:
    """The row of a call that has begun and isn't finished."""
    api.post(path, SAID, Idempotency_Key="k")
    values = {
        "status": None,
        "body": "",
        "lease_token": uuid.uuid4(),
        "lease_until": timezone.now() + IdempotentAnswer.lease_length,
        **changes,
    }
    IdempotentAnswer.objects.update(**values)
    Message.objects.all().delete()
    return IdempotentAnswer.objects.get()


@pytest.mark.parametrize(
    "died",
    [
        {"lease_until": timezone.now() - timedelta(seconds=1)},
        # On this machine, and its process runs no more.
        {"lease_owner": None},
    ],
)
def test_what_a_dead_process_left_is_done_later(api: Api, path: str, died: dict[str, Any]) -> None:
    row = in_progress(api, path)
    if "lease_owner" in died:
        host = row.lease_owner.split(":")[0]
        died = {"lease_owner": f"{host}:4194303:1.00"}
    IdempotentAnswer.objects.update(**died)
    assert api.post(path, SAID, Idempotency_Key="k").status_code == 201
    assert Message.objects.count() == 1


def test_what_was_forgotten_is_not_in_the_answer_any_more(api: Api, path: str) -> None:
    api.post(path, SAID, Idempotency_Key="k")
    swept = api.delete(path).json()["swept"]
    assert swept["api_idempotentanswer"] == 1
    assert IdempotentAnswer.objects.get().body == ""
    assert error_of(api.post(path, SAID, Idempotency_Key="k"), 409)["code"] == "answer_not_kept"
    assert not Message.objects.exists()


# ETags: 304 where nothing changed, 412 where somebody else was first.


ETAG = etag_of("a memory", 3)


def request(**headers: str) -> Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request(RequestFactory().get("/", headers=named))


def test_each_version_has_its_own_etag() -> None:
    assert etag_of("a memory", 3) == ETAG
    assert etag_of("a memory", 4) != ETAG
    assert etag_of("ab", "c") != etag_of("a", "bc")
    assert ETAG.startswith('"')


@pytest.mark.parametrize("header", [ETAG, f"W/{ETAG}", f'"other", {ETAG}', "*"])
def test_who_has_this_version_is_told_so(header: str) -> None:
    assert is_known(request(If_None_Match=header), ETAG)
    assert not is_known(request(If_None_Match='"other"'), ETAG)
    assert not is_known(request(), ETAG)


# The weak one is that of an answer which a proxy compressed.
@pytest.mark.parametrize("header", [ETAG, f'"other", {ETAG}', f"W/{ETAG}", "*"])
def test_who_has_seen_this_version_may_edit_it(header: str) -> None:
    require_match(request(If_Match=header), ETAG)
    require_match(request(), ETAG)


@pytest.mark.parametrize("header", ['"other"', 'W/"other"', "nonsense", ""])
def test_who_has_seen_another_version_may_not(header: str) -> None:
    with pytest.raises(PreconditionFailed):
        require_match(request(If_Match=header), ETAG)
