"""What can be wrong with an operation on memories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.utils.translation import gettext as _
from django.utils.translation import pgettext_lazy

_FIELDS = {
    "content": pgettext_lazy("field", "content"),
    "type": pgettext_lazy("field", "type"),
    "category": pgettext_lazy("field", "category"),
    "source": pgettext_lazy("field", "source"),
    "tags": pgettext_lazy("field", "tags"),
    "visibility": pgettext_lazy("field", "visibility"),
    "metadata": pgettext_lazy("field", "metadata"),
    "confidence": pgettext_lazy("field", "confidence"),
    "expires_at": pgettext_lazy("field", "expires_at"),
    "memories": pgettext_lazy("field", "memories"),
}
_MOST_TOLD = 20


class MemoryOperationError(Exception):
    """The operation was refused, and nothing of it was stored. The text says why, and what to
    do; ``code`` names the kind for programs. The base of the others."""

    code = "refused"


@dataclass(frozen=True)
class Problem:
    """What is wrong with one field; ``place`` counts the memories of a batch from 0."""

    field: str
    detail: str
    place: int = 0


class MemoryValidationError(MemoryOperationError, ValueError):
    """What was to be stored is wrong; every problem of it is listed."""

    code = "invalid"

    def __init__(self, problems: Sequence[Problem], *, many: bool = False) -> None:
        parts = [_told(problem, many) for problem in problems[:_MOST_TOLD]]
        if len(problems) > _MOST_TOLD:
            parts.append(_("and %(count)s more") % {"count": len(problems) - _MOST_TOLD})
        super().__init__("; ".join(parts))
        self.problems = list(problems)


def field_words(name: str) -> str:
    """A field as programs name it; on pages in another language, as people call it."""
    return str(_FIELDS.get(name, name))


def _told(problem: Problem, many: bool) -> str:
    field = field_words(problem.field)
    if not many:
        return f"{field}: {problem.detail}"
    text = _("memory %(number)s, %(field)s: %(detail)s")
    return text % {"number": problem.place + 1, "field": field, "detail": problem.detail}


class MemoryNotFoundError(MemoryOperationError):
    """There is no memory, or no proposal, with this id."""

    code = "not_found"


class DuplicateFactError(MemoryOperationError):
    """Another memory of the same scope says this already: ``memory_id``."""

    code = "duplicate"

    def __init__(self, memory_id: UUID) -> None:
        text = _("Memory %(id)s says the same there already. Change or erase that one first.")
        super().__init__(text % {"id": memory_id})
        self.memory_id = memory_id


class MemoryStateError(MemoryOperationError):
    """The memory, or the proposal, is in a state in which this can't be done."""

    code = "wrong_state"


class ChangedMeanwhileError(MemoryOperationError):
    """Somebody else changed ``fields`` of the memory since it was read."""

    code = "changed_meanwhile"

    def __init__(self, fields: Sequence[str]) -> None:
        super().__init__(_("Somebody else changed this memory meanwhile. Look, and try again."))
        self.fields = list(fields)
