"""The errors of trials."""

from __future__ import annotations

from memoryproject.foundation.errors.stored_errors import ErrorText


class TrialRefusedError(Exception):
    """The trial can't be made; the error says why, by its code."""

    def __init__(self, code: str, /, **params: object) -> None:
        super().__init__(ErrorText(code, **params))


class TrialBusyError(TrialRefusedError):
    """Another trial of this answer is being made."""

    def __init__(self) -> None:
        super().__init__("trial_busy")
