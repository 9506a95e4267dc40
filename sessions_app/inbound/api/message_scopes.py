"""The scopes that a message needs, by what its answer shows and does."""

from __future__ import annotations

from memoryproject.foundation.rest_kit.scopes import FORGET, READ, WRITE
from sessions_app.conversations.facade import parse_command

# Every message is stored, so all of them need the scope write.
_OF_COMMANDS = {
    "remember": (WRITE,),
    "reset": (WRITE,),
    "help": (WRITE,),
    "memories": (READ, WRITE),
    "search": (READ, WRITE),
    "export": (READ, WRITE),
    # Where several memories match, the answer lists them.
    "forget": (READ, WRITE, FORGET),
}
_OF_MESSAGES = (READ, WRITE)


def required_scopes(content: str, *, in_group: bool) -> tuple[tuple[str, ...], str]:
    """Return the scopes that saying this needs, and a sentence with the reason.

    ``in_group``: see ``parse_command``. A command that is not listed here needs them all.
    """
    command = parse_command(content, in_group=in_group)
    if command is None:
        return _OF_MESSAGES, "the answer to a message may hold memories and earlier messages."
    needed = _OF_COMMANDS.get(command.name, (READ, WRITE, FORGET))
    return needed, f"/{command.name} needs {_listed(needed)}."


def _listed(names: tuple[str, ...]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
