"""Tokens: hashed, scoped, bound, expiring, revocable."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.rest_kit.models import ApiToken
from memoryproject.foundation.rest_kit.tokens import token_revoke
from sessions_app.models import Chat, Turn
from tests.api.calling import Api, api_with, error_of, make_token
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db


def made_by_command(*arguments: str) -> str:
    out = StringIO()
    call_command("create_api_token", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_prints_the_token_alone_and_stores_only_its_hash() -> None:
    printed = made_by_command("integration")
    secret = printed.strip()
    assert printed == secret + "\n"
    assert Api(secret).get("sessions/").status_code == 200
    row = ApiToken.objects.get()
    assert secret not in str(vars(row))
    assert secret.startswith(row.prefix)
    assert row.scopes == ["read", "write", "forget", "audit"]
    assert AuditEvent.objects.filter(action="token.create").count() == 1


def test_a_token_may_be_narrowed() -> None:
    made_by_command("a", "--read-only")
    made_by_command("b", "--scope", "read", "--scope", "audit", "--expires", "2d")
    made_by_command("c", "--chat", "15550100123@c.us")
    read_only, narrowed, bound = ApiToken.objects.order_by("id")
    assert read_only.scopes == ["read"]
    assert narrowed.scopes == ["read", "audit"]
    assert narrowed.expires_at is not None
    assert bound.chat_ids == [Chat.objects.get(whatsapp_chat="15550100123@c.us").pk]


@pytest.mark.parametrize(
    "arguments",
    [
        ("x", "--read-only", "--scope", "read"),
        ("x", "--expires", "soon"),
        ("x", "--expires", "2001-01-01"),
        ("x", "--expires", "2026-13-45"),
        ("x", "--expires", "9999-12-31T23:59:59-23:59"),
        ("x", "--chat", "nobody"),
        ("", "--read-only"),
    ],
)
def test_a_token_that_makes_no_sense_is_not_made(arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError) as refused:
        made_by_command(*arguments)
    assert refused.value.returncode == 2
    assert not ApiToken.objects.exists()
    assert not Chat.objects.exists()


@pytest.mark.parametrize("scheme", ["Bearer", "Token", "bearer", "TOKEN"])
def test_a_token_comes_with_either_word(scheme: str) -> None:
    secret = make_token()
    answer = Api(None).get("sessions/", Authorization=f"{scheme} {secret}")
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "header",
    ["", "Token", "Token ", "Token wrong", "Bearer x", "Basic eDp5", "Token a b", "Token \xd7\xaa"],
)
def test_without_a_valid_token_the_answer_is_401(header: str) -> None:
    answer = Api(None).get("sessions/", Authorization=header)
    error_of(answer, 401)
    assert answer["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("headers", [{}, {"Authorization": "{}"}, {"X-Api-Key": "{}"}])
def test_who_sends_the_token_elsewhere_is_told_where_it_belongs(headers: dict[str, str]) -> None:
    given = {name: form.format(make_token()) for name, form in headers.items()}
    error = error_of(Api(None).get("sessions/", **given), 401)
    assert "Authorization" in error["detail"]
    assert "Bearer" in error["detail"]


def test_a_revoked_and_an_expired_token_are_worth_nothing() -> None:
    secret = make_token(expires_at=timezone.now() + timedelta(hours=1))
    assert Api(secret).get("sessions/").status_code == 200
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert "expired" in error_of(Api(secret).get("sessions/"), 401)["detail"]
    ApiToken.objects.update(expires_at=None)
    row = ApiToken.objects.get()
    assert token_revoke(token_id=row.pk, actor=COMMAND_LINE)
    assert not token_revoke(token_id=row.pk, actor=COMMAND_LINE)
    assert "revoked" in error_of(Api(secret).get("sessions/"), 401)["detail"]
    assert AuditEvent.objects.filter(action="token.revoke").count() == 1


def test_the_last_use_is_noted_once_a_minute() -> None:
    secret = make_token()
    assert ApiToken.objects.get().last_used_at is None
    Api(secret).get("sessions/")
    first = ApiToken.objects.get().last_used_at
    assert first is not None
    Api(secret).get("sessions/")
    assert ApiToken.objects.get().last_used_at == first


def test_staff_may_use_their_session_with_csrf(django_user_model: type[User]) -> None:
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    django_user_model.objects.create_superuser("boss", password="x")
    client.login(username="boss", password="x")
    api = Api(None, client)
    assert api.get("sessions/").status_code == 200
    body = {"whatsapp_chat": "15550100123@c.us"}
    assert "CSRF" in error_of(api.post("sessions/", body), 403)["detail"]
    client.get("/admin/login/")
    page = client.get("/admin/password_change/")
    csrf = client.cookies["csrftoken"].value
    assert page.status_code == 200
    assert api.post("sessions/", body, X_CSRFToken=csrf).status_code == 201


def test_who_is_no_staff_is_nobody_staff_have_rights(django_user_model: type[User]) -> None:
    client = Client()
    user = django_user_model.objects.create_user("guest", password="x")
    client.login(username="guest", password="x")
    error_of(Api(None, client).get("sessions/"), 401)
    user.is_staff = True
    user.save()
    assert "Your account" in error_of(Api(None, client).get("sessions/"), 403)["detail"]


EXPORT = "memories/export/"
FACT = {"content": "The gate is closed on Mondays", "visibility": "public"}


@pytest.mark.parametrize(
    ("group", "path", "body", "status"),
    [
        ("Viewer", "memories/", None, 200),
        ("Viewer", "memories/", FACT, 403),
        ("Viewer", EXPORT, None, 403),
        ("Reviewer", EXPORT, None, 403),
        ("Memory manager", EXPORT, None, 200),
        ("Memory manager", "memories/", FACT, 201),
        ("Memory manager", "chat/", {"whatsapp_chat": "15550100123@c.us", "content": "Hi"}, 403),
        ("Auditor", "memories/", None, 403),
        ("Auditor", "audit/", None, 200),
    ],
)
def test_staff_may_do_here_what_their_group_may_do_in_the_admin(
    client: Client, world: World, group: str, path: str, body: Any, status: int
) -> None:
    user = User.objects.create_user("dana", is_staff=True)
    user.groups.add(Group.objects.get(name=group))
    client.force_login(user)
    api = Api(None, client)
    answer = api.get(path) if body is None else api.post(path, body)
    assert answer.status_code == status, answer.content


def test_who_may_not_open_a_page_may_not_read_it_here(client: Client, world: World) -> None:
    """Two rights alone, given by hand."""
    world.say(CLIENT, "Hello")
    user = User.objects.create_user("dana", is_staff=True)
    names = ["view_message", "view_memory"]
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    client.force_login(user)
    api = Api(None, client)
    session = world.session(CLIENT)
    turn = Turn.objects.get()
    for path, needed in {
        "chats/": "view_chat",
        f"chats/{CLIENT}/": "view_chat",
        "sessions/": "view_chatsession",
        f"sessions/{session.pk}/": "view_chatsession",
        f"sessions/{session.pk}/transcript/": "view_chatsession",
        f"sessions/{session.pk}/card/": "view_memorycard",
        f"turns/{turn.turn_id}/": "view_turn",
        f"receipts/{uuid4()}/": "view_forgetreceipt",
        "documents/": "view_memorydocument",
        "documents/context/plan/": "view_memorydocument",
    }.items():
        assert needed in error_of(api.get(path), 403)["detail"], path
    assert api.get(f"sessions/{session.pk}/messages/").status_code == 200


def test_the_admin_makes_shows_and_revokes_a_token(admin_client: Client, admin_user: Any) -> None:
    page = admin_client.post(
        "/admin/api/apitoken/add/",
        {
            "name": "from the admin",
            "scopes": ["read"],
            "chats": "15550100123@c.us",
            "never_expires": "on",
        },
    )
    assert page.status_code == 200
    assert "no-store" in page["Cache-Control"]
    secret = page.context["made"].secret
    assert secret in page.content.decode()
    assert Api(secret).get("sessions/").status_code == 200
    row = ApiToken.objects.get()
    assert row.created_by == admin_user.username
    shown = admin_client.get(f"/admin/api/apitoken/{row.pk}/change/").content.decode()
    assert row.prefix in shown
    assert "15550100123@c.us" in shown
    assert secret not in shown
    admin_client.post(
        "/admin/api/apitoken/", {"action": "revoke_selected", "_selected_action": [row.pk]}
    )
    error_of(Api(secret).get("sessions/"), 401)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"scopes": []},
        {"chats": "nobody"},
        {"expires_at_0": "2001-01-01", "expires_at_1": "12:00:00", "never_expires": ""},
        {"chats": ""},
        {"every_chat": "on"},
        {"never_expires": ""},
        {"expires_at_0": "2100-01-01", "expires_at_1": "12:00:00"},
    ],
)
def test_the_admin_refuses_a_token_of_no_sense(admin_client: Client, wrong: dict[str, Any]) -> None:
    right = {"name": "x", "scopes": ["read"], "chats": "15550100123@c.us", "never_expires": "on"}
    form = {name: value for name, value in {**right, **wrong}.items() if value != ""}
    page = admin_client.post("/admin/api/apitoken/add/", form)
    assert page.status_code == 200
    assert not ApiToken.objects.exists()


def test_a_new_token_in_the_admin_has_the_least_and_all_is_chosen(admin_client: Client) -> None:
    form = admin_client.get("/admin/api/apitoken/add/").context["adminform"].form
    assert form["scopes"].initial == ["read"]
    assert not form["every_chat"].value()
    assert not form["never_expires"].value()
    admin_client.post(
        "/admin/api/apitoken/add/",
        {
            "name": "everything",
            "scopes": ["read", "write", "forget", "audit"],
            "every_chat": "on",
            "expires_at_0": "2100-01-01",
            "expires_at_1": "12:00:00",
        },
    )
    token = ApiToken.objects.get()
    assert (token.chat_ids, len(token.scopes)) == (None, 4)
    assert token.expires_at is not None


# What a caller may do, asked by the caller itself.


def test_a_token_learns_its_name_scopes_chats_end_and_limits(settings: Any) -> None:
    settings.API_RATE_READ, settings.API_RATE_CHAT = 70, 0
    chats = [
        Chat.objects.create(whatsapp_chat=f"1555010012{number}@c.us", provider="console")
        for number in range(3)
    ]
    ends = timezone.now() + timedelta(days=1)
    narrow = make_token("audit", "read", name="narrow", chat_ids=[chats[1].pk], expires_at=ends)
    told = Api(narrow).get("me/").json()
    assert (told["kind"], told["name"]) == ("api", "narrow")
    assert told["scopes"] == ["read", "audit"]
    assert told["whatsapp_chats"] == ["15550100121@c.us"]
    assert told["expires_at"] == ends.isoformat().replace("+00:00", "Z")
    assert told["calls_per_minute"]["read"] == 70
    assert told["calls_per_minute"]["chat"] == 0
    told = api_with().get("me/").json()
    assert told["scopes"] == ["read", "write", "forget", "audit"]
    assert told["whatsapp_chats"] is None
    assert told["expires_at"] is None
    assert not AuditEvent.objects.filter(action="conversation.read").exists()


def test_staff_learn_what_the_admin_lets_them_do() -> None:
    somebody = User.objects.create_user("dana", is_staff=True)
    User.objects.create_superuser("boss")
    scopes = {}
    for name in ("dana", "boss"):
        client = Client(raise_request_exception=False)
        client.force_login(User.objects.get(username=name))
        told = Api(None, client).get("me/").json()
        assert (told["kind"], told["name"], told["whatsapp_chats"]) == ("staff", name, None)
        scopes[name] = told["scopes"]
    assert scopes == {"dana": [], "boss": ["read", "write", "forget", "audit"]}
    somebody.is_staff = False
    somebody.save()
    client = Client(raise_request_exception=False)
    client.force_login(somebody)
    error_of(Api(None, client).get("me/"), 401)
