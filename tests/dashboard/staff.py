"""Staff with some rights, logged in."""

from __future__ import annotations

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
