"""Compose the prompt of an answer from history, recalled texts, cards and the profile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils import timezone

from memories_app.facts.validation import OPEN, PROMISE
from memoryproject.foundation.integrations.llm.base import ChatMessage, Picture
from memoryproject.foundation.process.tracing import span
from memoryproject.foundation.retrieval.subqueries import asks_for_all
from sessions_app.cards.card_recall import CardHit, cards_recall
from sessions_app.conversations import message_store, message_text, plain_words
from sessions_app.conversations.history_queries import History, messages_left_out, profile_current
from sessions_app.hours import hours_of
from sessions_app.hours_answers import hours_in_prompt
from sessions_app.models import AssistantProfile, Message, Turn
from sessions_app.person.person_recall import PersonHit, person_recall
from sessions_app.promises.store import today
from sessions_app.recall import facade as recall
from sessions_app.turns.prompt import (
    SPEAKERS,
    Profile,
    Prompt,
    PromptParts,
    Recalled,
    recalled_text,
)
from sessions_app.turns.prompt_budget import build_prompt, sendable
from sessions_app.turns.turn_dependencies import Dependencies


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
    """The parts of a turn's prompt, before anything is left out."""

    turn: Turn
    text: str
    history: History | None
    recalled: recall.RecallResult
    cards: Sequence[CardHit]
    pictures: Sequence[Picture] = ()
    person: PersonHit | None = None
    profile: AssistantProfile = field(default_factory=profile_current)


def history_for_prompt(
    turn: Turn, dependencies: Dependencies, *, max_tokens: int | None = None
) -> History | None:
    """Return the history, or None where memory is off: then there is only the message."""
    if turn.message is None:
        return None
    return dependencies.chat_memory.history(
        turn.message,
        user_role=turn.user_role,
        max_messages=dependencies.rules.history_max_messages,
        max_tokens=max_tokens,
    )


@span("prompt")
def compose_prompt(material: Material, dependencies: Dependencies, limit: int | None) -> Composed:
    """Build the prompt; ``limit`` is the number of tokens that the model is known to read."""
    history = material.history
    parts = prompt_parts(material, dependencies)
    parts = replace(parts, max_context_tokens=lowest_limit(parts.max_context_tokens, limit))
    prompt = build_prompt(parts)
    before = len(parts.history)
    fills_gaps = dependencies.chat_memory.strategy.fills_gaps
    room = prompt.conversation_room
    if history is not None and fills_gaps and prompt.dropped_history and room:
        # Messages that don't fit also go into the summary and the passage.
        history = history_for_prompt(
            material.turn, dependencies, max_tokens=prompt.conversation_room
        )
        lines = history_lines(replace(material, history=history))
        summary, passage = (history.summary_text, history.passage) if history else ("", "")
        prompt = build_prompt(replace(parts, history=lines, summary=summary, passage=passage))
    return Composed(prompt, history, dropped=before - (len(prompt.messages) - 1))


def recall_for_prompt(
    query: str,
    viewer: recall.Viewer,
    history: History | None,
    dependencies: Dependencies,
    *,
    nearest: int = 0,
) -> recall.RecallResult:
    """Return what is recalled for a prompt with this history, and isn't in it already.

    That is nothing where long-term memory is off. ``nearest``: see ``recall``. Of what is no
    question, such as "I have a flat tyre, help", only a model tells whether they fit. A question
    for all of something gets more texts, and also facts that have ended.
    """
    if not dependencies.rules.longterm_enabled or not query.strip():
        return recall.RecallResult([])
    if nearest > 1:
        near = recall.number_for(query, nearest)
    else:
        near = nearest if plain_words.asks_in_words(query) else 0
    return recall.recall(
        query=_with_quoted(query, history),
        viewer=viewer,
        embedder=dependencies.embedder,
        top_k=recall.number_for(query, dependencies.rules.top_k),
        min_similarity=dependencies.rules.min_similarity,
        nearest=near,
        with_ended=asks_for_all(query),
        left_out=messages_left_out(history, viewer.chat_id) if history and viewer.chat_id else None,
    )


def _with_quoted(query: str, history: History | None) -> str:
    """Return the query with the line that its message answers: "how much for two of this?"."""
    last = history.messages[-1] if history else None
    if last is None or not query.strip().endswith(last.content.strip()):
        return query
    quoted = last.metadata.get(message_text.QUOTED)
    text = str(quoted.get("text") or "") if isinstance(quoted, dict) else ""
    return f"{query}\n{text}" if text.strip() else query


def recall_today(
    question: Message, *, turn: Turn, dependencies: Dependencies
) -> recall.RecallResult:
    """Repeat the recall of a turn with the rights that its chat has today.

    ``question``: the turn's message. Those after it, and those that its prompt held, don't count.
    """
    user_role = dependencies.chat_memory.role_in(turn.chat)
    history = dependencies.chat_memory.history(
        question, user_role=user_role, max_messages=dependencies.rules.history_max_messages
    )
    viewer = recall.Viewer(user_role, turn.chat_id)
    return recall_for_prompt(question.content.strip(), viewer, history, dependencies)


def material_of(
    turn: Turn,
    text: str,
    history: History | None,
    recalled: recall.RecallResult,
    dependencies: Dependencies,
    **others: Any,
) -> Material:
    """Return the parts of a turn's prompt, with the cards and what is known of the person.

    These are none where memory is off, or where long-term memory is off. What is recalled anyway is
    not among what is known of the person.
    """
    rules = dependencies.rules
    is_on = history is not None and rules.longterm_enabled
    cards: Sequence[CardHit] = ()
    if is_on and rules.cards_in_prompt:
        cards = cards_recall(turn=turn, most=rules.cards_in_prompt)
    if is_on and rules.person_in_prompt:
        keys = {hit.id for hit in recalled.hits}
        others["person"] = person_recall(turn=turn, recalled=keys)
    return Material(turn, text, history, recalled, cards, **others)


def known_context_tokens(dependencies: Dependencies) -> int | None:
    """Return the number of tokens that the assistant's own model is known to read."""
    limit = dependencies.context_limit
    known = limit.learned() if limit is not None else None
    return known.tokens if known else None


def lowest_limit(*limits: int | None) -> int | None:
    """Return the lowest of the limits; None if there is none."""
    return min((limit for limit in limits if limit is not None), default=None)


def prompt_parts(material: Material, dependencies: Dependencies) -> PromptParts:
    """Return all the parts of a prompt, before anything is left out."""
    turn, history = material.turn, material.history
    return PromptParts(
        profile=profile_for_prompt(material.profile),
        now=timezone.now(),
        time_zone=dependencies.rules.time_zone,
        fence=turn.turn_id.hex[:12],
        user_role=turn.user_role,
        is_group=turn.chat.is_group,
        language=turn.chat.fixed_language,
        recalled=[recalled_of(hit) for hit in material.recalled.hits],
        cards=material.cards,
        person=material.person,
        summary=history.summary_text if history else "",
        passage=history.passage if history else "",
        history=history_lines(material),
        query=material.text,
        role_tokens=dependencies.chat_memory.limits.tokens_for(turn.user_role),
        max_context_tokens=dependencies.rules.max_context_tokens,
    )


def history_lines(material: Material) -> list[ChatMessage]:
    """Return the history as chat APIs take it; only the message where memory is off.

    Each picture stands with its message.
    """
    messages = material.history.messages if material.history else ()
    lines = stored_lines(messages, material.turn, material.pictures)
    alone = ChatMessage("user", material.text, pictures=material.pictures)
    return sendable(lines, keeps_last=True) or [alone]


def stored_lines(
    messages: Sequence[Message], turn: Turn, pictures: Sequence[Picture] = ()
) -> list[ChatMessage]:
    """Return stored messages as the model reads them, each with those pictures of its own."""
    lines = []
    for message, role, content in message_text.as_chat_lines(messages, is_group=turn.chat.is_group):
        if message is None:
            lines.append(ChatMessage(role, content))
            continue
        form = message_store.chat_form(message.metadata)
        own = [each for each in pictures if each.message_id == str(message.message_id)]
        lines.append(ChatMessage(role, content, form.tool_calls, form.tool_call_id, form.name, own))
    return lines


def profile_for_prompt(profile: AssistantProfile) -> Profile:
    """Return the profile in the form that the prompt needs."""
    languages = [code.strip() for code in profile.languages.split(",") if code.strip()]
    hours = hours_of(profile)
    return Profile(
        name=profile.name,
        persona=profile.persona,
        business_facts=profile.business_facts,
        opening_hours=hours_in_prompt(hours, timezone.now()) if hours else profile.opening_hours,
        languages=languages or ["en"],
    )


def recalled_of(hit: recall.Hit) -> Recalled:
    """Return a hit in the form that the prompt needs."""
    beside = {name: hit.metadata[name] for name in ("before", "after") if name in hit.metadata}
    texts = {
        name: recall.with_name(message_text.without_notice(each["content"]), each)
        for name, each in beside.items()
    }
    times = recall.FactTimes.of(hit.metadata) if hit.source == "memory" else None
    return Recalled(
        content=message_text.without_notice(hit.content),
        label=hit_label(hit),
        said_on=times.said_at if times and times.said_at else hit.created_at,
        around=[
            f"{name} that, {SPEAKERS.get(beside[name]['role'], 'it was said')}: {text}"
            for name, text in texts.items()
        ],
        after=texts.get("after", ""),
        client=hit.metadata.get(recall.CLIENT_NAME) or hit.metadata.get(recall.SENDER_NAME, ""),
        notes=_notes(hit, times),
        times=times,
        is_sure=recall.is_sure(hit),
    )


def _notes(hit: recall.Hit, times: recall.FactTimes | None) -> list[str]:
    """Return who said a memory, and whether it still holds."""
    notes = []
    if hit.metadata.get(recall.SAID_BY):
        notes.append(f"said by {hit.metadata[recall.SAID_BY]}")
    if promise := hit.metadata.get(PROMISE):
        notes.append(_promise_note(promise))
    if times and times.has_ended(timezone.now()):
        notes.append("ended")
    if not recall.is_sure(hit):
        notes.append("perhaps about something else")
    if hit.metadata.get(recall.NEWER):
        notes.append("perhaps replaced by the newer one above")
    return notes


def _promise_note(promise: Mapping[str, Any]) -> str:
    """Return the state of what the business promised, such as "our promise, open, due …"."""
    due = str(promise["due"] or "")[:10]
    is_overdue = promise["state"] == OPEN and due and due < today().isoformat()
    state = "overdue" if is_overdue else promise["state"]
    return f"our promise, {state}" + (f", due {due}" if due else "")


def hit_label(hit: recall.Hit) -> str:
    """Return how the prompt introduces a hit."""
    if client := hit.metadata.get(recall.CLIENT_NAME):
        return f"{recall.CLIENTS_MEMORY}{client}"
    return SPEAKERS.get(hit.metadata.get("role", ""), recall.MEMORY)


def hit_text(hit: recall.Hit, time_zone: str) -> str:
    """Return a hit as it stands in the prompt, whole."""
    return recalled_text(recalled_of(hit), time_zone)


def recalled_record(material: Material, prompt: Prompt) -> list[dict[str, Any]]:
    """Return what was recalled, with its scores, and which of it the prompt holds."""
    kept, person = len(prompt.kept_recalled), material.person
    hits = [
        {**recall.hit_record(hit), "in_prompt": place < kept}
        for place, hit in enumerate(material.recalled.hits)
    ]
    shown_cards = [
        {**card.as_dict(), "in_prompt": place < prompt.kept_cards}
        for place, card in enumerate(material.cards)
    ]
    known = person.records(in_prompt=prompt.kept_person) if person else []
    return hits + shown_cards + known


def left_out_record(
    history: History | None, recalled: recall.RecallResult, prompt: Prompt, dropped_history: int
) -> dict[str, Any]:
    """Return what the token budget left out."""
    summary = history.summary if history else None
    return {
        "messages_until": history.left_out_until if history else 0,
        "messages_over_context": dropped_history,
        "recalled": prompt.dropped_recalled,
        "messages_cut": prompt.cut_messages,
        "recalled_cut": prompt.cut_recalled,
        "profile_cut": prompt.cut_profile,
        "recall_degraded": recalled.degraded,
        "passage": history.passage if history else "",
        "summarized_until": summary.last_order if summary else 0,
    }
