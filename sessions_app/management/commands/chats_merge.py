"""Merge the chats that one person has under several spellings of the id."""

from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError, transaction
from django.db.models import Q

from memoryproject.foundation.commands import ReportingCommand, flag
from memoryproject.foundation.integrations.whatsapp import whatsapp_chats
from sessions_app.conversations.chat_addresses import addresses_lock, chat_find, party_of
from sessions_app.merging.merge_chats import chat_merge
from sessions_app.models import Chat, ChatAddress


class Command(ReportingCommand):
    """Run the command. It can be run again at any time."""

    refusals = {DatabaseError: "The database refused: {error} Run it again to go on."}

    arguments = [flag("--dry-run")]

    def run(self, options: dict[str, Any]) -> None:
        report = doubles_merge(dry_run=options["dry_run"])
        self.report(options, vars(report), as_text(report), indent=2, ensure_ascii=False)
        if report.left_alone:
            raise CommandError(f"{len(report.left_alone)} left alone: see the report.")


def as_text(report: "DoublesReport") -> str:
    """Return the report as text."""
    lines = ["Nothing was changed (--dry-run). It would be:"] if report.dry_run else []
    lines.append(f"{len(report.merged)} merged, {len(report.renamed)} renamed")
    lines += ["  merged: {whatsapp_chat} into {stored}".format(**one) for one in report.merged]
    lines += ["  renamed: {whatsapp_chat} to {stored}".format(**one) for one in report.renamed]
    lines += ["  left alone: {whatsapp_chat}: {reason}".format(**one) for one in report.left_alone]
    return "\n".join(lines)


# Merge the chats that one person has because the id was spelled in several ways.


# The name of a chat whose addresses all went to other people.
DETACHED = "@detached"
LEFT_BY_SOMEBODY = "its number has changed hands: staff must decide whose this chat is"
NO_ID = "it is no id of a chat: it stays as it is"


@dataclass
class DoublesReport:
    """``merged``: joined to a chat that existed; ``renamed``: the only chat of this id.

    Both are [{whatsapp_chat, stored}]; ``left_alone``: [{whatsapp_chat, reason}].
    """

    dry_run: bool
    merged: list[dict[str, str]] = field(default_factory=list)
    renamed: list[dict[str, str]] = field(default_factory=list)
    left_alone: list[dict[str, str]] = field(default_factory=list)

    def leave(self, whatsapp_chat: str, reason: str) -> None:
        self.left_alone.append({"whatsapp_chat": whatsapp_chat, "reason": reason})


def doubles_merge(*, dry_run: bool) -> DoublesReport:
    """Give each chat the stored form of its id, and merge those that are then the same.

    Each id is a transaction of its own, so that a second run continues after an error. ``dry_run``:
    roll everything back.
    """
    report = DoublesReport(dry_run)
    with transaction.atomic() if dry_run else nullcontext():
        _each(report)
        if dry_run:
            transaction.set_rollback(True)
    return report


def _each(report: DoublesReport) -> None:
    for name in _unusual_names():
        try:
            stored = whatsapp_chats.whatsapp_chat_normalise(name)
        except whatsapp_chats.WhatsAppChatError:
            report.leave(name, NO_ID)
            continue
        with transaction.atomic():
            _tidy(name, stored, report)


def _unusual_names() -> list[str]:
    """Return the names and current addresses that aren't in the stored form, the oldest first."""
    names = Chat.objects.order_by("created_at", "id").values_list("whatsapp_chat", flat=True)
    current = ChatAddress.objects.filter(left_at__isnull=True).order_by("id")
    found: dict[str, None] = {}
    for rows in (names, current.values_list("address", flat=True)):
        for name in rows.iterator():
            with suppress(whatsapp_chats.WhatsAppChatError):
                if whatsapp_chats.whatsapp_chat_normalise(name) == name:
                    continue
            if not name.endswith(DETACHED):
                found[name] = None
    return list(found)


def _tidy(name: str, stored: str, report: DoublesReport) -> None:
    addresses_lock([name, stored])
    chat = chat_find(name)
    # Not the chat of another form of the number: staff decide about that one.
    at_address = Q(addresses__address=stored, addresses__left_at__isnull=True)
    there = Chat.objects.filter(Q(whatsapp_chat=stored) | at_address).first()
    if chat is None:
        # It was erased or merged meanwhile.
        return
    left = ChatAddress.objects.filter(address=stored, left_at__isnull=False)
    if left.exists():
        report.leave(name, LEFT_BY_SOMEBODY)
        return
    is_double = there is not None and there.pk != chat.pk
    if there is not None and is_double:
        chat = chat_merge(chat, there)
    _rename(chat, name, stored)
    done = report.merged if is_double else report.renamed
    done.append({"whatsapp_chat": name, "stored": stored})


def _rename(chat: Chat, name: str, stored: str) -> None:
    for link in ChatAddress.objects.filter(chat=chat, address=name):
        same = ChatAddress.objects.filter(provider=link.provider, address=stored)
        if same.exists():
            link.delete()
        else:
            link.address = stored
            link.save(update_fields=["address"])
    if chat.whatsapp_chat == name:
        chat.whatsapp_chat = stored
    chat.is_group = chat.whatsapp_chat.endswith(f"@{whatsapp_chats.GROUP_DOMAIN}")
    chat.client_phone = chat.client_phone or party_of(chat.whatsapp_chat).phone or ""
    chat.save(update_fields=["whatsapp_chat", "is_group", "client_phone", "updated_at"])
