"""Show what was learned from a turn, and whether the extraction succeeded."""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import pgettext_lazy

from memories_app.models import Memory
from memories_app.review.presentation import VISIBILITIES, memory_link, type_label
from memories_app.store.facade import EXTRACTION
from memoryproject.foundation.admin_kit.display import shown_mark, shown_table
from memoryproject.foundation.errors.translate_error import translate_error
from sessions_app.extraction.facade import NOTHING_LEARNED, turn_with_merged
from sessions_app.models import ExtractionWork, Message, Turn

_OUTCOMES = {
    "learned": pgettext_lazy("facts", "learned"),
    "waiting": pgettext_lazy("facts", "waiting"),
    "unsaid": pgettext_lazy("facts", "unsaid"),
    "forgotten": pgettext_lazy("facts", "forgotten"),
    "secret": pgettext_lazy("facts", "dropped as a password or card number"),
}


def learning_of(turn: Turn) -> tuple[str, str]:
    """Return what was learned from the turn, and how the extraction went.

    Where there are memories, a note that nothing was to be learned would contradict them: they are
    from an earlier try, or came with the messages.
    """
    rows = _learned_rows(turn)
    work = ExtractionWork.objects.filter(turn=turn).first()
    if not rows:
        return _("Nothing learned"), _learning_state(work)
    titles = (_("memory"), _("type"), _("visible to"), _("confidence"))
    says_nothing = work is None or (work.outcome == NOTHING_LEARNED and not work.due)
    return shown_table(titles, rows), "" if says_nothing else _learning_state(work)


def _learned_rows(turn: Turn) -> list[tuple[str, ...]]:
    """Return the memories that come from the turn's messages, in their stored words."""
    messages = Message.objects.filter(turn__in=turn_with_merged(turn)).values("pk")
    memories = Memory.objects.filter(
        tellings__source=EXTRACTION, tellings__source_message_id__in=messages
    )
    return [
        (
            memory_link(memory),
            type_label(memory.type),
            str(VISIBILITIES.get(memory.visibility, memory.visibility)),
            "–" if memory.confidence is None else f"{memory.confidence:g}",
        )
        for memory in memories.distinct().order_by("created_at", "memory_id").defer("terms")
    ]


def _learning_state(work: ExtractionWork | None) -> str:
    """Return whether the extraction is due, its results in numbers, or why it failed."""
    if work is None:
        return _("Learning was off")
    if work.error:
        state = _("will be tried again") if work.due else _("given up")
        return shown_mark(f"{state}: {translate_error(work.error)}", "bad")
    return _("A worker will do it.") if work.due else _outcome(work.outcome)


def _outcome(noted: str) -> str:
    """Translate the parts of a result such as "2 learned, 1 waiting"; keep other texts."""
    parts = [part.partition(" ") for part in noted.split(", ")]
    if not all(count.isdecimal() and name in _OUTCOMES for count, _space, name in parts):
        return _("nothing worth learning") if noted == NOTHING_LEARNED else noted
    return ", ".join(f"{count} {_OUTCOMES[name]}" for count, _space, name in parts)
