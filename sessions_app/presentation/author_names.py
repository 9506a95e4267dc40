"""Say who wrote a message: the person, the assistant, or a staff member.

The name of staff is looked up by the account's id, so that it disappears with the account.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.conf import settings
from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from sessions_app.models import Chat, Message
from sessions_app.models.chats import GODFATHER, chat_role
from sessions_app.models.messages import AUTHOR, Role

SOMEBODY = gettext_lazy("somebody of the staff")


def written_by(message: Message, chat: Chat, authors: Mapping[int, str]) -> str:
    """Return the author's name. ``authors``: those of ``author_names``."""
    if message.metadata.get("by_hand"):
        return authors.get(message.metadata.get(AUTHOR, 0)) or str(SOMEBODY)
    if message.role != Role.USER:
        return str(message.get_role_display())
    if chat.is_group:
        return str(message.metadata.get("sender_name") or message.sender) or person_of(chat)
    return person_of(chat)


def person_of(chat: Chat) -> str:
    """Return the name of a chat's person, or the role if the name isn't known."""
    if chat.is_group:
        return _("Client")
    if name := chat.staff_name or chat.client_name:
        return name
    is_owners = chat_role(chat, godfather=settings.GODFATHER_PHONE) == GODFATHER
    return _("Owner") if is_owners else _("Client")


def author_names(messages: Iterable[Message]) -> dict[int, str]:
    """Return user names by account id in one query; empty if no message was written by hand."""
    keys = {message.metadata.get(AUTHOR) for message in messages}
    return names_of({key for key in keys if isinstance(key, int)})


def names_of(keys: Iterable[int]) -> dict[int, str]:
    found = User.objects.filter(pk__in=list(keys)).values_list("pk", "username")
    return dict(found) if keys else {}
