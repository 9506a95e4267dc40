"""Answer a message with the chat model: recall, prompt, completion."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from django.utils import timezone

from memoryproject.foundation.errors.stored_errors import error_text
from memoryproject.foundation.integrations.llm.base import ChatModelError, ChatRequest
from memoryproject.foundation.integrations.llm.offline import answer_from_memory
from sessions_app.cards.facade import CardHit, cards_recall
from sessions_app.conversations.facade import (
    History,
    messages_left_out,
    profile_current,
    text_for,
    text_of,
)
from sessions_app.models import AssistantProfile, Message, Turn
from sessions_app.models.messages import Role
from sessions_app.models.roles import CLIENT
from sessions_app.recall.facade import Hit, RecallResult, Viewer, recall
from sessions_app.turns.draft import Draft
from sessions_app.turns.prompt import (
    Earlier,
    Line,
    Profile,
    Prompt,
    PromptParts,
    Recalled,
    build_prompt,
)
from sessions_app.turns.turn_claims import TurnLease
from sessions_app.turns.turn_dependencies import Dependencies

logger = logging.getLogger(__name__)

SPEAKERS = {"user": "they wrote", "assistant": "you answered"}


def model_reply(*, turn: Turn, text: str, lease: TurnLease, dependencies: Dependencies) -> Draft:
    """Return the model's answer, or one from memory alone where the model gives none."""
    draft = Draft(text="")
    history = _history(turn, dependencies)
    recalled = _timed(draft, "recall_ms", lambda: _recall(turn, text, history, dependencies))
    cards = cards_in_reach(turn, history, dependencies)
    lease.renew()
    prompt = build_prompt(prompt_parts(turn, text, history, recalled, cards, dependencies))
    dropped = prompt.dropped_history
    if history is not None and dropped and dependencies.chat_memory.strategy.fills_gaps:
        # Messages that don't fit into the model's context also go into the shortened passage.
        kept = history.messages[dropped:]
        room = sum(message.tokens for message in kept) + history.summary_tokens
        history = _history(turn, dependencies, max_tokens=room)
        prompt = build_prompt(prompt_parts(turn, text, history, recalled, cards, dependencies))
        dropped += prompt.dropped_history
    _record(draft, history, recalled, cards, prompt, dropped)
    kept_texts = [hit.content for hit in recalled.hits[: len(prompt.kept_recalled)]]
    request = ChatRequest(prompt.messages, recalled=kept_texts, language=turn.chat.language or "en")
    try:
        completion = _timed(
            draft,
            "model_ms",
            lambda: dependencies.chat_model.complete(request, before_attempt=lease.renew),
        )
    except ChatModelError as error:
        logger.error("The chat model gave no answer: %s", error)
        draft.error = error_text(error)
        draft.model = dependencies.chat_model.name
        draft.text = _without_model(kept_texts, turn.chat.language)
        draft.is_system_text = True
    else:
        draft.text = completion.text
        draft.is_system_text = completion.is_recital
        draft.model = completion.model
        draft.prompt_tokens = completion.prompt_tokens
        draft.completion_tokens = completion.completion_tokens
    if recalled.degraded:
        draft.text += "\n\n" + text_for("memory_unavailable", turn.chat.language)
    return draft


def _history(
    turn: Turn, dependencies: Dependencies, *, max_tokens: int | None = None
) -> History | None:
    """Return the history, or None where memory is off: then there is only the message."""
    if turn.message is None:
        return None
    return dependencies.chat_memory.history(
        turn=turn, max_messages=dependencies.rules.history_max_messages, max_tokens=max_tokens
    )


def _recall(
    turn: Turn, text: str, history: History | None, dependencies: Dependencies
) -> RecallResult:
    if history is None or not dependencies.rules.longterm_enabled:
        return RecallResult([])
    return recall(
        query=text,
        viewer=Viewer(user_role=turn.user_role or CLIENT, chat_id=turn.chat_id),
        embedder=dependencies.embedder,
        top_k=dependencies.rules.top_k,
        min_similarity=dependencies.rules.min_similarity,
        messages_where=messages_left_out(turn=turn, history=history),
    )


def cards_in_reach(
    turn: Turn, history: History | None, dependencies: Dependencies
) -> list[CardHit]:
    """Return the cards that the turn may use.

    There are none where memory is off, or where long-term memory is off.
    """
    if history is None or not dependencies.rules.longterm_enabled:
        return []
    return cards_recall(turn=turn, most=dependencies.rules.cards_in_prompt)


def prompt_parts(
    turn: Turn,
    text: str,
    history: History | None,
    recalled: RecallResult,
    cards: Sequence[CardHit],
    dependencies: Dependencies,
) -> PromptParts:
    lines = [_line(message, turn) for message in history.messages] if history else []
    return PromptParts(
        profile=profile_for_prompt(profile_current()),
        now=timezone.now(),
        time_zone=dependencies.rules.time_zone,
        fence=turn.turn_id.hex[:12],
        user_role=turn.user_role,
        is_group=turn.chat.is_group,
        recalled=[_recalled(hit) for hit in recalled.hits],
        cards=[Earlier(card.content, card.said_on) for card in cards],
        summary=history.summary_text if history else "",
        passage=history.passage if history else "",
        history=lines or [Line("user", text)],
        max_context_tokens=dependencies.rules.max_context_tokens,
    )


def profile_for_prompt(profile: AssistantProfile) -> Profile:
    """Return the profile in the form that the prompt needs."""
    languages = [code.strip() for code in profile.languages.split(",") if code.strip()]
    return Profile(
        name=profile.name,
        persona=profile.persona,
        business_facts=profile.business_facts,
        opening_hours=profile.opening_hours,
        languages=languages or ["en"],
    )


def _line(message: Message, turn: Turn) -> Line:
    """Return a stored message in the form that the model reads.

    Content that isn't text is named as such, and in a group each message names its author.
    """
    role = message.role if message.role in ("user", "assistant", "system") else "assistant"
    content = text_of(message)
    name = message.metadata.get("sender_name", "")
    if turn.chat.is_group and name and message.role == Role.USER:
        content = f"{name}: {content}"
    return Line(role, content)


def _recalled(hit: Hit) -> Recalled:
    around = [
        f"{name} that, {SPEAKERS.get(hit.metadata[name]['role'], 'it was said')}: "
        f"{hit.metadata[name]['content']}"
        for name in ("before", "after")
        if name in hit.metadata
    ]
    label = SPEAKERS.get(hit.metadata.get("role", ""), "memory")
    return Recalled(content=hit.content, label=label, said_on=hit.created_at, around=around)


def _record(
    draft: Draft,
    history: History | None,
    recalled: RecallResult,
    cards: Sequence[CardHit],
    prompt: Prompt,
    dropped_history: int,
) -> None:
    """Add the replay record to the draft."""
    draft.prompt = [message.as_dict() for message in prompt.messages]
    draft.recalled = recalled_record(recalled, cards, prompt)
    draft.left_out = left_out_record(history, recalled, prompt, dropped_history)
    draft.summary_id = history.summary.summary_message_id if history and history.summary else None


def recalled_record(
    recalled: RecallResult, cards: Sequence[CardHit], prompt: Prompt
) -> list[dict[str, Any]]:
    """Return what was recalled, with its scores, and which of it the prompt holds."""
    kept = len(prompt.kept_recalled)
    hits = [{**hit.as_dict(), "in_prompt": place < kept} for place, hit in enumerate(recalled.hits)]
    shown_cards = [
        {**card.as_dict(), "in_prompt": place < prompt.kept_cards}
        for place, card in enumerate(cards)
    ]
    return hits + shown_cards


def left_out_record(
    history: History | None, recalled: RecallResult, prompt: Prompt, dropped_history: int
) -> dict[str, Any]:
    """Return what the token budget left out."""
    return {
        "messages_until": history.left_out_until if history else 0,
        "messages_over_context": dropped_history,
        "recalled": prompt.dropped_recalled,
        "recall_degraded": recalled.degraded,
        "passage": history.passage if history else "",
        "summarized_until": history.summary.last_order if history and history.summary else 0,
    }


def _without_model(recalled: list[str], language: str) -> str:
    if not recalled:
        return text_for("apology", language)
    return answer_from_memory(recalled, language or "en", reason="unavailable")


def _timed(draft: Draft, name: str, work: Callable[[], Any]) -> Any:
    started = time.monotonic()
    try:
        return work()
    finally:
        draft.timings[name] = round((time.monotonic() - started) * 1000)
