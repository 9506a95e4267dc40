"""The question set: what staff marked as right or wrote is asked again. Nothing is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import F
from django.utils import timezone

from memories_app.models import Memory, MemoryStatus
from memoryproject.environment import Environment
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from memoryproject.foundation.retrieval.query import informative_terms, query_terms
from memoryproject.foundation.text.characters import detect_language
from memoryproject.foundation.text.terms import index_terms
from memoryproject.settings_table import OWN_SETTINGS
from sessions_app.models import CheckDay, CheckQuestion, Turn, TurnReplay
from sessions_app.models.trials import QuestionSource, QuestionState
from sessions_app.recall.facade import MEMORY, Hit
from sessions_app.turns.compose_prompt import recall_for_prompt, recall_today
from sessions_app.turns.turn_dependencies import Dependencies

# So many are checked, those that were checked longest ago first.
MAX_CHECKED = 1_000
# So many replacements of a memory are followed.
MAX_REPLACED = 20
# A question that nobody in particular asks belongs to no chat.
NOBODY = UUID(int=0)
# The settings that decide what is recalled, with their names among the rules of an answer.
RECALL_SETTINGS: Mapping[str, str] = MappingProxyType(
    {"RECALL_TOP_K": "top_k", "RECALL_MIN_SIMILARITY": "min_similarity"}
)


def question_follow(turn: Turn) -> None:
    """Put the question of an answer into the set while anybody rates the answer good.

    It expects the memory that came first in the answer's prompt. Commands aren't questions.
    """
    message, good = turn.message, turn.ratings.filter(is_good=True).order_by("rated_at").first()
    if good is None:
        CheckQuestion.objects.filter(message=turn.message_id).delete()
    if message is None or good is None or turn.by_hand or message.content.strip()[:1] in ("", "/"):
        return
    used = [
        (str(each["id"]), each.get("score"))
        for each in TurnReplay.of(turn).recalled
        if each.get("source") == MEMORY and each.get("in_prompt")
    ]
    values = {
        "user_role": turn.user_role,
        "language": detect_language(message.content),
        "memory_id": used[0][0] if used else None,
        "source": QuestionSource.ANSWER,
        "created_by": good.user_name,
        # Staff say that it was right then.
        "passed_at": (turn.finished_at or turn.created_at) if used else None,
        "recalled_then": used,
    }
    CheckQuestion.objects.get_or_create(message=message, defaults=values)


@dataclass(frozen=True)
class Checked:
    """A question with what is recalled for it today.

    ``memory``: the expected one, or that which replaced it; None if there is none in use. ``state``
    is one of QuestionState, never NEW.
    """

    question: CheckQuestion
    memory: Memory | None
    recalled: Sequence[Hit]
    state: str


def questions_check(
    *, dependencies: Dependencies, changed: Mapping[str, Any] = MappingProxyType({})
) -> list[Checked]:
    """Recall the questions of the set; nothing is stored.

    ``changed``: rules of answers by name, tried instead of those in force. Returns nothing where
    long-term memory is off. A question for which memory could not be searched is left out; raises
    EmbedderError if that is all of them.
    """
    dependencies = replace(dependencies, rules=replace(dependencies.rules, **changed))
    if not dependencies.rules.longterm_enabled:
        return []
    questions = CheckQuestion.objects.exclude(message__revoked_at__isnull=False)
    questions = questions.select_related("message__turn__chat", "message__session")
    due = questions.order_by(F("checked_at").asc(nulls_first=True), "pk")[:MAX_CHECKED]
    checked = [_checked(question, dependencies) for question in due]
    told = [each for each in checked if each is not None]
    if checked and not told:
        raise EmbedderError("Memory could not be searched.")
    return told


def _checked(question: CheckQuestion, dependencies: Dependencies) -> Checked | None:
    """Return the result, or None where a part of memory could not be searched."""
    turn = getattr(question.message, "turn", None)
    if question.message and turn:
        found = recall_today(question.message, turn=turn, dependencies=dependencies)
    else:
        found = recall_for_prompt(
            question.asked,
            chat_id=question.chat_id or NOBODY,
            user_role=question.user_role,
            history=None,
            dependencies=dependencies,
        )
    memory = _in_use(Memory.objects.filter(pk=question.memory_id).first())
    state = QuestionState.PASSES
    if memory is None and not question.expected:
        state = QuestionState.OFF
    elif not any(
        hit.id == (memory and memory.pk) or holds_words(hit.content, question.expected)
        for hit in found.hits
    ):
        state = QuestionState.FAILS
    return None if found.degraded else Checked(question, memory, found.hits, state)


def _in_use(memory: Memory | None) -> Memory | None:
    """Return the memory, or the one that replaced it, if it is in use."""
    for _step in range(MAX_REPLACED):
        memory = (memory and memory.superseded_by) or memory
    if memory is None or memory.status != MemoryStatus.ACTIVE:
        return None
    ends, now = (memory.expires_at, memory.valid_until), timezone.now()
    return None if any(each is not None and each < now for each in ends) else memory


def holds_words(text: str, words: str) -> bool:
    """Return whether the text has all of the words, each in any of its forms."""
    found = set(index_terms(text))
    # Not by sound, which finds names in another script.
    written = [
        [form for form in term.forms if not form.startswith("@")]
        for term in informative_terms(query_terms(words))
    ]
    return bool(written) and not any(found.isdisjoint(forms) for forms in written)


def recall_rule(setting: str, text: str) -> dict[str, Any]:
    """Return the rule that a setting's text means, by its name. Raises ValueError."""
    if setting not in RECALL_SETTINGS or not text:
        raise ValueError(f"{setting}={text}: a value of one of {', '.join(RECALL_SETTINGS)}")
    env = Environment(values={setting: text})
    value = env.read(setting, OWN_SETTINGS[setting])
    if env.errors:
        raise ValueError(" ".join(map(str, env.errors)))
    return {RECALL_SETTINGS[setting]: value}


def questions_check_store(*, dependencies: Dependencies, now: datetime) -> dict[str, int]:
    """Check the questions and store the results; return how many passed and failed.

    What was edited or deleted meanwhile is left alone. Raises EmbedderError.
    """
    counts = {QuestionState.PASSES: 0, QuestionState.FAILS: 0, QuestionState.OFF: 0}
    for each in questions_check(dependencies=dependencies):
        counts[each.state] += 1
        question, hits = each.question, [hit for hit in each.recalled if hit.source == MEMORY]
        recalled = [[str(hit.id), round(hit.score, 2)] for hit in hits]
        values: dict[str, Any] = {"state": each.state, "checked_at": now, "recalled_now": recalled}
        if each.state != question.state:
            values["since"] = now
        if each.state == QuestionState.PASSES:
            values |= {"passed_at": now, "recalled_then": recalled}
        same = {name: getattr(question, name) for name in ("pk", "text", "expected", "user_role")}
        CheckQuestion.objects.filter(**same).update(**values)
    result = {"passed": counts[QuestionState.PASSES], "failed": counts[QuestionState.FAILS]}
    if any(result.values()):
        day = timezone.localdate(now, ZoneInfo(settings.BUSINESS_TIME_ZONE))
        CheckDay.objects.update_or_create(day=day, defaults=result)
    return result
