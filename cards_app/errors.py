"""Errors in the data of a session from which a card is made."""


class SessionDataError(ValueError):
    """The session's data is invalid.

    ``path`` is the place in the data, such as ``messages[2].role``; the text states what was
    found there and what is expected.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem
