"""The list of contacts as a file for spreadsheets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.utils.translation import gettext as _

from memoryproject.foundation.admin_kit.list_csv import plain_value
from sessions_app.contacts.contact_list import ContactRow
from sessions_app.models.limits import Standing


def contact_titles(*, with_sessions: bool, with_memories: bool) -> list[str]:
    counted = [_("Conversations")] * with_sessions + [_("Memories")] * with_memories
    return [
        "id",
        _("Name by staff"),
        _("Name on WhatsApp"),
        _("Addresses"),
        _("First seen"),
        _("Last message"),
        *counted,
        _("Access"),
        _("Opted out"),
        _("Labels"),
    ]


def contact_lines(rows: Sequence[ContactRow]) -> Iterator[list[Any]]:
    """Yield a line for each contact; counts that the reader may not see are left out."""
    for row in rows:
        chat = row.chat
        counted = [number for number in (row.sessions, row.memories) if number is not None]
        yield [
            chat.pk,
            chat.staff_name,
            chat.client_name,
            ", ".join(row.numbers),
            plain_value(chat.created_at),
            plain_value(chat.activity.last_at),
            *counted,
            str(Standing(row.standing).label) if row.standing else "",
            _("yes") if row.opted_out else _("no"),
            ", ".join(label.name for label in row.labels),
        ]
