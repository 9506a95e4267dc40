"""Who of the staff wrote a message by hand. The name is looked up by the account's id, so that it
goes with the account."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.utils.translation import gettext_lazy

from sessions_app.models import Message
from sessions_app.models.messages import AUTHOR

SOMEBODY = gettext_lazy("somebody of the staff")


def author_names(messages: Iterable[Message]) -> dict[int, str]:
    """The user names by the accounts' ids, in one query; none where nothing is by hand."""
    keys = {message.metadata.get(AUTHOR) for message in messages}
    return names_of({key for key in keys if isinstance(key, int)})


def names_of(keys: Iterable[int]) -> dict[int, str]:
    found = User.objects.filter(pk__in=list(keys)).values_list("pk", "username")
    return dict(found) if keys else {}
