"""The figures of what staff are to review, each with the way there."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from memories_app.review.facade import MAX_COUNTED, proposed_count
from memoryproject.staff_site.dashboard import figure_links
from memoryproject.staff_site.dashboard.figure_links import Places
from memoryproject.staff_site.dashboard.number_format import count_shown
from memoryproject.staff_site.dashboard.tiles import Note, Tile
from sessions_app.turns.facade import to_review_ids


def review_tiles(to: Places) -> Iterator[Tile]:
    """Yield the memories and the answers to review; an empty list is a figure, too."""
    if to.may("memories_app.view_memory"):
        count = proposed_count()
        value = f"{count_shown(count)}+" if count == MAX_COUNTED else count_shown(count)
        notes = [Note(_("memories that the assistant isn't sure of"))]
        tone = "warn" if count else ""
        yield Tile("review", _("To review"), value, to.review(), notes, tone)
    if to.may("sessions_app.view_turn"):
        count = len(to_review_ids())
        value = count_shown(count)
        address = to.list_of(figure_links.TURNS, **figure_links.TO_REVIEW)
        notes = [Note(_("bad, failed, or without a memory"))]
        tone = "warn" if count else ""
        yield Tile(
            "answers_review", _("Answers to review"), count_shown(count), address, notes, tone
        )
