"""Execute the commands that people write, and confirm them."""

from __future__ import annotations

import logging

from django.db import DatabaseError

from memories_app.facts.facade import MAX_CONTENT
from memoryproject.foundation.process.storage import is_disk_full
from sessions_app.conversations.facade import Command
from sessions_app.models import Turn
from sessions_app.models.turns import Outcome
from sessions_app.turns.commands.export import export_reply
from sessions_app.turns.commands.forget import forget_reply
from sessions_app.turns.commands.memories import memories_reply
from sessions_app.turns.commands.remember import remember_reply
from sessions_app.turns.commands.replies import failed, say
from sessions_app.turns.commands.search import search_reply
from sessions_app.turns.draft import Draft
from sessions_app.turns.turn_dependencies import Dependencies

logger = logging.getLogger(__name__)


def command_reply(*, turn: Turn, command: Command, dependencies: Dependencies) -> Draft:
    """Return the answer to a command; a second run for the same turn has no second effect."""
    language = turn.chat.language
    if command.name == "help":
        return say(help_text(turn, dependencies), language)
    if turn.session_id is None:
        return _refused(language)
    if command.name == "reset":
        # The session itself ended when the message came in: see intake.
        return say("reset", language)
    if not dependencies.rules.longterm_enabled:
        return _refused(language)
    length = len(command.argument)
    if length > MAX_CONTENT and command.name != "remember":
        # Nothing that is kept is longer, and searching for it would cost much.
        return say("argument_too_long", language, length=length, most=MAX_CONTENT)
    try:
        return _memory_command(turn, command, dependencies)
    except DatabaseError as error:
        if is_disk_full(error):
            raise
        logger.error("/%s failed: %s", command.name, error)
        return failed("command_failed", language, error)


def _refused(language: str) -> Draft:
    draft = say("memory_disabled", language)
    draft.outcome = Outcome.REFUSED
    return draft


def help_text(turn: Turn, dependencies: Dependencies) -> str:
    """Return the name of the text that offers only what works at the moment."""
    if turn.session_id is None:
        return "help_without_memory"
    return "help" if dependencies.rules.longterm_enabled else "help_without_longterm"


def _memory_command(turn: Turn, command: Command, dependencies: Dependencies) -> Draft:
    if command.name == "memories":
        return memories_reply(turn=turn, page=command.argument)
    if command.name == "search":
        return search_reply(
            turn=turn,
            words=command.argument,
            embedder=dependencies.embedder,
            rules=dependencies.rules,
        )
    if command.name == "forget":
        return forget_reply(
            turn=turn,
            which=command.argument,
            dependencies=dependencies,
            is_plain=bool(command.language),
        )
    if command.name == "export":
        return export_reply(turn=turn)
    return remember_reply(turn=turn, fact=command.argument, embedder=dependencies.embedder)
