"""Say in words what two contacts hold and what the merged one will look like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from memoryproject.foundation.admin_kit.display import moment_shown
from memoryproject.foundation.text.phone_numbers import number_shown, phone_forms
from sessions_app.merging.merge_chats import MergePreview
from sessions_app.merging.portion import ContactSide
from sessions_app.models import ChatAccess
from sessions_app.models.limits import Standing


@dataclass(frozen=True)
class Compared:
    """One line of the preview: what both have, and what the merged contact will have.

    ``is_addresses``: the values are lists of numbers.
    """

    label: str
    kept: Any
    gone: Any
    merged: Any
    is_addresses: bool = False


def compared(preview: MergePreview) -> list[Compared]:
    """Return the lines of the preview's table."""
    lines: list[tuple[str, Callable[[ContactSide], Any]]] = [
        (_("Name on WhatsApp"), lambda side: side.chat.client_name or "–"),
        (_("Reached at"), lambda side: number_shown(side.chat.whatsapp_chat)),
        (_("First seen"), lambda side: _moment(side.chat.created_at)),
        (_("Last message"), lambda side: _moment(side.last_at)),
        (_("Conversations"), lambda side: side.counts["sessions"]),
        (_("Messages"), lambda side: side.counts["messages"]),
        (_("Memories"), lambda side: side.counts["memories"]),
        (_("Documents"), lambda side: side.counts["documents"]),
        (_("Cards"), lambda side: side.counts["cards"]),
        (_("Notes"), lambda side: side.counts["notes"]),
        (_("Labels"), lambda side: ", ".join(label.name for label in side.labels) or "–"),
        (_("Assigned to"), _assignee),
        (_("Assistant"), _pause),
        (_("Access"), lambda side: access_words(side.access)),
        (_("Memory"), _memory),
    ]
    sides = (preview.kept, preview.gone, preview.merged)
    rows = [
        Compared(label, shown(sides[0]), shown(sides[1]), shown(sides[2])) for label, shown in lines
    ]
    kept, gone, merged = map(_numbers, sides)
    rows.insert(1, Compared(_("Addresses"), kept, gone, merged, is_addresses=True))
    return rows


def warnings_of(preview: MergePreview) -> list[str]:
    """Return what staff should look at twice before they confirm."""
    kept, gone = preview.kept, preview.gone
    found = []
    phones = [kept.chat.client_phone, gone.chat.client_phone]
    if all(phones) and phones[1] not in phone_forms(phones[0]):
        found.append(
            _(
                "These are two phone numbers. Make sure that they are one person's: whoever writes "
                "from either number is answered with everything that was said from both."
            )
        )
    if kept.talking and gone.talking:
        found.append(
            _(
                "Both are in a conversation now. The one with the later message goes on, the other "
                "one ends."
            )
        )
    accounts = {(side.chat.provider, side.chat.number_id) for side in (kept, gone)}
    if len(accounts) > 1:
        found.append(
            _(
                "The two wrote to different accounts of ours. Each message is answered from the "
                "account that it came to; what staff write goes out by the one that was used last."
            )
        )
    if preview.shared_facts:
        found.append(
            ngettext(
                "%(count)s memory of both says the same: one remains.",
                "%(count)s memories of both say the same: one of each remains.",
                preview.shared_facts,
            )
            % {"count": preview.shared_facts}
        )
    if preview.shared_documents:
        found.append(
            ngettext(
                "%(count)s file is there twice: one copy is removed, for good.",
                "%(count)s files are there twice: one copy of each is removed, for good.",
                preview.shared_documents,
            )
            % {"count": preview.shared_documents}
        )
    return found


def access_words(access: ChatAccess | None) -> str:
    """Return whether the contact is blocked or allowed, and whether they opted out."""
    if access is None:
        return "–"
    words = []
    if access.standing:
        words.append(str(Standing(access.standing).label))
    if access.opted_out_at is not None:
        words.append(_("opted out"))
    if access.marketing_stopped:
        words.append(_("no marketing messages"))
    return ", ".join(words) or "–"


def _numbers(side: ContactSide) -> list[str]:
    shown = [number_shown(link.address) for link in side.addresses if link.left_at is None]
    return list(dict.fromkeys(shown or [number_shown(side.chat.whatsapp_chat)]))


def _assignee(side: ContactSide) -> str:
    return side.assignment.assignee.get_username() if side.assignment else "–"


def _pause(side: ContactSide) -> str:
    pause = side.pause
    if pause is None or not pause.holds(timezone.now()):
        return _("on")
    if pause.until is None:
        return _("paused")
    return _("paused until %(time)s") % {"time": _moment(pause.until)}


def _memory(side: ContactSide) -> str:
    states = {None: _("as set for all"), True: _("on"), False: _("off")}
    return states[side.chat.memory_enabled]


def _moment(at: Any) -> str:
    return moment_shown(at) if at else "–"
