"""Answer a message with the chat model: recall, prompt, completion."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils import timezone

from memoryproject.foundation.errors.stored_errors import error_text
from memoryproject.foundation.integrations.llm.base import (
    ChatModel,
    ChatModelError,
    ChatRequest,
    Completion,
    Picture,
)
from memoryproject.foundation.integrations.llm.offline import answer_from_memory
from memoryproject.foundation.process.tracing import span
from sessions_app.cards.facade import CardHit, cards_recall
from sessions_app.conversations.facade import (
    NOTICE,
    History,
    as_chat_line,
    chat_form,
    messages_left_out,
    profile_current,
    text_for,
    without_notice,
)
from sessions_app.limits.facade import LimitReachedError, MeteredChatModel
from sessions_app.models import AssistantProfile, Message, Turn
from sessions_app.models.roles import CLIENT, GODFATHER, reading_role
from sessions_app.recall.facade import Hit, RecallResult, Viewer, hit_record, recall
from sessions_app.turns.ask_model import Answered, ask_model
from sessions_app.turns.draft import Draft
from sessions_app.turns.prompt import (
    MEMORY,
    SPEAKERS,
    Earlier,
    Line,
    Profile,
    Prompt,
    PromptParts,
    Recalled,
    recalled_text,
)
from sessions_app.turns.prompt_budget import build_prompt
from sessions_app.turns.prompt_history import sendable
from sessions_app.turns.turn_claims import TurnLease
from sessions_app.turns.turn_dependencies import Dependencies

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Composed:
    """A prompt and the history that it was made of.

    ``dropped``: how many messages of the window it doesn't hold.
    """

    prompt: Prompt
    history: History | None
    dropped: int


@dataclass(frozen=True)
class Material:
    """What the prompt of a turn is made of, before anything is left out."""

    turn: Turn
    text: str
    history: History | None
    recalled: RecallResult
    cards: Sequence[CardHit]
    pictures: Sequence[Picture] = ()


def model_reply(
    *,
    turn: Turn,
    text: str,
    lease: TurnLease,
    dependencies: Dependencies,
    pictures: Sequence[Picture] = (),
) -> Draft:
    """Return the model's answer, or one from memory alone where the model gives none."""
    draft = Draft(text="")
    history = _history(turn, dependencies)
    recalled = _timed(draft, "recall_ms", lambda: _recall(turn, text, history, dependencies))
    cards = cards_in_reach(turn, history, dependencies)
    material = Material(turn, text, history, recalled, cards, pictures)
    answered = _timed(draft, "model_ms", lambda: _ask(material, lease, dependencies))
    composed = answered.composed
    _record(draft, material, composed, refused=answered.refused)
    if answered.completion is None:
        if isinstance(answered.error, LimitReachedError):
            raise answered.error
        logger.error("The chat model gave no answer: %s", answered.error)
        draft.error = error_text(answered.error)
        draft.model = dependencies.chat_model.name
        draft.text = _without_model(_texts(composed.prompt), turn.chat.language)
        draft.is_system_text = True
    else:
        completion = answered.completion
        draft.text = completion.text
        draft.is_system_text = completion.is_recital
        draft.model = completion.model
        draft.prompt_tokens = completion.prompt_tokens
        draft.completion_tokens = completion.completion_tokens
    if recalled.degraded:
        draft.text += f"\n\n{text_for(NOTICE, turn.chat.language)}"
    return draft


def _ask(material: Material, lease: TurnLease, dependencies: Dependencies) -> Answered[Composed]:
    """Ask the model, with shorter prompts if they are too long for it."""
    rules = dependencies.rules
    language = material.turn.chat.language or "en"
    chat_model = _metered(material.turn, dependencies)

    @span("model")
    def complete(composed: Composed) -> Completion:
        request = ChatRequest(
            composed.prompt.messages,
            recalled=_texts(composed.prompt),
            language=language,
            max_reply_tokens=rules.max_reply_tokens,
        )
        try:
            return chat_model.complete(request, before_attempt=lease.renew)
        except ChatModelError as error:
            if not material.pictures or not error.permanent or error.overflow is not None:
                raise
            logger.warning("The model is asked again, without pictures: %s", error)
        blind = [replace(message, pictures=()) for message in request.messages]
        return chat_model.complete(replace(request, messages=blind), before_attempt=lease.renew)

    return ask_model(
        compose=lambda limit: _compose(material, dependencies, limit),
        complete=complete,
        context_limit=dependencies.context_limit,
        reply_tokens=rules.max_reply_tokens or 0,
    )


@span("prompt")
def _compose(material: Material, dependencies: Dependencies, limit: int | None) -> Composed:
    """Build the prompt; ``limit`` is the number of tokens that the model is known to read."""
    history = material.history
    parts = prompt_parts(
        material.turn,
        material.text,
        history,
        material.recalled,
        material.cards,
        dependencies,
        material.pictures,
    )
    parts = replace(parts, max_context_tokens=least(parts.max_context_tokens, limit))
    prompt = build_prompt(parts)
    before = len(parts.history)
    fills_gaps = dependencies.chat_memory.strategy.fills_gaps
    if history is not None and fills_gaps and prompt.dropped_history and prompt.conversation_room:
        # Messages that don't fit also go into the shortened passage.
        history = _history(material.turn, dependencies, max_tokens=prompt.conversation_room)
        lines = history_lines(material.turn, material.text, history, material.pictures)
        passage = history.passage if history else ""
        prompt = build_prompt(replace(parts, history=lines, passage=passage))
    return Composed(prompt, history, dropped=before - (len(prompt.messages) - 1))


def _texts(prompt: Prompt) -> list[str]:
    return [text.content for text in prompt.kept_recalled]


def least(*limits: int | None) -> int | None:
    """Return the lowest of the limits; None if there is none."""
    return min((limit for limit in limits if limit is not None), default=None)


def _metered(turn: Turn, dependencies: Dependencies) -> ChatModel:
    """Return the chat model, counted for the turn's chat."""
    is_owner = turn.user_role == GODFATHER
    return MeteredChatModel(dependencies.chat_model, turn.chat_id, is_owner, dependencies.limits)


def _history(
    turn: Turn, dependencies: Dependencies, *, max_tokens: int | None = None
) -> History | None:
    """Return the history, or None where memory is off: then there is only the message."""
    if turn.message is None:
        return None
    return dependencies.chat_memory.history(
        turn=turn, max_messages=dependencies.rules.history_max_messages, max_tokens=max_tokens
    )


@span("recall")
def _recall(
    turn: Turn, text: str, history: History | None, dependencies: Dependencies
) -> RecallResult:
    if history is None or not dependencies.rules.longterm_enabled or not text.strip():
        return RecallResult([])
    return recall(
        query=text,
        viewer=Viewer(reading_role(turn.user_role, turn.context) or CLIENT, turn.chat_id),
        embedder=dependencies.embedder,
        top_k=dependencies.rules.top_k,
        min_similarity=dependencies.rules.min_similarity,
        left_out=messages_left_out(turn=turn, history=history),
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
    pictures: Sequence[Picture] = (),
) -> PromptParts:
    return PromptParts(
        profile=profile_for_prompt(profile_current()),
        now=timezone.now(),
        time_zone=dependencies.rules.time_zone,
        fence=turn.turn_id.hex[:12],
        user_role=turn.user_role,
        is_group=turn.chat.is_group,
        recalled=[recalled_of(hit) for hit in recalled.hits],
        cards=[Earlier(card.content, card.said_on) for card in cards],
        summary=history.summary_text if history else "",
        passage=history.passage if history else "",
        history=history_lines(turn, text, history, pictures),
        query=text,
        role_tokens=dependencies.chat_memory.limits.tokens_for(turn.user_role),
        max_context_tokens=dependencies.rules.max_context_tokens,
    )


def history_lines(
    turn: Turn, text: str, history: History | None, pictures: Sequence[Picture] = ()
) -> list[Line]:
    """Return the history as chat APIs take it; only the message where memory is off.

    Each picture stands with its message.
    """
    lines = [
        replace(
            line_of(message, turn),
            pictures=[each for each in pictures if each.message_id == str(message.pk)],
        )
        for message in (history.messages if history else ())
    ]
    return sendable(lines, keeps_last=True) or [Line("user", text, pictures=pictures)]


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


def line_of(message: Message, turn: Turn) -> Line:
    """Return a stored message in the form that the model reads."""
    role, content = as_chat_line(message, is_group=turn.chat.is_group)
    form = chat_form(message.metadata)
    return Line(role, content, form.tool_calls, form.tool_call_id, form.name)


def recalled_of(hit: Hit) -> Recalled:
    """Return a hit in the form that the prompt needs."""
    around = [
        f"{name} that, {SPEAKERS.get(hit.metadata[name]['role'], 'it was said')}: "
        f"{without_notice(hit.metadata[name]['content'])}"
        for name in ("before", "after")
        if name in hit.metadata
    ]
    content = without_notice(hit.content)
    return Recalled(content=content, label=hit_label(hit), said_on=hit.created_at, around=around)


def hit_label(hit: Hit) -> str:
    """Return how the prompt introduces a hit."""
    return SPEAKERS.get(hit.metadata.get("role", ""), MEMORY)


def hit_text(hit: Hit, time_zone: str) -> str:
    """Return a hit as it stands in the prompt, whole."""
    return recalled_text(recalled_of(hit), time_zone)


def _record(draft: Draft, material: Material, composed: Composed, *, refused: int) -> None:
    """Add the replay record to the draft."""
    prompt, history = composed.prompt, composed.history
    draft.prompt = [message.as_dict() for message in prompt.messages]
    draft.recalled = recalled_record(material.recalled, material.cards, prompt)
    draft.left_out = left_out_record(history, material.recalled, prompt, composed.dropped)
    draft.left_out["refused_prompts"] = refused
    draft.summary_id = history.summary.summary_message_id if history and history.summary else None


def recalled_record(
    recalled: RecallResult, cards: Sequence[CardHit], prompt: Prompt
) -> list[dict[str, Any]]:
    """Return what was recalled, with its scores, and which of it the prompt holds."""
    kept = len(prompt.kept_recalled)
    hits = [
        {**hit_record(hit), "in_prompt": place < kept} for place, hit in enumerate(recalled.hits)
    ]
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
        "messages_cut": prompt.cut_messages,
        "recalled_cut": prompt.cut_recalled,
        "profile_cut": prompt.cut_profile,
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
