"""Every address of memories and of what is kept beside conversations needs its scope."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.urls import URLPattern
from drf_spectacular.generators import SchemaGenerator

from memoryproject.api.scopes import SCOPES
from sessions_app.api.memory_urls import urlpatterns
from sessions_app.models import Chat
from tests.api.calling import Api, error_of
from tests.api.memory_routes import MEMORY_ROUTES, MemoryRoute

pytestmark = pytest.mark.django_db
CHAT = "15550100123@c.us"


@pytest.mark.parametrize("route", MEMORY_ROUTES, ids=str)
def test_without_a_token_nothing_is_answered(route: MemoryRoute) -> None:
    error_of(Api(None).call(route.method, route.path, {}), 401)


@pytest.mark.parametrize("route", MEMORY_ROUTES, ids=str)
def test_only_its_own_scope_lets_a_call_through(
    route: MemoryRoute, token: Callable[..., str]
) -> None:
    others = [scope for scope in SCOPES if scope != route.scope]
    refused = error_of(Api(token(*others)).call(route.method, route.path, {}), 403)
    assert refused["code"] == "permission_denied"
    assert route.scope in refused["detail"]
    assert Api(token(route.scope)).call(route.method, route.path, {}).status_code != 403


@pytest.mark.parametrize("route", [each for each in MEMORY_ROUTES if not each.bound], ids=str)
def test_what_concerns_all_chats_is_refused_to_bound_tokens(
    route: MemoryRoute, token: Callable[..., str]
) -> None:
    chat = Chat.objects.create(whatsapp_chat=CHAT)
    error_of(Api(token(chat_ids=[chat.pk])).call(route.method, route.path, {}), 403)


def test_every_method_of_every_address_is_in_the_list() -> None:
    known = {(each.method, starred(each.path)) for each in MEMORY_ROUTES}
    for pattern in urlpatterns:
        assert isinstance(pattern, URLPattern)
        view = pattern.callback.cls  # type: ignore[attr-defined]
        for method in view.scopes:
            path = str(pattern.pattern)
            assert (method, starred(path)) in known, f"{method} {path}"


def starred(path: str) -> str:
    """With the same mark for every parameter."""
    parts = [
        "*" if "<" in part or "-" in part and len(part) > 30 else part for part in path.split("/")
    ]
    return "/".join(parts)


def test_every_operation_has_an_example_of_its_answer_and_of_its_body() -> None:
    schema = SchemaGenerator().get_schema(request=None, public=True)
    ours = {starred(each.path) for each in MEMORY_ROUTES}
    looked_at = 0
    for path, operations in schema["paths"].items():
        here = "/".join(
            "*" if part.startswith("{") else part
            for part in path.removeprefix("/api/v1/").split("/")
        )
        if here not in ours:
            continue
        for method, operation in operations.items():
            looked_at += 1
            assert operation["summary"], path
            good = [body for code, body in operation["responses"].items() if code[0] == "2"]
            shown = [kind for body in good for kind in body.get("content", {}).values()]
            assert any("examples" in kind for kind in shown), f"{method} {path}"
            body = operation.get("requestBody")
            if body:
                assert any("examples" in kind for kind in body["content"].values()), path
    assert looked_at == len(MEMORY_ROUTES)
