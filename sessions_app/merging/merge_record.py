"""What a merge records to be undone, and how both sides are restored."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import F, Model
from django.utils import timezone

from memories_app.models import Memory, MemoryStatus, SourceDocument
from memories_app.store.same_files import same_files_record
from memoryproject.foundation.audit.audit_events import person_keys, person_split
from memoryproject.foundation.bound_chats import bound_to, rebind
from memoryproject.foundation.outgoing_webhooks.models import WebhookEndpoint
from memoryproject.foundation.rest_kit.models import ApiToken
from sessions_app.models import (
    Assignment,
    Bookmark,
    Chat,
    ChatAccess,
    ChatAddress,
    ChatLabel,
    ChatMark,
    ChatPause,
    ChatSession,
    ContactMerge,
    ForgetReceipt,
    Label,
    Message,
    Note,
    ReviewedMark,
    Rule,
    RuleRun,
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
    "fixed_language",
    "memory_enabled",
    "owner_pause_minutes",
    "created_at",
)
# What is bound to chats by a column, under the name that its rows have in a record.
BOUND: dict[str, type[Model]] = {"tokens": ApiToken, "endpoints": WebhookEndpoint}
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
RUN = ("rule", "event", "did", "at")


def record_begin(*, kept: Chat, gone: Chat, by: str) -> ContactMerge:
    """Return the record of a merge, unsaved, before anything is moved."""
    key = gone.pk
    of_gone = RuleRun.objects.filter(chat=key)
    return ContactMerge(
        chat=kept,
        gone_id=key,
        merged_at=timezone.now(),
        merged_by=by[:150],
        gone=columns_of(gone, CHAT),
        kept=columns_of(kept, CHAT),
        rows={
            "sessions": _ids(ChatSession.objects.filter(chat=key)),
            # Where memory is off, answers belong to no session.
            "turns": _keys(Turn.objects.filter(chat=key, session=None)),
            "memories": _ids(Memory.objects.filter(chat_id=key)),
            "in_force": _in_force(key),
            "unpinned": _in_force(kept.pk, pinned=False),
            "files": same_files_record(from_chat=key, to_chat=kept.pk),
            "documents": _ids(SourceDocument.objects.filter(chat_id=key)),
            "notes": _ids(Note.objects.filter(chat=key)),
            "bookmarks": list(
                Bookmark.objects.filter(chat=key, message=None).values_list("user_id", flat=True)
            ),
            "addresses": _keys(ChatAddress.objects.filter(chat=key)),
            "receipts": _keys(ForgetReceipt.objects.filter(chat_id=key)),
            "merges": _ids(ContactMerge.objects.filter(chat=key)),
            "people": person_keys(key),
            **{
                name: {"kept": bound_to(model, kept.pk), "gone": bound_to(model, key)}
                for name, model in BOUND.items()
            },
            "labels": {"kept": labels_read(kept.pk), "gone": labels_read(key)},
            "states": {"kept": states_read(kept.pk), "gone": states_read(key)},
            "usage": [columns_of(day, USAGE) for day in UsageDay.objects.filter(chat=key)],
            "runs": [columns_of(run, RUN) for run in of_gone],
            # What rules did for both stays with both.
            "runs_of_both": _keys(
                RuleRun.objects.filter(chat=kept, event__in=of_gone.values("event"))
            ),
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
    record.rows["pinned"] = _ids(pinned)
    record.save()


def _in_force(chat_id: UUID, **which: Any) -> list[str]:
    return _ids(Memory.objects.filter(chat_id=chat_id, status=MemoryStatus.ACTIVE, **which))


def _ids(rows: Any) -> list[str]:
    return [str(key) for key in rows.values_list("pk", flat=True)]


def _keys(rows: Any) -> list[int]:
    return list(rows.order_by("pk").values_list("pk", flat=True))


# Give both contacts of an undone merge what staff had decided about each of them.

_ACCESS = (
    "standing",
    "reason",
    "decided_at",
    "decided_by",
    "opted_out_at",
    "noticed_turn",
    "marketing_stopped",
    "marketing_at",
)
STATES: tuple[tuple[type[Model], tuple[str, ...]], ...] = (
    (ChatAccess, _ACCESS),
    (ChatPause, ("since", "until", "paused_by")),
    (Assignment, ("assignee", "assigned_at")),
    (Snooze, ("since", "until", "snoozed_by")),
    (ChatMark, ("rule_name", "due_at")),
)
# The columns that name a member of staff.
USERS = ("decided_by", "paused_by", "assignee", "snoozed_by")


def states_read(chat_id: UUID) -> "dict[str, Columns | None]":
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


def _not_allowed(columns: "Columns | None") -> "Columns | None":
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


def _set(model: type[Model], chat_id: UUID, columns: "Columns | None") -> None:
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


# Restore both sides.


PHONE = "@c.us"
# What people change of a merged contact stays with the one that remains.
RESTORED = ("client_name", "staff_name", "fixed_language", "memory_enabled", "owner_pause_minutes")
SPENT = ("model_calls", "prompt_tokens", "completion_tokens", "cost")


def chat_bring_back(
    addresses: Sequence[ChatAddress], *, kept: Chat, key: UUID, record: ContactMerge | None
) -> Chat:
    """Return a new chat with these addresses; ``kept`` is reached by the others from now on."""
    main = _main(addresses, record.gone["whatsapp_chat"] if record else "")
    _leave(kept, addresses, record)
    gone = Chat(pk=key)
    if record is None:
        gone.language, gone.memory_enabled = kept.language, kept.memory_enabled
        gone.fixed_language = kept.fixed_language
        gone.provider, gone.number_id = main.provider, _number_id(main)
    else:
        columns_set(gone, record.gone)
        if kept.memory_enabled is False and record.rows["after"]["memory_enabled"] != "False":
            # It was switched off since: for the people behind both.
            gone.memory_enabled = False
    gone.whatsapp_chat, gone.client_phone = main.address, _phone(main.address)
    gone.save(force_insert=True)
    if record is not None:
        columns_set(gone, {"created_at": record.gone["created_at"]})
        gone.save(update_fields=["created_at"])
    _use_again(main)
    for link in addresses:
        # Those of the chat's own origin have none.
        origin = (link.origin or kept.pk) if link.origin != main.origin else None
        ChatAddress.objects.filter(pk=link.pk).update(chat=gone, origin=origin)
    return gone


def sides_restore(*, kept: Chat, gone: Chat, record: ContactMerge | None) -> None:
    """Give both chats what a merge had joined.

    Without a record, what staff decided holds for both.
    """
    if record is None:
        states_restore(kept=kept.pk, gone=gone.pk, states={})
        return
    rows = record.rows
    states = rows["states"]
    if ReviewedMark.objects.filter(chat=kept, reviewed_at__gt=record.merged_at).exists():
        # A review ends a snooze: this one was of both.
        states = {side: {**decided, "snooze": None} for side, decided in states.items()}
    states_restore(kept=kept.pk, gone=gone.pk, states=states)
    labels_restore(kept=kept.pk, gone=gone.pk, labels=rows["labels"])
    ForgetReceipt.objects.filter(pk__in=rows["receipts"], chat_id=kept.pk).update(chat_id=gone.pk)
    ContactMerge.objects.filter(pk__in=rows["merges"], chat=kept).update(chat=gone)
    person_split(kept=kept.pk, gone=gone.pk, keys=rows["people"])
    for name, model in BOUND.items():
        bound = rows[name]
        both = [key for key in bound["gone"] if key in bound["kept"]]
        alone = [key for key in bound["gone"] if key not in both]
        rebind(model, both, add=gone.pk, remove=None)
        rebind(model, alone, add=gone.pk, remove=kept.pk)
    _bookmarks(gone, rows["bookmarks"])
    for columns in rows["usage"]:
        _usage_give(kept, gone, columns)
    _runs_give(kept, gone, rows)


def _runs_give(kept: Chat, gone: Chat, rows: Mapping[str, Any]) -> None:
    """Give ``gone`` what rules have done for it; the rules that were deleted since did nothing."""
    rules = {*Rule.objects.values_list("pk", flat=True), None}
    for columns in rows.get("runs", ()):
        run = RuleRun(chat=gone)
        columns_set(run, columns)
        if run.rule_id not in rules:
            continue
        run.save()
        same = RuleRun.objects.filter(chat=kept, rule=run.rule_id, event=run.event)
        same.exclude(pk__in=rows["runs_of_both"]).delete()


def _leave(kept: Chat, addresses: Sequence[ChatAddress], record: ContactMerge | None) -> None:
    """Let the chat be reached by its other addresses, and restore its names."""
    names = {link.address for link in addresses}
    if record is not None:
        now: dict[str, Any] = columns_of(kept, CHAT) or {}
        after = record.rows["after"]
        same = {name: record.kept[name] for name in RESTORED if now[name] == after[name]}
        columns_set(kept, same)
    rest = kept.addresses.exclude(pk__in=[link.pk for link in addresses])
    main = _main(list(rest), record.kept["whatsapp_chat"] if record else "")
    _use_again(main)
    if kept.whatsapp_chat in names:
        kept.whatsapp_chat, kept.provider = main.address, main.provider
        kept.number_id = _number_id(main)
    kept.client_phone = _phone(kept.whatsapp_chat)
    kept.save()


def _main(links: Sequence[ChatAddress], wanted: str) -> ChatAddress:
    """Return the address by which a chat is reached: a phone that is in use, the newest one."""
    return max(
        links,
        key=lambda link: (
            link.left_at is None,
            link.address == wanted,
            link.address.endswith(PHONE),
            link.created_at,
        ),
    )


def _use_again(main: ChatAddress) -> None:
    """Let an address be in use again if the chat would have none that is."""
    if main.left_at is not None:
        ChatAddress.objects.filter(pk=main.pk).update(left_at=None)


def _number_id(link: ChatAddress) -> str:
    """Return the account of ours to which this address wrote last."""
    wrote = Message.objects.filter(
        chat=link.chat_id, sender=link.address, provider=link.provider
    ).order_by("-received_at")
    return wrote.values_list("number_id", flat=True).first() or link.chat.number_id


def _phone(address: str) -> str:
    number, _, domain = address.partition("@")
    return number if f"@{domain}" == PHONE and number.isdigit() else ""


def _bookmarks(gone: Chat, users: Sequence[int]) -> None:
    there = User.objects.filter(pk__in=users).values_list("pk", flat=True)
    Bookmark.objects.bulk_create(Bookmark(chat=gone, user_id=key) for key in there)


def _usage_give(kept: Chat, gone: Chat, columns: Any) -> None:
    """Give a day's usage back, and subtract it from the merged day."""
    used = UsageDay(chat=gone)
    columns_set(used, {name: columns[name] for name in USAGE})
    there = UsageDay.objects.filter(chat=kept, day=used.day)
    enough = {f"{name}__gte": getattr(used, name) for name in SPENT}
    if there.filter(**enough).update(**{name: F(name) - getattr(used, name) for name in SPENT}):
        there.filter(**dict.fromkeys(SPENT, 0)).delete()
        used.save()
