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
    str(Visibility.OWNER): _("owner"),
    "chat": _("its chat"),
    str(Visibility.PUBLIC): _("public"),
}
PROPOSAL_STATES = {
    str(ProposalState.OPEN): _("open"),
    str(ProposalState.ACCEPTED): _("accepted"),
    str(ProposalState.DISMISSED): _("dismissed"),
}
PROPOSAL_KINDS = {
    str(ProposalKind.MERGE): _("duplicate"),
    str(ProposalKind.REPLACE): _("says otherwise"),
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


def mark(words: Mapping[str, Any], value: str) -> SafeString:
    """Render a state as a coloured mark with its translated name."""
    colour = _COLOURS.get(value, "")
    return format_html('<span class="state {}">{}</span>', colour, words.get(value, value))
