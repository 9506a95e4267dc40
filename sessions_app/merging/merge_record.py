"""Record what a merge moves, so that it can be undone exactly."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Model
from django.utils import timezone

from memories_app.models import Memory, MemoryStatus, SourceDocument
from memories_app.store.same_files import same_files_record
from memoryproject.foundation.audit.audit_events import person_keys
from memoryproject.foundation.outgoing_webhooks.endpoints import endpoints_bound
from memoryproject.foundation.rest_kit.tokens import tokens_bound
from sessions_app.models import (
    Assignment,
    Bookmark,
    Chat,
    ChatAccess,
    ChatAddress,
    ChatLabel,
    ChatPause,
    ChatSession,
    ContactMerge,
    ForgetReceipt,
    Label,
    Note,
    Snooze,
    Turn,
    UsageDay,
)
from sessions_app.models.limits import Standing

CHAT = (
    "whatsapp_chat",
    "provider",
    "number_id",
    "client_name",
    "staff_name",
    "client_phone",
    "language",
    "memory_enabled",
    "created_at",
)
USAGE = (
    "day",
    "is_owner",
    "model_calls",
    "prompt_tokens",
    "completion_tokens",
    "cost",
    "reached",
    "reached_at",
    "told_turn",
)


def record_begin(*, kept: Chat, gone: Chat, by: str) -> ContactMerge:
    """Return the record of a merge, unsaved, before anything is moved."""
    key = gone.pk
    sessions = ChatSession.objects.filter(chat=key)
    return ContactMerge(
        chat=kept,
        gone_id=key,
        merged_at=timezone.now(),
        merged_by=by[:150],
        gone=columns_of(gone, CHAT),
        kept=columns_of(kept, CHAT),
        rows={
            "sessions": _texts(sessions.values_list("pk", flat=True)),
            # Where memory is off, answers belong to no session.
            "turns": _keys(Turn.objects.filter(chat=key, session=None)),
            "memories": _texts(Memory.objects.filter(chat_id=key).values_list("pk", flat=True)),
            "in_force": _in_force(key),
            "unpinned": _in_force(kept.pk, pinned=False),
            "files": same_files_record(from_chat=key, to_chat=kept.pk),
            "documents": _texts(
                SourceDocument.objects.filter(chat_id=key).values_list("pk", flat=True)
            ),
            "notes": _texts(Note.objects.filter(chat=key).values_list("pk", flat=True)),
            "bookmarks": list(
                Bookmark.objects.filter(chat=key, message=None).values_list("user_id", flat=True)
            ),
            "addresses": _keys(ChatAddress.objects.filter(chat=key)),
            "receipts": _keys(ForgetReceipt.objects.filter(chat_id=key)),
            "merges": _texts(ContactMerge.objects.filter(chat=key).values_list("pk", flat=True)),
            "people": person_keys(key),
            "tokens": {"kept": tokens_bound(kept.pk), "gone": tokens_bound(key)},
            "endpoints": {"kept": endpoints_bound(kept.pk), "gone": endpoints_bound(key)},
            "labels": {"kept": labels_read(kept.pk), "gone": labels_read(key)},
            "states": {"kept": states_read(kept.pk), "gone": states_read(key)},
            "usage": [columns_of(day, USAGE) for day in UsageDay.objects.filter(chat=key)],
        },
    )


def record_end(record: ContactMerge, merged: Chat) -> None:
    """Save the record once everything is moved and the merged chat is as it stays."""
    record.chat = merged
    record.rows["after"] = columns_of(merged, CHAT)
    record.rows["states"]["after"] = states_read(merged.pk)
    joined = Memory.objects.filter(
        pk__in=record.rows.pop("in_force"), status=MemoryStatus.SUPERSEDED
    )
    # The fact was known to both: its other memory counts the mentions of both.
    record.rows["joined"] = {str(memory.pk): str(memory.superseded_by_id) for memory in joined}
    others = set(record.rows["joined"].values()) & set(record.rows.pop("unpinned"))
    pinned = Memory.objects.filter(pk__in=others, pinned=True)
    record.rows["pinned"] = _texts(pinned.values_list("pk", flat=True))
    record.save()


def _in_force(chat_id: UUID, **which: Any) -> list[str]:
    active = Memory.objects.filter(chat_id=chat_id, status=MemoryStatus.ACTIVE, **which)
    return _texts(active.values_list("pk", flat=True))


def _texts(keys: Any) -> list[str]:
    return [str(key) for key in keys]


def _keys(rows: Any) -> list[int]:
    return list(rows.order_by("pk").values_list("pk", flat=True))


# Give both contacts of an undone merge what staff had decided about each of them.

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


# Keep columns of a row as JSON, and put them back.

Columns = dict[str, str | None]


def columns_of(row: Model | None, names: Collection[str]) -> Columns | None:
    """Return these columns as texts; None for no row."""
    if row is None:
        return None
    fields: list[Any] = [row._meta.get_field(name) for name in names]
    return {
        field.name: None if field.value_from_object(row) is None else field.value_to_string(row)
        for field in fields
    }


def columns_set(row: Model, columns: Mapping[str, str | None]) -> None:
    """Set these columns of a row, without saving it."""
    for name, value in columns.items():
        field: Any = row._meta.get_field(name)
        setattr(row, field.attname, None if value is None else field.to_python(value))
