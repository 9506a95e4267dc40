"""A code counts once, also where two type it at the same moment: each request has a connection of
its own, and both have got to the row that they want before either goes on."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.test import Client
from django_otp.plugins.otp_static.models import StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice

from tests.staff.people import (
    CODE,
    TWO_FACTOR,
    begin_two_factor,
    code_now,
    half_way,
    is_in,
    person,
    set_up_two_factor,
    told,
)
from tests.threads import begin_all_blocked

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def dana() -> Client:
    person("dana", "Viewer")
    return half_way()


def at_once(held: QuerySet[Any], work: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each of them returns. They are let go on once all wait for the rows ``held``."""

    with transaction.atomic():
        assert list(held.select_for_update())
        answers = begin_all_blocked(*work)
    return [answer.result() for answer in answers]


def shows_codes(page: Any) -> bool:
    """A client's ``context`` would hold what the other one was shown, too."""
    return len(re.findall(r"<code>\w{5}-\w{5}</code>", page.content.decode())) == 10


@pytest.mark.parametrize("from_paper", [False, True])
def test_one_code_at_two_places_lets_one_of_them_in(dana: Client, from_paper: bool) -> None:
    device, codes = set_up_two_factor(dana)
    before = len(told("login.success"))
    typed = codes[0] if from_paper else code_now(device)
    clients = [half_way(), half_way()]
    at_once(
        TOTPDevice.objects.filter(pk=device.pk),
        [partial(client.post, CODE, {"code": typed}) for client in clients],
    )
    assert sorted(is_in(client) for client in clients) == [False, True]
    assert len(told("login.success")) == before + 1
    assert StaticToken.objects.count() == (9 if from_paper else 10)


def test_a_code_that_is_used_at_a_login_proves_nothing_at_the_same_moment(dana: Client) -> None:
    device, _ = set_up_two_factor(dana)
    code, client = code_now(device), half_way()
    proof = {"do": "codes", "password": "a-password-of-tests", "code": code}
    _, page = at_once(
        TOTPDevice.objects.filter(pk=device.pk),
        [lambda: client.post(CODE, {"code": code}), lambda: dana.post(TWO_FACTOR, proof)],
    )
    assert is_in(client) is not shows_codes(page)


def test_a_second_factor_that_is_confirmed_twice_at_once_is_set_up_once(dana: Client) -> None:
    begin_two_factor(dana)
    confirm = {"do": "confirm", "code": code_now(TOTPDevice.objects.get())}
    same = Client()
    same.cookies = deepcopy(dana.cookies)
    pages = at_once(
        User.objects.filter(username="dana"),
        [partial(client.post, TWO_FACTOR, confirm) for client in (dana, same)],
    )
    assert sorted(shows_codes(page) for page in pages) == [False, True]
    assert StaticToken.objects.count() == 10
    assert len(told("second_factor.set_up")) == 1
