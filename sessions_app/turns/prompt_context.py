"""Build the prompt of a session without answering: for integrators with a model of their own."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from memoryproject.foundation.integrations.llm.base import ChatMessage
from memoryproject.foundation.text.characters import estimate_tokens
from sessions_app.conversations.history_queries import History, conversation_walk, last_messages
from sessions_app.conversations.message_text import HistoryMessage
from sessions_app.conversations.session_lifecycle import SessionInChat
from sessions_app.models import ChatSession, Turn
from sessions_app.models.chats import CLIENT
from sessions_app.models.messages import Role
from sessions_app.turns.compose_prompt import (
    Material,
    cards_in_reach,
    known_context_tokens,
    left_out_record,
    lowest_limit,
    prompt_parts,
    recall_for_prompt,
    recalled_record,
    stored_lines,
)
from sessions_app.turns.prompt import Prompt, PromptParts
from sessions_app.turns.prompt_budget import build_prompt, least_tokens, sendable
from sessions_app.turns.turn_dependencies import Dependencies


class BudgetTooSmallError(ValueError):
    """Not even the system text and the last message fit; ``least`` tokens would be enough."""

    def __init__(self, least: int) -> None:
        super().__init__(
            f"max_tokens: The system text and the last message alone have {least} tokens. "
            f"Give at least {least}."
        )
        self.least = least


def context_make(
    *,
    found: SessionInChat,
    dependencies: Dependencies,
    query: str | None = None,
    max_tokens: int | None = None,
    as_client: bool = False,
    now: datetime,
) -> dict[str, Any]:
    """Build the prompt for ``query``, as if it were written in the session now.

    Without a query, the prompt is for the session's last message. Where the last message is the
    query already, it stands there once. ``as_client``: also in the owner's chat.

    Nothing is stored. Returns the ``messages`` in the form that models read, and ``total_tokens``,
    exactly their count; ``memories``: what was recalled, by the names of the replay record;
    ``left_out``: what the budget left out. Raises BudgetTooSmallError.
    """
    walk = conversation_walk(found.session.pk)
    last, after = last_messages(found.session.pk, walk)
    role = dependencies.chat_memory.role_in(found.session.chat, addresses=found.addresses)
    role = CLIENT if as_client else role
    # It is never saved.
    turn = Turn(chat=found.session.chat, session=found.session, user_role=role, asked_at=now)
    room = dependencies.chat_memory.limits.tokens_for(turn.user_role)
    room = (room if max_tokens is None else min(room, max_tokens)) - estimate_tokens(query or "")
    history = None
    if last is not None:
        # It has room beside the last message's answer.
        history = dependencies.chat_memory.history(
            last,
            user_role=turn.user_role,
            max_messages=dependencies.rules.history_max_messages,
            max_tokens=max(room - sum(each.tokens for each in after), 1),
            walk=walk,
        )
    text = query if query is not None else _last_question(found.session, last)
    material = _material(turn, text, history, dependencies)
    parts = prompt_parts(material, dependencies)
    lines = sendable(_lines(turn, history, after, query))
    parts = replace(parts, history=lines, fence=uuid.uuid4().hex[:12])
    prompt = _within(parts, max_tokens, dependencies)
    memories = recalled_record(material.recalled, material.cards, prompt)
    return {
        "messages": [message.as_dict() for message in prompt.messages],
        "memories": [entry for entry in memories if entry["in_prompt"]],
        "total_tokens": prompt.tokens,
        "left_out": left_out_record(history, material.recalled, prompt, prompt.dropped_history),
    }


def _material(
    turn: Turn, text: str, history: History | None, dependencies: Dependencies
) -> Material:
    recalled = recall_for_prompt(
        text,
        chat_id=turn.chat_id,
        user_role=turn.user_role,
        history=history,
        dependencies=dependencies,
    )
    return Material(turn, text, history, recalled, cards_in_reach(turn, history, dependencies))


def _within(parts: PromptParts, max_tokens: int | None, dependencies: Dependencies) -> Prompt:
    """Build the prompt within all limits. Raises BudgetTooSmallError."""
    if max_tokens is not None and least_tokens(parts) > max_tokens:
        raise BudgetTooSmallError(least_tokens(parts))
    limit = lowest_limit(
        max_tokens, dependencies.rules.max_context_tokens, known_context_tokens(dependencies)
    )
    return build_prompt(replace(parts, max_context_tokens=limit))


def _last_question(session: ChatSession, last: HistoryMessage | None) -> str:
    if last is None or last.role == Role.USER:
        return last.content if last else ""
    questions = session.messages.filter(revoked_at=None, role=Role.USER).order_by("-order_num")
    return questions.values_list("content", flat=True).first() or ""


def _lines(
    turn: Turn, history: History | None, after: Sequence[HistoryMessage], query: str | None
) -> list[ChatMessage]:
    lines = stored_lines([*(history.messages if history else ()), *after], turn)
    if query is None:
        return lines
    last = history.messages[-1] if history and not after else None
    if last is not None and last.role == Role.USER and last.content == query:
        return lines
    return [*lines, ChatMessage("user", query)]
