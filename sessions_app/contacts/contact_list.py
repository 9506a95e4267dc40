"""List the people who write to the assistant: the latest first, with what is kept of them.

A page makes as many queries for fifty people as for one, and reads only the page's own rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet
from django.utils.timesince import timesince
from django.utils.translation import gettext as _

from memories_app.models import MemoryStatus
from memories_app.visibility import memories_for_staff
from memoryproject.foundation.admin_kit.list_csv import Column
from memoryproject.foundation.text.phone_numbers import number_shown
from sessions_app.conversations.chat_addresses import chats_of_other_forms
from sessions_app.conversations.chat_queries import with_name
from sessions_app.limits.figures import chats_with_access
from sessions_app.models import Chat, ChatAccess, ChatAddress, ChatLabel, ChatSession
from sessions_app.models.limits import Standing

PEOPLE_A_PAGE = 50


@dataclass(frozen=True)
class ContactRow:
    """A person in the list.

    ``numbers``: the addresses at which the person is reached now, as people read them. ``same``:
    the contacts that have another form of the number.
    ``sessions`` and ``memories`` are None for a reader who may not see them.
    """

    chat: Chat
    numbers: Sequence[str]
    sessions: int | None
    memories: int | None
    standing: str = ""
    opted_out: bool = False
    labels: Sequence[Any] = field(default=())
    same: Sequence[Chat] = field(default=())

    @property
    def name(self) -> str:
        return self.chat.staff_name or self.chat.client_name or self.numbers[0]

    @property
    def since(self) -> str:
        """Return how long ago the last message came, in one unit."""
        return timesince(self.chat.activity.last_at, depth=1)


def contacts_found(query: str, *, access: str = "", today: date) -> QuerySet[Chat]:
    """Return the people with this text or number in a name or an address, the latest first.

    ``access``: a name of limits.FILTERS, or "". ``today``: the business's day.
    """
    people = Chat.objects.filter(is_group=False, activity__isnull=False)
    if query:
        people = people.filter(with_name(query))
    if access:
        people = chats_with_access(people, access, today=today)
    return people.select_related("activity").order_by("-activity__last_at", "-activity__chat_id")


def alike_contacts(chat: Chat) -> QuerySet[Chat]:
    """Return the people who have one of this contact's names, or its number in another form.

    The latest come first.
    """
    people = Chat.objects.filter(is_group=False, activity__isnull=False)
    names = [name for name in {chat.staff_name, chat.client_name} if name]
    same = [other.pk for other in chats_of_other_forms([chat]).get(chat.pk, [])]
    alike = people.filter(Q(staff_name__in=names) | Q(client_name__in=names) | Q(pk__in=same))
    return alike.select_related("activity").order_by("-activity__last_at", "-activity__chat_id")


def contact_rows(
    people: Sequence[Chat], *, with_sessions: bool, with_memories: bool
) -> list[ContactRow]:
    """Return the rows of these people, with a constant number of queries."""
    keys = [chat.pk for chat in people]
    numbers = numbers_now(people)
    sessions = _counted(ChatSession.objects.filter(chat__in=keys)) if with_sessions else None
    active = memories_for_staff().filter(chat_id__in=keys, status=MemoryStatus.ACTIVE)
    memories = _counted(active) if with_memories else None
    access = ChatAccess.objects.filter(chat__in=keys).in_bulk()
    same = chats_of_other_forms(people)
    labels: dict[UUID, list[Any]] = {}
    for each in ChatLabel.objects.filter(chat__in=keys).select_related("label").order_by("pk"):
        labels.setdefault(each.chat_id, []).append(each.label)
    return [
        ContactRow(
            chat=chat,
            numbers=numbers[chat.pk],
            sessions=None if sessions is None else sessions.get(chat.pk, 0),
            memories=None if memories is None else memories.get(chat.pk, 0),
            standing=access[chat.pk].standing if chat.pk in access else "",
            opted_out=chat.pk in access and access[chat.pk].opted_out_at is not None,
            labels=labels.get(chat.pk, []),
            same=same.get(chat.pk, []),
        )
        for chat in people
    ]


def numbers_now(people: Sequence[Chat]) -> dict[UUID, list[str]]:
    """Return each person's present addresses, the main one first, each once."""
    found = {chat.pk: [chat.whatsapp_chat] for chat in people}
    addresses = ChatAddress.objects.filter(chat__in=list(found), left_at__isnull=True)
    for chat_id, address in addresses.order_by("pk").values_list("chat_id", "address"):
        found[chat_id].append(address)
    return {key: list(dict.fromkeys(map(number_shown, each))) for key, each in found.items()}


def _counted(rows: QuerySet[Any]) -> Mapping[UUID, int]:
    numbers = rows.order_by().values_list("chat_id").annotate(number=Count("pk"))
    return dict(numbers.values_list("chat_id", "number"))


# The list of contacts as a file for spreadsheets.


def contact_columns(*, with_sessions: bool, with_memories: bool) -> Iterator[Column]:
    """Yield the columns of the file; counts that the reader may not see are left out."""
    yield "id", lambda row: row.chat.pk
    yield _("Name by staff"), lambda row: row.chat.staff_name
    yield _("Name on WhatsApp"), lambda row: row.chat.client_name
    yield _("Addresses"), lambda row: ", ".join(row.numbers)
    yield _("First seen"), lambda row: row.chat.created_at
    yield _("Last message"), lambda row: row.chat.activity.last_at
    if with_sessions:
        yield _("Conversations"), lambda row: row.sessions
    if with_memories:
        yield _("Memories"), lambda row: row.memories
    yield _("Access"), lambda row: Standing(row.standing).label if row.standing else ""
    yield _("Opted out"), lambda row: _("yes") if row.opted_out else _("no")
    yield _("Labels"), lambda row: ", ".join(label.name for label in row.labels)
