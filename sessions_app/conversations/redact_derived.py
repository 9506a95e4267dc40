"""Redact a text in the records that were derived from its message."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from django.db.models import F

from memoryproject.foundation.retrieval.fragments import RUN, Fragments
from memoryproject.foundation.text.characters import cut_at_word
from sessions_app.models import (
    AnswerTrial,
    InboundDelivery,
    MediaFile,
    Message,
    Note,
    OutboundPart,
    Turn,
    TurnReplay,
)
from sessions_app.models.turn_states import turns_move
from sessions_app.models.turns import TurnState
from sessions_app.recall.facade import MAX_NEIGHBOUR_LENGTH

GONE = "[deleted by the sender]"


def text_redact(*, message: Message, texts: Iterable[str]) -> None:
    """Redact a revoked message's texts in derived records.

    These are the raw deliveries about it, the replay of the turns that had it in their prompt,
    and the notes of staff. Trials of these answers are deleted.
    """
    if message.provider_message_id:
        deliveries_forget(
            provider=message.provider, provider_message_id=message.provider_message_id
        )
    later = Turn.objects.filter(chat_id=message.chat_id, created_at__gte=message.received_at)
    # A worker that answers with the text in its prompt loses the turn and starts again.
    running = later.filter(state=TurnState.RUNNING)
    turns_move(running, TurnState.PENDING, lease_token=None, attempts=F("attempts") - 1)
    kept = [text for text in texts if text.strip()]
    # The text may appear there shortened, as the neighbour of a recalled message.
    kept += [
        cut_at_word(text, MAX_NEIGHBOUR_LENGTH) for text in kept if len(text) > MAX_NEIGHBOUR_LENGTH
    ]
    wanted = [_as_written(text) for text in kept]
    # An answer that repeats it may appear there shortened, too.
    parts = Fragments(text for text in kept if len(text.split()) >= RUN)
    replays = TurnReplay.objects.filter(turn__in=later).select_related("turn")
    fields = ("prompt", "recalled", "left_out", "turn__session")
    for replay in replays.only(*fields).iterator(chunk_size=100):
        prompt = _without(replay.prompt, wanted, parts)
        recalled = _without(replay.recalled, wanted, parts)
        left_out = replay.left_out
        if replay.turn.session_id == message.session_id and left_out.get("passage"):
            # A passage holds the beginnings of messages, and it is no longer known of which.
            prompt = _without(prompt, [re.compile(re.escape(left_out["passage"]))], parts)
            left_out = {**left_out, "passage": ""}
        if (prompt, recalled, left_out) != (replay.prompt, replay.recalled, replay.left_out):
            TurnReplay.objects.filter(pk=replay.pk).update(
                prompt=prompt, recalled=recalled, left_out=left_out
            )
            AnswerTrial.objects.filter(turn=replay.pk).delete()
    for note in Note.objects.filter(chat=message.chat_id).only("text"):
        (entry,) = _without([{"content": note.text}], wanted, Fragments())
        text, _gone = parts.cut(entry["content"])
        if text != note.text:
            Note.objects.filter(pk=note.pk).update(text=text)


def deliveries_forget(*, provider: str, provider_message_id: str) -> None:
    """Empty the raw deliveries about one message; their keys stay."""
    InboundDelivery.objects.filter(provider=provider, subject_id=provider_message_id).update(
        raw=None, change=None
    )


def unstored_forget(turn: Turn) -> None:
    """Erase the message and the answer after the turn, since memory is off; the ids stay."""
    if turn.provider_message_id:
        deliveries_forget(provider=turn.provider, provider_message_id=turn.provider_message_id)
    OutboundPart.objects.filter(turn=turn).update(content="")
    # Without a turn it is an order to remove the file.
    MediaFile.objects.filter(turn=turn).update(turn=None)
    context = {key: value for key, value in turn.context.items() if key != "media"}
    Turn.objects.filter(pk=turn.pk).update(unstored_text="", unstored_reply="", context=context)
    TurnReplay.objects.filter(turn=turn).update(prompt=[], recalled=[])


def _as_written(text: str) -> re.Pattern[str]:
    """Return a pattern for the whole text: a revoked "ok" is no part of "book"."""
    return re.compile(rf"(?<!\w){re.escape(text)}(?!\w)")


def _without(
    entries: list[dict[str, Any]], texts: list[re.Pattern[str]], parts: Fragments
) -> list[dict[str, Any]]:
    """Return the entries of a prompt or a recall whose content doesn't hold the texts."""
    return [_entry_without(entry, texts, parts) for entry in entries]


def _entry_without(
    entry: dict[str, Any], texts: list[re.Pattern[str]], parts: Fragments
) -> dict[str, Any]:
    cleaned = {**entry, "content": _text_without(entry["content"], texts, parts)}
    if "tool_calls" in entry:
        cleaned["tool_calls"] = [_call_without(call, texts, parts) for call in entry["tool_calls"]]
    for name in ("before", "after"):
        if name in entry:
            cleaned[name] = _entry_without(entry[name], texts, parts)
    return cleaned


def _text_without(
    content: str | None, texts: list[re.Pattern[str]], parts: Fragments
) -> str | None:
    """Return the text without the others; a call of a tool may have none."""
    if content is None:
        return None
    for text in texts:
        content = text.sub(GONE, content)
    return GONE if parts.are_in(content) else content


def _call_without(
    call: dict[str, Any], texts: list[re.Pattern[str]], parts: Fragments
) -> dict[str, Any]:
    function = call.get("function", {})
    arguments = _text_without(function.get("arguments"), texts, parts)
    return {**call, "function": {**function, "arguments": arguments}}
