"""The names of memory states on staff's pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from memories_app.models import MemoryStatus, ProposalKind, ProposalState, Visibility

STATUSES = {
    str(MemoryStatus.ACTIVE): _("active"),
    str(MemoryStatus.SUPERSEDED): _("superseded"),
    str(MemoryStatus.PROPOSED): _("to review"),
}
VISIBILITIES = {
    str(Visibility.OWNER): _("owner only"),
    "chat": _("this client"),
    str(Visibility.PUBLIC): _("everyone"),
}
PROPOSAL_STATES = {
    str(ProposalState.OPEN): _("open"),
    str(ProposalState.ACCEPTED): _("accepted"),
    str(ProposalState.DISMISSED): _("dismissed"),
}
PROPOSAL_KINDS = {
    str(ProposalKind.MERGE): _("duplicate"),
    str(ProposalKind.REPLACE): _("contradiction"),
}
# Types and sources are free texts of integrations; these are our own.
TYPES = {
    "fact": _("fact"),
    "preference": _("preference"),
    "contact": _("contact details"),
    "date": _("date"),
    "task": _("task"),
}
SOURCES = {
    "command": _("told the assistant"),
    "extraction": _("learned from a conversation"),
    "document": _("document"),
    "staff": _("staff"),
    "table": _("imported table"),
    "api": _("integration (API)"),
}
REVISION_REASONS = {
    "updated": _("changed"),
    "superseded": _("superseded"),
    "merged": _("merged into another"),
}
_COLOURS = {
    "active": "good",
    "public": "good",
    "accepted": "good",
    "ready": "good",
    "proposed": "warn",
    "failed": "bad",
}


def type_label(value: str) -> str:
    return str(TYPES.get(value, value))


def source_label(value: str) -> str:
    return str(SOURCES.get(value, value)) or "–"


def mark(words: Mapping[str, Any], value: str) -> SafeString:
    """Render a state as a coloured mark with its translated name."""
    colour = _COLOURS.get(value, "")
    return format_html('<span class="state {}">{}</span>', colour, words.get(value, value))
