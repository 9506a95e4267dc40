"""Choose the recalled texts that a trial gives to the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from memories_app.models import Memory
from memories_app.search.facade import memories_visible
from memoryproject.foundation.retrieval.fragments import MARK
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.models import AnswerTrial, Chat, Turn, TurnReplay
from sessions_app.models.roles import GODFATHER
from sessions_app.models.trials import TrialMemories
from sessions_app.recall.facade import CLIENT_NAME, Hit, hit_record, name_in_label
from sessions_app.trials.errors import TrialRefusedError
from sessions_app.trials.prompt_parts import StoredPrompt, recalled_apart
from sessions_app.turns.facade import Dependencies, hit_label, hit_text, recall_today

RECALLED_SOURCES = ("memory", "message")
# More ticks than the page offers.
MAX_CHOSEN = 100


@dataclass(frozen=True)
class Given:
    """The fenced texts of a trial's prompt, and its recalled texts for the record."""

    lines: Sequence[str]
    recalled: Sequence[dict[str, Any]]


def entries_then(replay: TurnReplay) -> list[dict[str, Any]]:
    """Return the texts that the answer's prompt held."""
    return [
        entry
        for entry in replay.recalled
        if entry.get("in_prompt") and entry.get("source") in RECALLED_SOURCES
    ]


def texts_given(
    *, trial: AnswerTrial, turn: Turn, stored: StoredPrompt, dependencies: Dependencies
) -> Given:
    """Return what the trial's model is given. Raises TrialRefusedError."""
    then = entries_then(TurnReplay.of(turn))
    # What the owner was told isn't told to a number that isn't the owner's any more.
    is_lost = turn.user_role == GODFATHER and role_now(turn, dependencies) != GODFATHER
    if trial.memories == TrialMemories.THEN and not is_lost:
        return Given([stored.data], then)
    kept, texts = recalled_apart(stored.data, [hit_label(_hit(entry)) for entry in then])
    if trial.memories == TrialMemories.NONE:
        return Given([kept], [])
    zone = dependencies.rules.time_zone
    if trial.memories == TrialMemories.NOW:
        hits = _recalled_now(turn, dependencies)
        return _given(kept, [(hit_record(hit), hit_text(hit, zone)) for hit in hits])
    wanted = trial.chosen
    if trial.memories == TrialMemories.THEN:
        wanted = [entry["id"] for entry in then]
    chosen = list(dict.fromkeys(map(str, wanted)))[:MAX_CHOSEN]
    found = {str(entry["id"]): (entry, text) for entry, text in zip(then, texts, strict=True)}
    for entry in TurnReplay.of(turn).recalled:
        if entry.get("source") in RECALLED_SOURCES:
            found.setdefault(str(entry["id"]), (entry, hit_text(_hit(entry), zone)))
    if is_lost:
        seen = {str(memory.pk) for memory in _visible(turn, list(found), dependencies)}
        found = {
            key: each
            for key, each in found.items()
            if each[0]["source"] == "message" or key in seen
        }
    for memory in _visible(turn, [key for key in chosen if key not in found], dependencies):
        about = {}
        if memory.chat_id not in (None, turn.chat_id) and role_now(turn, dependencies) == GODFATHER:
            chat = Chat.objects.filter(pk=memory.chat_id).first()
            about = {CLIENT_NAME: name_in_label(chat.shown_name)} if chat else {}
        hit = Hit("memory", memory.pk, memory.content, 0.0, None, memory.created_at, about)
        record = {**hit_record(hit), "score": None}
        found[str(memory.pk)] = (record, hit_text(hit, zone))
    ticked = [found[key] for key in chosen if key in found]
    return _given(kept, [each for each in ticked if each[0]["content"] != MARK])


def role_now(turn: Turn, dependencies: Dependencies) -> str:
    """Return the role of the turn's chat today, which decides what it may be answered with."""
    return dependencies.chat_memory.role_in(turn.chat)


def _given(kept: str, texts: Sequence[tuple[dict[str, Any], str]]) -> Given:
    records = [{**record, "in_prompt": True} for record, _text in texts]
    return Given([kept, *(text for _record, text in texts)], records)


def _recalled_now(turn: Turn, dependencies: Dependencies) -> Sequence[Hit]:
    """Repeat the recall with the rights that the chat has today."""
    if turn.message is None:
        raise TrialRefusedError("trial_no_question")
    if not dependencies.rules.longterm_enabled:
        raise TrialRefusedError("trial_memory_off")
    return recall_today(turn.message, turn=turn, dependencies=dependencies).hits


def _visible(turn: Turn, keys: Sequence[str], dependencies: Dependencies) -> list[Memory]:
    """Return those of the memories that this chat may be answered with."""
    role = role_now(turn, dependencies)
    seen = memories_visible(is_owner=role == GODFATHER, is_staff=False, chat_id=turn.chat_id)
    return list(
        seen.filter(pk__in=list(filter(None, map(uuid_or_none, keys)))).only(
            "content", "created_at", "chat_id"
        )
    )


def _hit(entry: dict[str, Any]) -> Hit:
    """Return an entry of the replay record as the hit that it records."""
    said_on = parse_datetime(str(entry.get("created_at", ""))) or timezone.now()
    return Hit(
        source=str(entry.get("source", "")),
        id=entry["id"],
        content=str(entry.get("content", "")),
        score=0.0,
        similarity=None,
        created_at=said_on,
        metadata=entry,
    )
