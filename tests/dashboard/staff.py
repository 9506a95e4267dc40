"""Staff with some rights, logged in, and the pages that they open."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Permission, User
from django.test import Client


def staff_with(*rights: str, name: str = "dana") -> Client:
    """Who has these rights alone, such as "sessions_app.view_turn"."""
    user = User.objects.create_user(name, password="a-password", is_staff=True)
    for right in rights:
        app, _, codename = right.partition(".")
        user.user_permissions.add(
            Permission.objects.get(content_type__app_label=app, codename=codename)
        )
    client = Client()
    client.force_login(user)
    return client


def page(client: Client, address: str, **query: Any) -> str:
    """The HTML of a page that opens."""
    answer: Any = client.get(address, query)
    assert answer.status_code == 200, (address, answer.status_code)
    return b"".join(answer).decode()
