"""Errors of operations on memories."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.utils.translation import gettext as _, pgettext_lazy

from memoryproject.foundation.errors.stored_errors import error_text, translate_error

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
    "said_at": pgettext_lazy("field", "said_at"),
    "valid_from": pgettext_lazy("field", "valid_from"),
    "valid_until": pgettext_lazy("field", "valid_until"),
    "memories": pgettext_lazy("field", "memories"),
}
_MAX_REPORTED = 20


class MemoryOperationError(Exception):
    """The operation was refused, and nothing of it was stored. Base of the other errors.

    The text states the reason and what to do; ``code`` identifies the kind for programs. ``place``:
    that of the memory in a batch of changes, from 0.
    """

    code = "refused"
    place = 0


@dataclass(frozen=True)
class Problem:
    """A problem of one field; ``place`` counts the memories of a batch from 0."""

    field: str
    detail: str
    place: int = 0


class MemoryValidationError(MemoryOperationError, ValueError):
    """The values to store are invalid; the error lists every problem."""

    code = "invalid"

    def __init__(self, problems: Sequence[Problem], *, many: bool = False) -> None:
        parts = [_render_problem(problem, many) for problem in problems[:_MAX_REPORTED]]
        if len(problems) > _MAX_REPORTED:
            parts.append(_("and %(count)s more") % {"count": len(problems) - _MAX_REPORTED})
        super().__init__("; ".join(parts))
        self.problems = list(problems)


def no_vector_words(error: Exception) -> str:
    """Return in the reader's language why an embedder made no vector."""
    text = _("No vector can be made just now: %(reason)s Try again later.")
    return text % {"reason": translate_error(error_text(error))}


def field_words(name: str) -> str:
    """Return a field's name for programs; on translated pages its readable name."""
    return str(_FIELDS.get(name, name))


def _render_problem(problem: Problem, many: bool) -> str:
    field = field_words(problem.field)
    if not many:
        return f"{field}: {problem.detail}"
    text = _("memory %(number)s, %(field)s: %(detail)s")
    return text % {"number": problem.place + 1, "field": field, "detail": problem.detail}


class MemoryNotFoundError(MemoryOperationError):
    """There is no memory, or no proposal, with this id."""

    code = "not_found"


class DuplicateFactError(MemoryOperationError):
    """Another memory of the same scope already states this: ``memory_id``."""

    code = "duplicate"

    def __init__(self, memory_id: UUID) -> None:
        text = _("Memory %(id)s says the same there already. Change or forget that one first.")
        super().__init__(text % {"id": memory_id})
        self.memory_id = memory_id


class MemoryStateError(MemoryOperationError):
    """The state of the memory or the proposal doesn't allow the operation."""

    code = "wrong_state"


class ChangedMeanwhileError(MemoryOperationError):
    """Somebody else changed ``fields`` of the memory since it was read."""

    code = "changed_meanwhile"

    def __init__(self, fields: Sequence[str]) -> None:
        super().__init__(_("Somebody else changed this memory meanwhile. Look, and try again."))
        self.fields = list(fields)
