"""/remember <fact>: store a memory."""

from __future__ import annotations

import logging
from functools import partial

from django.db import DatabaseError
from django.utils import timezone

from cards_app.rules.numbers import holds_card_number
from memories_app.errors import MemoryValidationError
from memories_app.facts.facade import MAX_CONTENT, NewMemory
from memories_app.models import Memory, Visibility
from memories_app.store.facade import content_hash, memory_remember
from memoryproject.foundation.integrations.embedders.base import Embedder, EmbedderError
from memoryproject.foundation.text.characters import cut_at_word
from sessions_app.conversations.facade import ChatGoneError, chats_keep, text_for
from sessions_app.models import Turn
from sessions_app.turns.commands.replies import (
    MAX_LENGTH,
    failed,
    is_owners,
    person,
    say,
    system_text,
)
from sessions_app.turns.draft import Draft

logger = logging.getLogger(__name__)


def remember_reply(*, turn: Turn, fact: str, embedder: Embedder) -> Draft:
    """Store the fact as a memory, only for the godfather or only for this chat.

    The number of a payment card is refused: staff and prompts would show it.
    """
    language = turn.chat.language
    if not fact:
        return say("remember_usage", language)
    if len(fact) > MAX_CONTENT:
        return say("remember_too_long", language, length=len(fact), most=MAX_CONTENT)
    if holds_card_number(fact):
        return say("remember_card", language)
    owner = is_owners(turn)
    try:
        remembered = memory_remember(
            NewMemory(
                content=fact,
                visibility=str(Visibility.OWNER if owner else Visibility.CHAT),
                chat_id=turn.chat_id,
                source="command",
                source_message_id=turn.message_id,
                said_at=min(turn.message.timestamp, timezone.now()) if turn.message else None,
                speaker=turn.message.sender if turn.message and turn.chat.is_group else "",
            ),
            embedder=embedder,
            actor=person(turn),
            before_storing=partial(chats_keep, [turn.chat_id]),
        )
    except (EmbedderError, DatabaseError, MemoryValidationError, ChatGoneError) as error:
        logger.error("A memory (%s) was not stored: %s", content_hash(fact)[:12], error)
        return failed("remember_failed", language, error)
    text = text_for("remembered", language, content=fact)
    replaced = Memory.objects.filter(pk__in=remembered.superseded).order_by("created_at")
    lines = [
        text_for("remember_replaces", language, content=cut_at_word(older.content, MAX_LENGTH))
        for older in replaced
    ]
    return system_text("\n".join([text, *lines]))
