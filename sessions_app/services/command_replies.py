"""Carries out the commands that people write, and says so."""

from __future__ import annotations

import logging

from django.db import DatabaseError

from memories_app.models import Visibility
from memories_app.services.remember import content_hash, memory_remember
from memoryproject.audit.events import Actor
from memoryproject.integrations.embedders.base import Embedder, EmbedderError
from sessions_app.commands import Command
from sessions_app.models import Turn
from sessions_app.roles import GODFATHER
from sessions_app.services.draft import Draft
from sessions_app.texts import text_for

logger = logging.getLogger(__name__)


def command_reply(
    *, turn: Turn, command: Command, embedder: Embedder, longterm_enabled: bool
) -> Draft:
    """The answer to a command. Running it again for the same turn has no second effect."""
    language = turn.chat.language
    if command.name == "help":
        return _say("help", language)
    if turn.session_id is None:
        return _say("memory_disabled", language)
    if command.name == "reset":
        # The session itself ended when the message came in: see intake.
        return _say("reset", language)
    if not longterm_enabled:
        return _say("memory_disabled", language)
    if not command.argument:
        return _say("remember_usage", language)
    return _remember(turn, command.argument, embedder)


def _remember(turn: Turn, fact: str, embedder: Embedder) -> Draft:
    language = turn.chat.language
    owner = turn.user_role == GODFATHER
    try:
        memory_remember(
            content=fact,
            visibility=str(Visibility.OWNER if owner else Visibility.CHAT),
            embedder=embedder,
            actor=Actor("person", chat_id=turn.chat_id),
            chat_id=turn.chat_id,
            source="command",
            source_message_id=turn.message_id,
        )
    except (EmbedderError, DatabaseError) as error:
        logger.error("A memory (%s) was not stored: %s", content_hash(fact)[:12], error)
        draft = _say("remember_failed", language)
        draft.error = str(error)
        return draft
    return _say("remembered", language, content=fact)


def _say(name: str, language: str, **values: str) -> Draft:
    return Draft(text=text_for(name, language, **values), is_system_text=True, model="command")
