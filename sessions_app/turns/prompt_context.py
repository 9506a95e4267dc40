"""Build the prompt of a session without answering: for integrators with a model of their own."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from memoryproject.foundation.integrations.llm.base import ChatMessage
from memoryproject.foundation.integrations.llm.server_traits import Traits, fitted
from memoryproject.foundation.process.narrowing import present
from memoryproject.foundation.text.characters import estimate_tokens
from sessions_app.conversations.history_queries import History, conversation_walk, last_messages
from sessions_app.conversations.session_lifecycle import SessionInChat
from sessions_app.models import CLIENT, ChatSession, Message, Role, Turn
from sessions_app.recall.facade import RecallResult, Viewer
from sessions_app.turns import compose_prompt, prompt_budget
from sessions_app.turns.prompt import Prompt, PromptParts, card_text, recalled_text
from sessions_app.turns.turn_dependencies import Dependencies


@dataclass(frozen=True)
class ContextForm:
    """How a program wants a prompt.

    ``max_tokens``: of all messages; ``max_memories``: of what was recalled; ``max_history``: of the
    conversation before the question. None: as much as the settings allow. ``own_system`` and
    ``persona``: see PromptParts. ``strict``: one system message, and then users and assistants in
    turn, without names and tools, as the templates of many models want them.
    """

    max_tokens: int | None = None
    max_memories: int | None = None
    max_history: int | None = None
    own_system: str = ""
    persona: bool = True
    strict: bool = False


STRICT = Traits(joins_turns=True, no_names=True, tools_as_text=True)


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
    form: ContextForm = ContextForm(),
    as_client: bool = False,
    now: datetime,
) -> dict[str, Any]:
    """Build the prompt for ``query``, as if it were written in the session now.

    Without a query, the prompt is for the session's last message. Where the last message is the
    query already, it stands there once. ``as_client``: also in the owner's chat. Nothing is stored.
    Returns ``messages`` in the form that models read, ``total_tokens`` (exactly their count),
    ``memories`` by the names of the replay record, and ``left_out``. Raises BudgetTooSmallError.
    """
    walk = conversation_walk(found.session.pk)
    last, after = last_messages(found.session.pk, walk)
    chat, memory = found.session.chat, dependencies.chat_memory
    role = CLIENT if as_client else memory.role_in(chat, addresses=found.addresses)
    turn = Turn(chat=chat, session=found.session, user_role=role, asked_at=now)  # Never saved.
    limits = (memory.limits.tokens_for(role), form.max_tokens, form.max_history)
    room = present(compose_prompt.lowest_limit(*limits)) - estimate_tokens(query or "")
    history = None
    if last is not None:
        # It has room beside the last message's answer.
        history = memory.history(
            last,
            user_role=role,
            max_messages=dependencies.rules.history_max_messages,
            max_tokens=max(room - sum(each.tokens for each in after), 1),
            walk=walk,
        )
    text = query if query is not None else _last_question(found.session, last)
    recalled = _recalled(turn, text, history, dependencies)
    material = compose_prompt.material_of(turn, text, history, recalled, dependencies)
    parts = compose_prompt.prompt_parts(material, dependencies)
    lines = _newest(prompt_budget.sendable(_lines(turn, history, after, query)), form.max_history)
    parts, left_out = _own_form(replace(parts, history=lines), form)
    prompt = _within(parts, form, dependencies)
    prompt = replace(prompt, dropped_recalled=prompt.dropped_recalled + left_out)
    memories = compose_prompt.recalled_record(material, prompt)
    return {
        "messages": [message.as_dict() for message in prompt.messages],
        "memories": [entry for entry in memories if entry["in_prompt"]],
        "total_tokens": prompt.tokens,
        "left_out": compose_prompt.left_out_record(
            history, material.recalled, prompt, prompt.dropped_history
        ),
    }


def _newest(lines: list[ChatMessage], max_tokens: int | None) -> list[ChatMessage]:
    """Return the last turn, and of those before it the newest that fit."""
    if max_tokens is None:
        return lines
    kept = prompt_budget.turns(lines)
    while len(kept) > 1 and sum(map(prompt_budget.lines_tokens, kept[:-1])) > max_tokens:
        kept = kept[1:]
    return [line for turn in kept for line in turn]


def _own_form(parts: PromptParts, form: ContextForm) -> tuple[PromptParts, int]:
    """Return the parts in the program's form, and how many recalled texts its limit leaves out."""
    fence = uuid.uuid4().hex[:12]
    parts = replace(parts, fence=fence, own_system=form.own_system, persona=form.persona)
    if form.max_memories is None:
        return parts, 0
    left = form.max_memories
    kept = []
    for text in parts.recalled:
        left -= estimate_tokens(recalled_text(text, parts.time_zone))
        if left < 0:
            break
        kept.append(text)
    cards = []
    for card in parts.cards:
        left -= estimate_tokens(card_text(card, parts.time_zone))
        if left < 0:
            break
        cards.append(card)
    person = parts.person
    if person and (left < 0 or estimate_tokens(person.content) > left):
        person = None
    dropped = len(parts.recalled) - len(kept)
    return replace(parts, recalled=kept, cards=cards, person=person), dropped


# What is remembered has at most so many tokens beside a prompt of another program.
MAX_BESIDE = 4_000


def memory_beside(
    turn: Turn, query: str, texts: Collection[str], dependencies: Dependencies
) -> tuple[str, list[dict[str, Any]]]:
    """Return what to tell another program's model of what is remembered, and the replay's record.

    ``texts``: those of its prompt, which aren't told twice. The text is "" where there is
    nothing to tell.
    """
    found = _recalled(turn, query, None, dependencies)
    known = {" ".join(text.split()) for text in texts}
    hits = [hit for hit in found.hits if " ".join(hit.content.split()) not in known]
    material = compose_prompt.Material(turn, query, None, replace(found, hits=hits), [])
    parts = replace(
        compose_prompt.prompt_parts(material, dependencies),
        history=(),
        persona=False,
        max_context_tokens=MAX_BESIDE,
        role_tokens=None,
    )
    prompt = prompt_budget.build_prompt(parts)
    profile = parts.profile
    if not (prompt.kept_recalled or profile.business_facts or profile.opening_hours):
        return "", compose_prompt.recalled_record(material, prompt)
    return prompt.messages[0].content, compose_prompt.recalled_record(material, prompt)


def _recalled(
    turn: Turn, query: str, history: History | None, dependencies: Dependencies
) -> RecallResult:
    viewer, nearest = Viewer(turn.user_role, turn.chat_id), dependencies.rules.nearest
    return compose_prompt.recall_for_prompt(query, viewer, history, dependencies, nearest=nearest)


def _within(parts: PromptParts, form: ContextForm, dependencies: Dependencies) -> Prompt:
    """Build the prompt within all limits. Raises BudgetTooSmallError."""
    least = needed = prompt_budget.least_tokens(parts)
    if form.strict and form.max_tokens is not None:
        # Names and calls of tools, which are text there, take room of their own.
        smallest = prompt_budget.build_prompt(replace(parts, max_context_tokens=least))
        needed = max(least, sum(each.tokens for each in fitted(smallest.messages, STRICT)))
    if form.max_tokens is not None and needed > form.max_tokens:
        raise BudgetTooSmallError(needed)
    limit = compose_prompt.lowest_limit(
        form.max_tokens,
        dependencies.rules.max_context_tokens,
        compose_prompt.known_context_tokens(dependencies),
    )
    prompt = prompt_budget.build_prompt(replace(parts, max_context_tokens=limit))
    if not form.strict:
        return prompt
    # What joins two messages takes room of its own.
    slack = 0
    while True:
        messages = fitted(prompt.messages, STRICT)
        tokens = sum(message.tokens for message in messages)
        if limit is None or tokens <= limit or limit - slack <= least:
            return replace(prompt, messages=messages, tokens=tokens)
        slack += tokens - limit
        prompt = prompt_budget.build_prompt(
            replace(parts, max_context_tokens=max(limit - slack, least))
        )


def _last_question(session: ChatSession, last: Message | None) -> str:
    if last is None or last.role == Role.USER:
        return last.content if last else ""
    questions = session.messages.filter(revoked_at=None, role=Role.USER).order_by("-order_num")
    return questions.values_list("content", flat=True).first() or ""


def _lines(
    turn: Turn, history: History | None, after: Sequence[Message], query: str | None
) -> list[ChatMessage]:
    lines = compose_prompt.stored_lines([*(history.messages if history else ()), *after], turn)
    if query is None:
        return lines
    last = history.messages[-1] if history and not after else None
    if last is not None and last.role == Role.USER and last.content == query:
        return lines
    return [*lines, ChatMessage("user", query)]
