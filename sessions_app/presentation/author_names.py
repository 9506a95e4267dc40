"""Find the staff members who wrote messages by hand.

The name is looked up by the account's id, so that it disappears with the account.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.utils.translation import gettext_lazy

from sessions_app.models import Message
from sessions_app.models.messages import AUTHOR

SOMEBODY = gettext_lazy("somebody of the staff")


def author_names(messages: Iterable[Message]) -> dict[int, str]:
    """Return user names by account id in one query; empty if no message was written by hand."""
    keys = {message.metadata.get(AUTHOR) for message in messages}
    return names_of({key for key in keys if isinstance(key, int)})


def names_of(keys: Iterable[int]) -> dict[int, str]:
    found = User.objects.filter(pk__in=list(keys)).values_list("pk", "username")
    return dict(found) if keys else {}
