"""Give both contacts of an undone merge what staff had decided about each of them.

What was decided since the merge can't be told apart: it holds for both from then on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Model

from sessions_app.merging.stored_columns import Columns, columns_of, columns_set
from sessions_app.models import Assignment, ChatAccess, ChatLabel, ChatPause, Label, Snooze
from sessions_app.models.limits import Standing

_ACCESS = ("standing", "reason", "decided_at", "decided_by", "opted_out_at", "noticed_turn")
STATES: tuple[tuple[type[Model], tuple[str, ...]], ...] = (
    (ChatAccess, _ACCESS),
    (ChatPause, ("since", "until", "paused_by")),
    (Assignment, ("assignee", "assigned_at")),
    (Snooze, ("since", "until", "snoozed_by")),
)
# The columns that name a member of staff.
USERS = ("decided_by", "paused_by", "assignee", "snoozed_by")


def states_read(chat_id: UUID) -> dict[str, Columns | None]:
    """Return what is decided about a chat now, by the name of its table."""
    return {
        str(model._meta.model_name): columns_of(_row(model, chat_id), names)
        for model, names in STATES
    }


def states_restore(*, kept: UUID, gone: UUID, states: Mapping[str, Any]) -> None:
    """Restore the states of both chats. ``states``: those of kept, gone and of after the merge.

    Without them the chat that is split off is somebody else: a block holds for them, too, but
    nobody has allowed them.
    """
    now = states_read(kept)
    for model, _names in STATES:
        name = str(model._meta.model_name)
        if "after" in states and now[name] == states["after"].get(name):
            _set(model, kept, states["kept"].get(name))
            _set(model, gone, states["gone"].get(name))
        else:
            _set(model, gone, now[name] if states else _not_allowed(now[name]))


def _not_allowed(columns: Columns | None) -> Columns | None:
    if columns is None or columns.get("standing") != Standing.ALLOWED:
        return columns
    return {**columns, "standing": "", "reason": "", "decided_at": None, "decided_by": None}


def labels_read(chat_id: UUID) -> list[int]:
    labels = ChatLabel.objects.filter(chat=chat_id).order_by("label")
    return list(labels.values_list("label_id", flat=True))


def labels_restore(*, kept: UUID, gone: UUID, labels: Mapping[str, list[int]]) -> None:
    """Give ``gone`` its labels back, and take those from ``kept`` that came with it."""
    own = set(labels["gone"]) - set(labels["kept"])
    ChatLabel.objects.filter(chat=kept, label__in=own).delete()
    there = Label.objects.filter(pk__in=labels["gone"]).values_list("pk", flat=True)
    ChatLabel.objects.bulk_create(ChatLabel(chat_id=gone, label_id=key) for key in there)


def _set(model: type[Model], chat_id: UUID, columns: Columns | None) -> None:
    row = _row(model, chat_id)
    if columns is None:
        if row is not None:
            row.delete()
        return
    columns = dict(columns)
    for name in USERS:
        if columns.get(name) and not User.objects.filter(pk=columns[name]).exists():
            if name == "assignee":
                # Nobody is responsible: the account is gone.
                return
            columns[name] = None
    row = row or model(pk=chat_id)
    columns_set(row, columns)
    row.save()


def _row(model: type[Model], chat_id: UUID) -> Model | None:
    return model._default_manager.filter(pk=chat_id).first()
