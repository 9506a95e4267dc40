"""All routes against an explicit list of what each scope may do; everything else is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from memoryproject.foundation.rest_kit.models import ANY, SCOPES
from memoryproject.foundation.rest_kit.views import ApiView
from sessions_app.models import Chat
from tests.api.calling import Api, api_with, error_of
from tests.api.routes import NOT_FOR_BOUND, PUBLIC, SCOPE_OF

pytestmark = pytest.mark.django_db

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def routes() -> Iterator[tuple[str, str, Any]]:
    """Name, address and view of everything below /api/."""
    yield from _walk(get_resolver().url_patterns, "/")


def _walk(patterns: Any, prefix: str) -> Iterator[tuple[str, str, Any]]:
    for pattern in patterns:
        address = prefix + str(pattern.pattern).lstrip("^")
        if isinstance(pattern, URLResolver):
            yield from _walk(pattern.url_patterns, address)
        elif isinstance(pattern, URLPattern) and address.startswith("/api/"):
            yield str(pattern.name), address, pattern.callback


def filled(address: str) -> str:
    """The address with ids of nothing."""
    address = re.sub(r"<(?:uuid|id):\w+>", str(uuid4()), address)
    return re.sub(r"<\w+:\w+>", "nobody@c.us", address)


ROUTES = {name: (address, view) for name, address, view in routes()}
CALLS = [(name, method) for name, methods in SCOPE_OF.items() for method in methods]


def test_every_route_is_in_the_list_and_no_other() -> None:
    assert set(ROUTES) == set(SCOPE_OF) | PUBLIC


def test_a_view_has_the_methods_and_scopes_of_the_list() -> None:
    for name, scopes in SCOPE_OF.items():
        view = ROUTES[name][1].view_class
        assert issubclass(view, ApiView), name
        assert {method for method in METHODS if hasattr(view, method.lower())} == set(scopes), name
        assert dict(view.scopes) == scopes, name
        assert view.bound_tokens is (name not in NOT_FOR_BOUND), name


@pytest.mark.parametrize(("name", "method"), CALLS)
def test_only_its_own_scope_opens_a_route(name: str, method: str) -> None:
    address = filled(ROUTES[name][0])
    needed = SCOPE_OF[name][method]
    others = [scope for scope in SCOPES if scope != needed]
    assert error_of(Api(None).call(method, address), 401)["code"] == "not_authenticated"
    if needed == ANY:
        opened = {api_with(scope).call(method, address).status_code for scope in SCOPES}
        assert opened in ({200}, {404}), "there is none of this id"
        return
    assert error_of(api_with(*others).call(method, address), 403)["code"] == "permission_denied"
    assert api_with(needed).call(method, address, {}).status_code not in (401, 403)


def test_no_post_that_creates_is_without_its_idempotency_key() -> None:
    for name, method in CALLS:
        if method == "POST" and SCOPE_OF[name][method] == "write":
            handler = ROUTES[name][1].view_class.post
            assert getattr(handler, "takes_idempotency_key", False), name


def test_what_concerns_all_chats_is_refused_to_bound_tokens() -> None:
    chat = Chat.objects.create(whatsapp_chat="15550100123@c.us", provider="console")
    bound = api_with(chat_ids=[chat.pk])
    for name in NOT_FOR_BOUND:
        for method in SCOPE_OF[name]:
            error_of(bound.call(method, filled(ROUTES[name][0]), {}), 403)


def test_other_methods_are_405_and_options_tell_what_there_is(api: Api) -> None:
    for name, scopes in SCOPE_OF.items():
        address = filled(ROUTES[name][0])
        for method in set(METHODS) - set(scopes):
            error_of(api.call(method, address), 405)
        assert set(scopes) <= set(api.call("OPTIONS", address)["Allow"].split(", ")), name
        error_of(Api(None).call("OPTIONS", address), 401)


@pytest.mark.parametrize(
    "path", ["nothing/", "sessions", "sessions/not-a-uuid/", "sessions//", "../v2/sessions/"]
)
def test_an_address_that_is_not_there_is_404_in_the_one_shape(path: str, api: Api) -> None:
    for method in METHODS:
        error_of(api.call(method, path), 404)
        error_of(Api(None).call(method, path), 404)
