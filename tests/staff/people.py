"""The staff of the tests: somebody of each group, and how they log in."""

from __future__ import annotations

import time
from typing import Any

from django.contrib.auth.models import Group, User
from django.test import Client
from django_otp.oath import TOTP
from django_otp.plugins.otp_totp.models import TOTPDevice

from memoryproject.foundation.audit.models import AuditEvent

PASSWORD = "a-password-of-tests"
LOGIN = "/admin/login/"
CODE = "/admin/login/code/"
TWO_FACTOR = "/admin/account/two-factor/"


def person(name: str, *groups: str, **values: Any) -> User:
    """Somebody of the staff, in these groups."""
    user = User.objects.create_user(name, password=PASSWORD, **{"is_staff": True, **values})
    user.groups.set(Group.objects.filter(name__in=groups))
    assert user.groups.count() == len(groups)
    return user


def half_way(name: str = "dana") -> Client:
    """Who has typed the password, and is asked for a code if there is a second factor."""
    client = Client()
    type_password(client, name)
    return client


def type_password(client: Client, name: str, password: str = PASSWORD, **headers: Any) -> Any:
    return client.post(LOGIN, {"username": name, "password": password}, **headers)


def code_now(device: TOTPDevice, steps: int = 0) -> str:
    """What the app shows now, or so many half minutes later."""
    totp = TOTP(device.bin_key, device.step, device.t0, device.digits)
    totp.time = time.time() + steps * device.step
    return f"{totp.token():06d}"


def wrong_code(device: TOTPDevice) -> str:
    right = {code_now(device, steps) for steps in range(-2, 4)}
    return next(f"{each:06d}" for each in range(100) if f"{each:06d}" not in right)


def forget_last_code(user: User) -> None:
    """As if the half minute of the last code were over, and no wrong one was typed."""
    TOTPDevice.objects.filter(user=user).update(
        last_t=-1, throttling_failure_count=0, throttling_failure_timestamp=None
    )


def begin_two_factor(client: Client, password: str = PASSWORD) -> Any:
    return client.post(TWO_FACTOR, {"do": "begin", "password": password})


def set_up_two_factor(client: Client) -> tuple[TOTPDevice, list[str]]:
    """By the page, as the person does; returns the device and the backup codes."""
    begin_two_factor(client)
    device = TOTPDevice.objects.get(confirmed=False)
    page = client.post(TWO_FACTOR, {"do": "confirm", "code": code_now(device)})
    codes: list[str] = page.context["codes"]
    device.refresh_from_db()
    forget_last_code(device.user)
    return device, codes


def is_in(client: Client) -> bool:
    return client.get("/admin/password_change/").status_code == 200


def told(action: str) -> list[AuditEvent]:
    return list(AuditEvent.objects.filter(action=action).order_by("id"))
