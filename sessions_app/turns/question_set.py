"""The question set: what staff marked as right or wrote is asked again. Nothing is sent."""

from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import F
from django.utils import timezone

from memories_app.models import Memory, MemoryStatus
from memoryproject.foundation.retrieval.query import informative_terms, query_terms
from memoryproject.foundation.staff_notices import Kind, notify
from memoryproject.foundation.text import characters, terms
from sessions_app.conversations import history_queries, phrases
from sessions_app.hours import hours_of
from sessions_app.hours_answers import hours_answer
from sessions_app.models import CheckDay, CheckQuestion, Turn, TurnReplay
from sessions_app.models.trials import ANSWER, QuestionState
from sessions_app.recall.facade import MEMORY, Viewer
from sessions_app.turns.compose_prompt import recall_for_prompt, recall_today
from sessions_app.turns.turn_dependencies import Dependencies

# So many are checked, those that were checked longest ago first.
MAX_CHECKED = 1_000
# So many replacements of a memory are followed.
MAX_REPLACED = 20
RESULT = ("state", "since", "passed_at", "checked_at", "recalled_then", "recalled_now")


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
        "language": characters.detect_language(message.content),
        "memory_id": used[0][0] if used else None,
        "source": ANSWER,
        "created_by": good.user_name,
        # Staff say that it was right then.
        "passed_at": (turn.finished_at or turn.created_at) if used else None,
        "recalled_then": used,
    }
    CheckQuestion.objects.get_or_create(message=message, defaults=values)


def questions_check(*, dependencies: Dependencies, now: datetime) -> list[CheckQuestion]:
    """Recall the questions of the set; return them with their results, which aren't stored.

    Returns nothing where long-term memory is off. A question for which memory could not be searched
    is left out. Raises EmbedderError.
    """
    if not dependencies.rules.longterm_enabled:
        return []
    questions = CheckQuestion.objects.exclude(message__revoked_at__isnull=False)
    questions = questions.select_related("message__turn__chat", "message__session")
    due = list(questions.order_by(F("checked_at").asc(nulls_first=True), "pk")[:MAX_CHECKED])
    if due:
        # Recall goes on with words alone where no vectors can be made, and would find less.
        dependencies.embedder.embed([due[0].asked])
    return [question for question in due if _check(question, dependencies, now)]


def _check(question: CheckQuestion, dependencies: Dependencies, now: datetime) -> bool:
    """Put the result into the question; return False where memory could not be searched."""
    message, turn = question.message, getattr(question.message, "turn", None)
    if message and turn:
        found = recall_today(message, turn=turn, dependencies=dependencies)
    else:
        # There is no such chat: nobody in particular asks.
        viewer = Viewer(question.user_role, question.chat_id or UUID(int=0))
        found = recall_for_prompt(question.asked, viewer, None, dependencies)
    memory = _in_use(Memory.objects.filter(pk=question.memory_id).first())
    state, key = QuestionState.FAILS, memory and memory.pk
    if memory is None and not question.expected:
        state = QuestionState.OFF
    elif any(
        hit.id == key or holds_words(hit.content, question.expected) for hit in found.hits
    ) or holds_words(_from_hours(question, now), question.expected):
        state = QuestionState.PASSES
    hits = [[str(hit.id), round(hit.score, 2)] for hit in found.hits if hit.source == MEMORY]
    question.since = question.since if state == question.state else now
    question.state, question.recalled_now, question.checked_at = state, hits, now
    if state == QuestionState.PASSES:
        question.passed_at, question.recalled_then = now, hits
    return not found.degraded


def _from_hours(question: CheckQuestion, now: datetime) -> str:
    """Return the answer that the opening hours give by themselves, "" for none."""
    hours, language = hours_of(history_queries.profile_current()), question.language
    answer = hours and hours_answer(question.asked, hours=hours, now=now, language=language)
    # It doesn't say of itself that these are the hours.
    return phrases.text_for("handover_hours", language, hours=answer) if answer else ""


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
    found = set(terms.index_terms(text))
    # Not by sound, which finds names in another script.
    written = [
        [form for form in term.forms if not form.startswith("@")]
        for term in informative_terms(query_terms(words))
    ]
    return bool(written) and not any(found.isdisjoint(forms) for forms in written)


def questions_check_store(*, dependencies: Dependencies, now: datetime) -> dict[str, int]:
    """Check the questions and store the results; return how many passed and failed.

    A question that is edited meanwhile is checked again. Raises EmbedderError.
    """
    checked = questions_check(dependencies=dependencies, now=now)
    CheckQuestion.objects.bulk_update(checked, RESULT, batch_size=100)
    states = [question.state for question in checked]
    passed, failed = states.count(QuestionState.PASSES), states.count(QuestionState.FAILS)
    if passed or failed:
        day = timezone.localdate(now, ZoneInfo(settings.BUSINESS_TIME_ZONE))
        CheckDay.objects.update_or_create(day=day, defaults={"passed": passed, "failed": failed})
        # Of those that passed before, staff are told, once a day.
        fails = [each for each in checked if each.state == QuestionState.FAILS and each.passed_at]
        if any(each.since == now for each in fails):
            notify(Kind.REGRESSION, [(day, None)])
    return {"passed": passed, "failed": failed}
