"""Choose the recalled texts that a trial gives to the model."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from memories_app.models import Memory
from memories_app.visibility import memories_visible
from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.llm.base import ChatMessage, Picture
from memoryproject.foundation.retrieval.fragments import MARK
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.models import AnswerTrial, AssistantProfile, Chat, Turn, TurnReplay
from sessions_app.models.chats import GODFATHER
from sessions_app.models.trials import TrialMemories
from sessions_app.person.person_recall import PERSON
from sessions_app.recall.facade import CLIENT_NAME, CLIENTS_MEMORY, Hit, hit_record, name_in_label
from sessions_app.turns import facade as answers

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
    *, trial: AnswerTrial, turn: Turn, stored: "StoredPrompt", dependencies: answers.Dependencies
) -> Given:
    """Return what the trial's model is given. Raises TrialRefusedError."""
    then = entries_then(TurnReplay.of(turn))
    # What the owner was told isn't told to a number that isn't the owner's any more.
    is_lost = turn.user_role == GODFATHER and role_now(turn, dependencies) != GODFATHER
    if trial.memories == TrialMemories.THEN and not is_lost:
        return Given([stored.data], then)
    kept, texts = recalled_apart(stored.data, [answers.hit_label(_hit(entry)) for entry in then])
    for entry in TurnReplay.of(turn).recalled if is_lost else ():
        if entry.get("source") == PERSON:
            kept = kept.replace(entry["content"], MARK)
    if trial.memories == TrialMemories.NONE:
        return Given([kept], [])
    zone = dependencies.rules.time_zone
    if trial.memories == TrialMemories.CHANGED:
        return _given(kept, [(each, answers.hit_text(_hit(each), zone)) for each in trial.recalled])
    if trial.memories == TrialMemories.NOW:
        hits = _recalled_now(turn, dependencies)
        return _given(kept, [(hit_record(hit), answers.hit_text(hit, zone)) for hit in hits])
    wanted = trial.chosen
    if trial.memories == TrialMemories.THEN:
        wanted = [entry["id"] for entry in then]
    chosen = list(dict.fromkeys(map(str, wanted)))[:MAX_CHOSEN]
    found = {str(entry["id"]): (entry, text) for entry, text in zip(then, texts, strict=True)}
    for entry in TurnReplay.of(turn).recalled:
        if entry.get("source") in RECALLED_SOURCES:
            found.setdefault(str(entry["id"]), (entry, answers.hit_text(_hit(entry), zone)))
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
        found[str(memory.pk)] = (record, answers.hit_text(hit, zone))
    ticked = [found[key] for key in chosen if key in found]
    return _given(kept, [each for each in ticked if each[0]["content"] != MARK])


def role_now(turn: Turn, dependencies: answers.Dependencies) -> str:
    """Return the role of the turn's chat today, which decides what it may be answered with."""
    return dependencies.chat_memory.role_in(turn.chat)


def _given(kept: str, texts: Sequence[tuple[dict[str, Any], str]]) -> Given:
    records = [{**record, "in_prompt": True} for record, _text in texts]
    return Given([kept, *(text for _record, text in texts)], records)


def _recalled_now(turn: Turn, dependencies: answers.Dependencies) -> Sequence[Hit]:
    """Repeat the recall with the rights that the chat has today."""
    if turn.message is None:
        raise TrialRefusedError("trial_no_question")
    if not dependencies.rules.longterm_enabled:
        raise TrialRefusedError("trial_memory_off")
    return answers.recall_today(turn.message, turn=turn, dependencies=dependencies).hits


def _visible(turn: Turn, keys: Sequence[str], dependencies: answers.Dependencies) -> list[Memory]:
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


# Take the stored prompt of an answer apart, and put it together again with other parts.

SYSTEM = "system"
_LABELS = "|".join(re.escape(label) for label in answers.RECALLED_LABELS)
_LABELS += rf"|{re.escape(CLIENTS_MEMORY)}[^()\n]+"
_RECALLED = re.compile(rf"^- \(({_LABELS}), \d{{4}}-\d\d-\d\d[^()\n]*\) ", re.MULTILINE)
_NOW = re.compile(r"^It is \w+, \d{4}-\d\d-\d\d \d\d:\d\d \(.*\)\.$", re.MULTILINE)


@dataclass(frozen=True)
class StoredPrompt:
    """The parts of a prompt as it was sent.

    ``instructions``: the system text up to the fence. ``data``: what stands in the fence: cards,
    the summary, the passage, and last the recalled texts. ``after``: the rest of the system text.
    ``conversation``: the messages.
    """

    instructions: str
    data: str
    after: str
    conversation: Sequence[ChatMessage]


def prompt_apart(
    prompt: Sequence[dict[str, Any]], pictures: Mapping[str, Picture] = MappingProxyType({})
) -> StoredPrompt:
    """Return the parts of a stored prompt. Raises TrialRefusedError where there is none.

    ``pictures``: those that its messages get again, by the ids of their messages.
    """
    if not prompt:
        raise TrialRefusedError("trial_no_record")
    if prompt[0].get("role") != SYSTEM:
        raise TrialRefusedError("trial_unreadable")
    text = str(prompt[0].get("content") or "")
    conversation = [_message(entry, pictures) for entry in prompt[1:]]
    found = answers.fence_split(text)
    if found is None:
        return StoredPrompt(text.strip(), "", "", conversation)
    return StoredPrompt(
        answers.without_introduction(found.before), found.data, found.after, conversation
    )


def recalled_apart(data: str, labels: Sequence[str]) -> tuple[str, list[str]]:
    """Divide what stands in the fence: what isn't recalled, and each recalled text.

    ``labels``: those of the recalled texts, in their order. Raises TrialRefusedError where the
    texts can't be told apart.
    """
    starts = list(_RECALLED.finditer(data))
    starts = starts[len(starts) - len(labels) :] if labels else []
    if [start[1] for start in starts] != list(labels):
        raise TrialRefusedError("trial_unreadable")
    places = [start.start() for start in starts]
    ends = [*places[1:], len(data)]
    texts = [data[start:end].rstrip("\n") for start, end in zip(places, ends, strict=True)]
    kept = data[: places[0]] if places else data
    return kept.rstrip("\n"), texts


def prompt_together(
    stored: StoredPrompt, *, fence: str, instructions: str, lines: Sequence[str]
) -> list[ChatMessage]:
    """Return the messages for the model: these instructions, these lines in the fence."""
    fenced = answers.fenced_text(fence, [line for line in lines if line])
    sections = [instructions.strip(), fenced, stored.after]
    system = "\n\n".join(section for section in sections if section)
    return [ChatMessage(SYSTEM, system), *stored.conversation]


def with_day_of(instructions: str, stored: StoredPrompt) -> str:
    """Return the instructions with the day and time that the stored ones name."""
    then = _NOW.search(stored.instructions)
    return _NOW.sub(lambda _found: then[0], instructions, count=1) if then else instructions


def _message(entry: dict[str, Any], pictures: Mapping[str, Picture]) -> ChatMessage:
    return ChatMessage(
        role=str(entry.get("role", "")),
        content=str(entry.get("content") or ""),
        tool_calls=entry.get("tool_calls", ()),
        tool_call_id=str(entry.get("tool_call_id", "")),
        name=str(entry.get("name", "")),
        pictures=[pictures[key] for key in entry.get("pictures", ()) if key in pictures],
    )


# The errors of trials.


class TrialRefusedError(Exception):
    """The trial can't be made; the error says why, by its code."""

    def __init__(self, code: str, /, **params: object) -> None:
        super().__init__(ErrorText(code, **params))


class TrialBusyError(TrialRefusedError):
    """Another trial of this answer is being made."""

    def __init__(self) -> None:
        super().__init__("trial_busy")


def instructions_by(
    profile: AssistantProfile, turn: Turn, stored: StoredPrompt, dependencies: answers.Dependencies
) -> str:
    """Return the instructions that a profile gives for an answer, with the day and time of it."""
    now = answers.system_text(
        answers.PromptParts(
            profile=answers.profile_for_prompt(profile),
            now=turn.asked_at,
            time_zone=dependencies.rules.time_zone,
            fence=turn.turn_id.hex[:12],
            user_role=role_now(turn, dependencies),
            is_group=turn.chat.is_group,
            language=turn.chat.fixed_language,
        )
    )
    return with_day_of(now, stored)
