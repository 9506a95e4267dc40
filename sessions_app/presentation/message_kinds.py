"""What staff's pages show of a message: the icon of its kind, its ticks, and who wrote it.

The name of staff is looked up by the account's id, so that it disappears with the account.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from memoryproject.foundation.admin_kit.display import shown_labelled
from memoryproject.foundation.integrations.whatsapp.markdown import to_whatsapp
from memoryproject.foundation.integrations.whatsapp.registry import PROVIDERS
from memoryproject.foundation.tables import read_table
from sessions_app.models import Chat, Message
from sessions_app.models.chats import GODFATHER, chat_role
from sessions_app.models.messages import AUTHOR, BY_PHONE, Role


@dataclass(frozen=True)
class Kind:
    """A kind of message; ``icon`` is a name of Material Symbols."""

    icon: str
    name: Any


@dataclass(frozen=True)
class Tick:
    """The tick that WhatsApp shows: one, two, or two in colour.

    ``look`` is a CSS class of the page.
    """

    text: str
    look: str
    name: Any


_TABLE = read_table(__file__, "message_kinds.yaml")
KINDS = {kind: Kind(**row) for kind, row in _TABLE["kinds"].items()}
TICKS = {status: Tick(**row) for status, row in _TABLE["ticks"].items()}
TROUBLES = _TABLE["troubles"]


def shown_message(message: Message) -> SafeString:
    """Return a message for lists; one that isn't text begins with its kind."""
    kind = kind_of(message.kind)
    return shown_labelled(str(kind.name) if kind else "", message.content)


def text_got(message: Message) -> str:
    """Return a message as the person got it: the Markdown of an answer is sent in other marks."""
    is_markdown = message.answers_id is not None and "system_text" not in message.metadata
    # Programs and terminals get it as it is.
    is_sent = is_markdown and message.provider in PROVIDERS
    return to_whatsapp(message.content) if is_sent else message.content


def kind_of(kind: str) -> Kind | None:
    """Return the kind; None for plain text."""
    if kind == "text":
        return None
    return KINDS.get(kind) or Kind("attach_file", kind)


SOMEBODY = _("somebody of the staff")


def written_by(message: Message, chat: Chat, authors: Mapping[int, str]) -> str:
    """Return the author's name. ``authors``: those of ``author_names``."""
    if message.metadata.get("by_hand"):
        return authors.get(message.metadata.get(AUTHOR, 0)) or str(SOMEBODY)
    if message.metadata.get(BY_PHONE):
        return gettext("From the business's phone")
    if message.role != Role.USER:
        return str(message.get_role_display())
    if chat.is_group:
        return str(message.metadata.get("sender_name") or message.sender) or person_of(chat)
    return person_of(chat)


def person_of(chat: Chat) -> str:
    """Return the name of a chat's person, or the role if the name isn't known."""
    if chat.is_group:
        return gettext("Client")
    if name := chat.staff_name or chat.client_name:
        return name
    is_owners = chat_role(chat, godfather=settings.GODFATHER_PHONE) == GODFATHER
    return gettext("Owner") if is_owners else gettext("Client")


def author_names(messages: Iterable[Message]) -> dict[int, str]:
    """Return user names by account id in one query; empty if no message was written by hand."""
    keys = {message.metadata.get(AUTHOR) for message in messages}
    return names_of({key for key in keys if isinstance(key, int)})


def names_of(keys: Iterable[int]) -> dict[int, str]:
    found = User.objects.filter(pk__in=list(keys)).values_list("pk", "username")
    return dict(found) if keys else {}
