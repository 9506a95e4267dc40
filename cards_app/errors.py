"""What is wrong with a session that a card is to be made of."""

from __future__ import annotations


class SessionDataError(ValueError):
    """``path`` says where in the session's data it is, such as ``messages[2].role``; the text
    says what was found there and what is expected."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem
