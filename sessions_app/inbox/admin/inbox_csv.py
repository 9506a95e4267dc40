"""The list of the inbox as a file for spreadsheets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from memoryproject.foundation.admin_kit.bounded_pages import MAX_ROWS
from memoryproject.foundation.admin_kit.list_csv import csv_answer, plain_value
from memoryproject.foundation.audit.audit_events import list_export_record
from memoryproject.foundation.process.narrowing import instance
from sessions_app.inbox.admin.filters_page import wanted_of
from sessions_app.inbox.admin.inbox_list import READ_MESSAGES, chats_listed
from sessions_app.inbox.chat_list import Row, inbox_rows
from sessions_app.models.limits import Standing


def inbox_csv(request: HttpRequest) -> HttpResponse:
    """Return the filtered inbox, at most MAX_ROWS conversations. The audit log has it.

    The last message stands in it for those who may read messages.
    """
    user = instance(request.user, User)
    chats = list(chats_listed(request, wanted_of(request.GET))[:MAX_ROWS])
    rows = inbox_rows(chats, user)
    reads = user.has_perm(READ_MESSAGES)
    list_export_record(request, "chat", len(rows))
    return csv_answer("inbox", _titles(reads=reads), _lines(rows, reads=reads))


def _titles(*, reads: bool) -> list[str]:
    return [
        "id",
        _("Name"),
        _("Address"),
        _("Provider"),
        _("Last activity"),
        *([_("Last message")] if reads else []),
        _("Unread"),
        _("Reviewed"),
        _("Assigned to"),
        _("Labels"),
        _("Failed"),
        _("Unconfirmed"),
        _("Paused"),
        _("Access"),
        _("Opted out"),
        _("Snoozed until"),
    ]


def _lines(rows: Sequence[Row], *, reads: bool) -> Iterator[list[Any]]:
    for row in rows:
        chat, last = row.chat, row.last
        yield [
            chat.pk,
            chat.shown_name,
            chat.whatsapp_chat,
            str(chat.get_provider_display()),
            plain_value(chat.activity.last_at),
            *([last.content if last else ""] if reads else []),
            row.unread,
            _yes(row.reviewed),
            row.assignee.get_username() if row.assignee else "",
            ", ".join(label.name for label in row.labels),
            row.failed,
            row.unconfirmed,
            _yes(row.paused),
            str(Standing(row.standing).label) if row.standing else "",
            _yes(row.opted_out),
            plain_value(row.snoozed_until),
        ]


def _yes(value: bool) -> str:
    return _("yes") if value else _("no")
