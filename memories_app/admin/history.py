"""Shows what became of a memory: its revisions, its tellings, and what it superseded."""

from __future__ import annotations

from django.urls import reverse
from django.utils.formats import date_format
from django.utils.html import format_html_join
from django.utils.timezone import localtime

from memories_app.models import Memory
from memoryproject.lib.admin_display import shown_link, shown_short, shown_table, shown_text

MOST = 100


def memory_link(memory: Memory | None) -> str:
    if memory is None:
        return "–"
    address = reverse("admin:memories_app_memory_change", args=[memory.pk])
    return shown_link(address, f"{memory.content[:60]} ({memory.status})")


def revisions_table(memory: Memory) -> str:
    """What it said before, newest first."""
    revisions = list(memory.revisions.order_by("-number")[:MOST])
    if not revisions:
        return "It was never changed."
    rows = (
        (
            str(revision.number),
            shown_text(revision.content),
            revision.visibility,
            ", ".join(filter(None, [revision.type, revision.category, *revision.tags])),
            revision.reason,
            f"{revision.changed_by_kind} {revision.changed_by_name}".strip(),
            date_format(localtime(revision.changed_at), "SHORT_DATETIME_FORMAT"),
        )
        for revision in revisions
    )
    titles = ("no.", "content until then", "visible to", "labels", "why", "by", "until")
    return shown_table(titles, rows)


def tellings_table(memory: Memory) -> str:
    """When it was told, newest first."""
    rows = (
        (
            date_format(localtime(telling.told_at), "SHORT_DATETIME_FORMAT"),
            telling.source or "–",
            str(telling.source_message_id or "–"),
        )
        for telling in memory.tellings.order_by("-told_at", "-id")[:MOST]
    )
    return shown_table(("told", "by", "message"), rows)


def superseded_list(memory: Memory) -> str:
    """The memories that this one took the place of."""
    older = memory.supersedes.order_by("-superseded_at")[:MOST]
    links = ((memory_link(one), shown_short(one.content, 120)) for one in older)
    return format_html_join("", "<div>{}</div>", ((link,) for link, _ in links)) or "–"
