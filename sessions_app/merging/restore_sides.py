"""Make the chat of addresses that are split off, and give both chats what is theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import F

from memoryproject.foundation.audit.audit_events import person_split
from memoryproject.foundation.outgoing_webhooks.endpoints import endpoints_rebind
from memoryproject.foundation.rest_kit.tokens import tokens_rebind
from sessions_app.merging.merge_record import (
    CHAT,
    USAGE,
    columns_of,
    columns_set,
    labels_restore,
    states_restore,
)
from sessions_app.models import (
    Bookmark,
    Chat,
    ChatAddress,
    ContactMerge,
    ForgetReceipt,
    Message,
    ReviewedMark,
    UsageDay,
)

PHONE = "@c.us"
# What people change of a merged contact stays with the one that remains.
RESTORED = ("client_name", "staff_name", "memory_enabled")
SPENT = ("model_calls", "prompt_tokens", "completion_tokens", "cost")


def chat_bring_back(
    addresses: Sequence[ChatAddress],
    *,
    kept: Chat,
    key: UUID,
    record: ContactMerge | None,
) -> Chat:
    """Return a new chat with these addresses; ``kept`` is reached by the others from now on."""
    main = _main(addresses, record.gone["whatsapp_chat"] if record else "")
    _leave(kept, addresses, record)
    gone = Chat(pk=key)
    if record is None:
        gone.language, gone.memory_enabled = kept.language, kept.memory_enabled
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
    for bound, rebind in (
        (rows["tokens"], tokens_rebind),
        (rows["endpoints"], endpoints_rebind),
    ):
        both = [key for key in bound["gone"] if key in bound["kept"]]
        alone = [key for key in bound["gone"] if key not in both]
        rebind(both, add=gone.pk, remove=None)
        rebind(alone, add=gone.pk, remove=kept.pk)
    _bookmarks(gone, rows["bookmarks"])
    for columns in rows["usage"]:
        _usage_give(kept, gone, columns)


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
