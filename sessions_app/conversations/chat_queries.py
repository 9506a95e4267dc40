"""Find chats by name or address."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Reverse
from django.utils.translation import gettext as _

from memoryproject.foundation.integrations.whatsapp.registry import PROVIDERS
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import (
    PERSON_DOMAIN,
    WhatsAppChatError,
    address_forms,
    whatsapp_chat_normalise,
)
from memoryproject.foundation.rest_kit.tokens import TokenError
from memoryproject.foundation.text.phone_numbers import digits_plain
from sessions_app.conversations.chat_addresses import addresses_lock, chat_at_or_new, chat_find
from sessions_app.models import Chat, ChatAddress, Message, Turn
from sessions_app.models.messages import BY_PHONE, Role
from sessions_app.models.turns import BROADCAST, BY_RULE, HANDOVER, TurnState

# Fewer digits would find too many numbers.
MIN_DIGITS = 4
# A whole number, at least without its country's code: it is looked for where addresses end.
WHOLE_NUMBER = 7
ALIKE = 6
MAX_WITH_ENDING = 100
MAX_NAMED = 2
# Of those that only have a part of a name in common, the first ones.
MAX_MEANT = 20
_PERSON = f"@{PERSON_DOMAIN}"
# The indexes hold the runs of one to so many characters: see the first migration.
MAX_PART = 3
# Of what more chats have, a list shows the first ones sooner by reading on from its beginning.
MAX_FOUND = 2_000
_CHAT_TEXTS = (
    "client_name || chr(10) || staff_name || chr(10) || whatsapp_chat || chr(10) || client_phone"
)


def chat_at(whatsapp_chat: str) -> Chat | None:
    """Return the chat of this id, in any spelling: its name, or an address of its person now.

    Older chats may have names that no chat can get any more: they are found by the exact name.
    """
    return next(filter(None, map(chat_find, stored_names(whatsapp_chat))), None)


def contacts_named(text: str) -> list[Chat]:
    """Return the chats that a person means by a whole name, number or id: one, if it is clear."""
    chat = chat_at(text)
    if chat is not None:
        return [chat]
    named = Q(client_name__iexact=text) | Q(staff_name__iexact=text)
    number = _whole_number(text)
    in_use = ChatAddress.objects.filter(left_at__isnull=True, chat__in=_of_whole_number(text))
    reached = [link.chat_id for link in in_use if _ends_with(link.address, number)]
    return list(Chat.objects.filter(named | Q(pk__in=reached)).order_by("pk")[:MAX_NAMED])


def chats_meant(text: str) -> list[Chat]:
    """Return the chats of a whole name, number or id, and without one those of a part of a name."""
    if "\0" in text:
        return []
    return contacts_named(text) or list(Chat.objects.filter(with_name(text))[:MAX_MEANT])


def stored_names(whatsapp_chat: str) -> list[str]:
    """Return the names under which a chat with this id may be stored, the proper one first."""
    try:
        proper = whatsapp_chat_normalise(whatsapp_chat)
    except WhatsAppChatError:
        return [whatsapp_chat]
    return list(dict.fromkeys([proper, whatsapp_chat]))


def address_searched(text: str) -> str:
    """Return what a search by parts of addresses looks for: a whole id in its stored form."""
    if "@" not in text:
        return text.lstrip("+") or text
    return stored_names(text)[0]


def number_searched(text: str) -> str:
    """Return the digits of a number as people write it, "" if the text is none.

    They write blanks and dashes, which addresses don't have, and begin local numbers with a zero,
    which the international form leaves out.
    """
    if any(character.isalpha() for character in text):
        return ""
    digits = "".join(filter(str.isdecimal, digits_plain(text.replace("(0)", ""))))
    international = digits.lstrip("0")
    number = international if len(international) >= MIN_DIGITS else digits
    return number if len(number) >= MIN_DIGITS else ""


def with_address(text: str) -> Q:
    """Return a filter for chats that have, or had, an address with this text or number in it."""
    chats = _of_whole_number(text) or _found(_parts_of_address(text))
    return _part_of_address(text) if chats is None else Q(pk__in=chats)


def with_name(text: str) -> Q:
    """Return a filter for chats by any part of a name or an address; see ``with_address``."""
    chats = _of_whole_number(text) or _found([_part_of_name(text), *_parts_of_address(text)])
    if chats is not None:
        return Q(pk__in=chats)
    named = Q(client_name__icontains=text) | Q(staff_name__icontains=text)
    return named | _part_of_address(text)


def _part_of_address(text: str) -> Q:
    """Return a filter for what is so frequent that a list soon comes upon it."""
    sought, number = address_searched(text), number_searched(text)
    reached = Q(address__icontains=sought)
    found = Q(whatsapp_chat__icontains=sought)
    if number:
        reached |= Q(address__contains=number)
        found |= Q(whatsapp_chat__contains=number) | Q(client_phone__contains=number)
    return found | Q(Exists(ChatAddress.objects.filter(reached, chat=OuterRef("pk"))))


def _part_of_name(text: str) -> "_Search":
    return _Search(Chat, "id", _CHAT_TEXTS, ("client_name", "staff_name"), text)


def _parts_of_address(text: str) -> "list[_Search]":
    """Return the searches for a part of an address, as text and as a number."""
    sought = dict.fromkeys(filter(None, (address_searched(text), number_searched(text))))
    return [
        search
        for each in sought
        for search in (
            _Search(Chat, "id", _CHAT_TEXTS, ("whatsapp_chat", "client_phone"), each),
            _Search(ChatAddress, "chat_id", "address", ("address",), each),
        )
    ]


@dataclass(frozen=True)
class _Search:
    """A search for a text in columns of a table. ``indexed``: what its index of parts holds."""

    model: type[Chat] | type[ChatAddress]
    key: str
    indexed: str
    columns: Sequence[str]
    text: str

    def statement(self) -> tuple[str, list[str]]:
        """Return a SELECT of the chats' ids: the index finds candidates, which are compared."""
        size = min(MAX_PART, len(self.text))
        parts = f"sessions_app_parts({self.indexed}, 1, {MAX_PART})"
        held = " OR ".join(f"upper({column}) LIKE upper(%s)" for column in self.columns)
        like = f"%{connection.ops.prep_for_like_query(self.text)}%"
        sql = (
            f"SELECT {self.key} FROM {self.model._meta.db_table} "  # noqa: S608 constants only
            f"WHERE {parts} @> sessions_app_parts(%s, {size}, {size}) AND ({held})"
        )
        return sql, [self.text, *[like] * len(self.columns)]


def _found(searches: Sequence[_Search]) -> list[UUID] | None:
    """Return the chats that one of the searches finds; None if there are too many, or no text."""
    statements = [search.statement() for search in searches if search.text]
    if not statements:
        return None
    sql = " UNION ALL ".join(f"({sql} LIMIT {MAX_FOUND + 1})" for sql, _values in statements)
    with connection.cursor() as cursor:
        cursor.execute(sql, [value for _sql, values in statements for value in values])
        found = {key for (key,) in cursor.fetchall()}
    return None if len(found) > MAX_FOUND else list(found)


def _whole_number(text: str) -> str:
    """Return the digits of a text that may be a whole number, else ""."""
    number = number_searched(address_searched(text).removesuffix(_PERSON))
    return number if len(number) >= WHOLE_NUMBER else ""


def _of_whole_number(text: str) -> list[UUID]:
    """Return the chats of a whole number, in any form, with or without its country's code."""
    number = _whole_number(text)
    if not number:
        return []
    backwards = ChatAddress.objects.annotate(backwards=Reverse("address"))
    # All forms of a number end alike.
    found = backwards.filter(backwards__startswith=f"{number[-ALIKE:]}{_PERSON}"[::-1])
    links = found.values_list("chat", "address")[:MAX_WITH_ENDING]
    return [chat for chat, address in links if _ends_with(address, number)]


def _ends_with(address: str, number: str) -> bool:
    return any(form.endswith(f"{number}{_PERSON}") for form in address_forms(address))


def chat_name(chat_id: UUID) -> str | None:
    """Return the name by which integrators know the chat; None if it is deleted."""
    return Chat.objects.filter(pk=chat_id).values_list("whatsapp_chat", flat=True).first()


# Options of commands that name a chat.


def chat_option(text: str, *, option: str) -> str:
    """Return the stored form of a chat's id. Raises CommandError with exit code 2."""
    try:
        return whatsapp_chat_normalise(text)
    except WhatsAppChatError as error:
        raise CommandError(f"{option}: {error}", returncode=2) from error


def chat_chosen(text: str, *, option: str = "--chat", returncode: int = 1) -> Chat:
    """Return the chat that an option names. Raises CommandError, with this exit code for none."""
    chat = chat_at(text)
    if chat is None:
        chat_option(text, option=option)
        raise CommandError(f"There is no chat {text}.", returncode=returncode)
    return chat


# Find or create the chats that a token is bound to.


def token_chats(whatsapp_chats: Iterable[str]) -> list[UUID]:
    """Return the ids of these chats.

    Creates a new chat, so that a token can exist before the first message. Raises TokenError.
    """
    names = check_chats(whatsapp_chats)
    with transaction.atomic():
        addresses_lock(names)
        return list(dict.fromkeys(chat_at_or_new(name).pk for name in names))


def check_chats(names: Iterable[str]) -> list[str]:
    """Return the stored forms of these ids, each once. Raises TokenError for another text."""
    proper = set()
    for name in names:
        try:
            proper.add(whatsapp_chat_normalise(name))
        except WhatsAppChatError as error:
            text = _("%(name)s is no chat: write it like 15550100123@c.us.")
            raise TokenError(text % {"name": repr(name)}) from error
    return sorted(proper)


# Compute until when WhatsApp allows messages to a chat, after its person last wrote.


# A person who writes is in the newest session, or in the one before that just ended.
SESSIONS = 2
# A person whose last message to this number is further back than this has left its conversation.
LOOKED_AT = 1_000


def last_heard(chat: Chat, *, looked_at: int = LOOKED_AT) -> datetime | None:
    """Return when the chat last wrote to the number that answers it.

    In a group, anybody's message counts. The cost is the same for a million messages as for
    ten.
    """
    in_session = Message.objects.filter(session=OuterRef(OuterRef("pk"))).order_by("-order_num")
    messages = Message.objects.filter(
        session=OuterRef("pk"),
        order_num__gte=_lately(in_session, "order_num", looked_at),
        role=Role.USER,
        provider=chat.provider,
        number_id=chat.number_id,
    ).order_by("-order_num")
    newest = chat.sessions.order_by("-last_active").annotate(
        heard_at=Subquery(messages.values("timestamp")[:1])
    )
    times = list(newest.values_list("heard_at", flat=True)[:SESSIONS])
    # If memory is off, only the turn shows it.
    of_chat = Turn.objects.filter(chat=chat).order_by("-id")
    turns = of_chat.filter(
        id__gte=_lately(of_chat, "id", looked_at),
        by_hand=False,
        provider=chat.provider,
        number_id=chat.number_id,
    )
    times += list(turns.values_list("asked_at", flat=True)[:1])
    return max((at for at in times if at is not None), default=None)


def _lately(rows: QuerySet[Any], number: str, count: int) -> Coalesce:
    """Return the number at which the newest rows begin."""
    return Coalesce(Subquery(rows.values(number)[count - 1 : count]), 0)


def has_window(provider: str) -> bool:
    """Return whether the provider refuses what staff write once the window has closed."""
    return provider not in PROVIDERS or PROVIDERS[provider].has_window


def window_closes(chat: Chat, max_age: timedelta) -> datetime | None:
    """Return until when we may write; None if nobody has written yet."""
    last = last_heard(chat)
    return last + max_age if last is not None else None


def handovers_open() -> QuerySet[Turn]:
    """Return the turns that handed a conversation over, and nobody has written there since."""
    return without_reply(Turn.objects.filter(context__has_key=HANDOVER))


def without_reply(turns: QuerySet[Turn]) -> QuerySet[Turn]:
    """Leave out the turns after which somebody of the business wrote to the person."""
    of_staff = Turn.objects.filter(chat=OuterRef("chat"), id__gt=OuterRef("pk"), by_hand=True)
    # What goes to many, and what a rule writes, answers nobody.
    of_staff = of_staff.exclude(context__has_any_keys=[BROADCAST, BY_RULE])
    by_phone = Message.objects.filter(
        chat=OuterRef("chat"),
        received_at__gt=OuterRef("created_at"),
        role=Role.ASSISTANT,
        metadata__has_key=BY_PHONE,
    )
    of_staff = of_staff.exclude(state=TurnState.FAILED)
    return turns.filter(~Exists(of_staff), ~Exists(by_phone))
