"""Answer a message with the chat model: recall, prompt, completion."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import DatabaseError, Error, connection, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from memoryproject.foundation.errors.stored_errors import ErrorText, error_text, named_error_text
from memoryproject.foundation.integrations.context_limit import next_limit
from memoryproject.foundation.integrations.llm.base import (
    ChatModel,
    ChatModelError,
    ChatRequest,
    Completion,
    Finish,
    Picture,
    recited_lines,
)
from memoryproject.foundation.integrations.whatsapp import outgoing_text
from memoryproject.foundation.process import storage, tracing
from sessions_app.conversations import history_queries, message_text, phrases, session_lifecycle
from sessions_app.hours import tells_hours
from sessions_app.limits import answer_limits, intake
from sessions_app.models import GODFATHER, Outcome, Turn, TurnState
from sessions_app.models.chats import reading_role
from sessions_app.models.turns import turns_move
from sessions_app.recall.facade import RecallResult, Viewer, is_sure
from sessions_app.turns.compose_prompt import (
    Composed,
    Material,
    compose_prompt,
    history_for_prompt,
    known_context_tokens,
    left_out_record,
    material_of,
    recall_for_prompt,
    recalled_record,
)
from sessions_app.turns.handing_over import MODEL, handover_text
from sessions_app.turns.model_tools import QUOTES_PROMPT, ToolCalls
from sessions_app.turns.prompt import Prompt, Recalled, days_of, recited
from sessions_app.turns.reply_store import Draft, hours_reply, is_offline, recital
from sessions_app.turns.send import recipient_of
from sessions_app.turns.turn_claims import TurnLease
from sessions_app.turns.turn_dependencies import Dependencies, TurnWork

# Leave a turn for a retry after a fault: a full disk, a lost database, or any other one.

MAX_ATTEMPTS = 3
# How long a turn waits for disk space before it is retried.
STORAGE_PAUSE = timedelta(minutes=1)
# After a lost connection: half a minute in all.
RECONNECT_DELAYS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)


def turn_put_back(lease: TurnLease, error: Exception, dependencies: Dependencies) -> None:
    """Record the fault that ended the work on a turn, and leave the turn for a retry."""
    if storage.is_disk_full(error):
        _storage_full(lease, dependencies)
        return
    logger.error("A turn failed.", exc_info=error)
    if isinstance(error, Error) and not connection.is_usable():
        _put_back_after_outage(lease, error, dependencies.sleep)
        return
    _fault(lease, error)


def lease_release(lease: TurnLease) -> None:
    """Release the lease; where the release can't be written, the lease expires by itself."""
    try:
        lease.release()
    except Error as error:
        if connection.is_usable() and not storage.is_disk_full(error):
            raise


def _put_back_after_outage(
    lease: TurnLease, error: Exception, sleep: Callable[[float], None]
) -> None:
    """Leave the turn for a retry as soon as the database is there again.

    Without this its chat waits until the lease expires. The retry isn't delayed. It counts as an
    attempt: the turn itself may be what ended the connection.
    """
    for delay in RECONNECT_DELAYS:
        connection.close()
        try:
            held = lease.held()
            turn = held.first()
            if turn is not None:
                _retry_later(turn, held, error=named_error_text(error))
        except Error:
            sleep(delay)
        else:
            return
    logger.warning("The database is out of reach: turn %s waits for its lease.", lease.turn_id)


def _storage_full(lease: TurnLease, dependencies: Dependencies) -> None:
    """Handle ERR-SESSION-002: there is no space to store the answer.

    Nothing of it was stored (RECOVERY-004). The person is notified, and the turn waits until there
    is space. This doesn't count as an attempt.
    """
    logger.critical("The disk is full: the answer of turn %s is not stored.", lease.turn_id)
    turn = Turn.objects.select_related("chat").get(pk=lease.turn_id)
    if dependencies.storage_notices is not None:
        dependencies.storage_notices.notify(
            provider=turn.provider, to=recipient_of(turn), language=turn.chat.language
        )
    try:
        _retry_later(
            turn,
            lease.held(),
            attempts=F("attempts") - 1,
            error=ErrorText("disk_full"),
            not_before=timezone.now() + STORAGE_PAUSE,
        )
    except DatabaseError as error:
        logger.warning("The turn is taken up again when its lease ends: %s", error)


def _fault(lease: TurnLease, error: Exception) -> None:
    """Record the fault for staff and leave the turn for a retry.

    Each retry waits a little longer. After the apology has failed too, the turn fails for good.
    """
    held = lease.held()
    turn = held.first()
    if turn is None:
        return
    text = ErrorText("answer_fault", why=named_error_text(error))
    if turn.attempts > MAX_ATTEMPTS:
        with transaction.atomic():
            if turns_move(held, TurnState.FAILED, error=text, finished_at=timezone.now()):
                turn.error = text
                session_lifecycle.turn_failed(turn, stage=session_lifecycle.ANSWERING)
        return
    later = timezone.now() + timedelta(seconds=2**turn.attempts)
    _retry_later(turn, held, error=text, not_before=later)


def _retry_later(turn: Turn, held: QuerySet[Turn], **noted: Any) -> None:
    """Leave the turn for a retry; an answer that is stored is only sent again."""
    if turn.state == TurnState.RUNNING:
        turns_move(held, TurnState.PENDING, **noted)
    else:
        held.update(**noted)


logger = logging.getLogger(__name__)

# The codes of the errors of an answer that was stopped.
FILTERED = ("model_filtered", QUOTES_PROMPT)
# Each time about half of the prompt is sent.
MAX_SHORTENINGS = 4


@dataclass(frozen=True)
class Answered:
    """The last prompt and the model's answer to it, or the error.

    ``refused``: how many longer prompts were refused before.
    """

    composed: Composed
    completion: Completion | None = None
    error: ChatModelError | None = None
    refused: int = 0


def model_reply(work: TurnWork, text: str, pictures: Sequence[Picture] = ()) -> Draft:
    """Return the model's answer, or one from memory alone where the model gives none."""
    turn, dependencies = work.turn, work.dependencies
    draft = Draft(text="")
    history = history_for_prompt(turn, dependencies)
    recalled = _timed(draft, "recall_ms", lambda: _recall(turn, text, history, dependencies))
    is_nearest = bool(recalled.hits) and not is_sure(recalled.hits[0])
    shown: dict[str, Any] = {"pictures": pictures, "profile": work.profile}
    material = material_of(turn, text, history, recalled, dependencies, **shown)
    rules = dependencies.rules
    is_offered = rules.model_tools and rules.longterm_enabled and history is not None
    tools = ToolCalls(turn, dependencies, text, is_offered, history, own_name=work.profile.name)
    answered = _timed(draft, "model_ms", lambda: _ask(material, work.lease, dependencies, tools))
    _record(draft, material, answered.composed, refused=answered.refused)
    draft.prompt += [message.as_dict() for message in tools.exchange]
    draft.recalled += tools.recalled
    if answered.completion is None:
        _without_model(draft, answered, material, dependencies)
    else:
        completion = answered.completion
        draft.text = completion.text
        if not completion.is_recital:
            _cut(draft, completion, turn, dependencies)
        else:
            heading = "nearest" if is_nearest else "recital"
            draft.text = recital(completion.text, turn.chat.language, heading)
        draft.is_system_text = completion.is_recital
        draft.outcome = Outcome.FROM_MEMORY if completion.is_recital else Outcome.ANSWERED
        draft.model = completion.model
        draft.prompt_tokens = completion.prompt_tokens
        draft.completion_tokens = completion.completion_tokens
    if tools.hands_over and not draft.is_apology:
        draft.handover = MODEL
        draft.text = f"{draft.text}\n\n{handover_text(turn, MODEL)}".strip()
    if recalled.degraded and not draft.is_apology:
        draft.text += f"\n\n{phrases.text_for(message_text.NOTICE, turn.chat.language)}"
    return draft


def _without_model(
    draft: Draft, answered: Answered, material: Material, dependencies: Dependencies
) -> None:
    """Answer from memory alone, or apologise. Raises LimitReachedError."""
    language, error = material.turn.chat.language, answered.error
    if error is None or isinstance(error, intake.LimitReachedError):
        raise error or AssertionError("neither an answer nor an error")
    logger.error("The chat model gave no answer: %s", error)
    draft.error = error_text(error)
    draft.model = dependencies.chat_model.name
    recited_texts = _recited(answered.composed.prompt, material, most_unsure=0)
    draft.text = phrases.text_for("apology", language)
    if _is_filtered(error):
        draft.text = phrases.text_for("answer_filtered", language)
        recited_texts = []
    if recited_texts:
        lines = recited_lines(recited_texts)
        draft.text = recital(lines, language, "recital_unavailable")
    hours = hours_reply(material.turn, material.text)
    if hours:
        draft.text, draft.model = hours, ""
    is_known = bool(hours or recited_texts)
    draft.is_system_text = True
    draft.outcome = Outcome.FROM_MEMORY if is_known else Outcome.FAILED
    draft.is_apology = not is_known
    draft.is_outside = error.is_outside


def _cut(draft: Draft, completion: Completion, turn: Turn, dependencies: Dependencies) -> None:
    """End an answer that is too long with a whole sentence, and say so.

    It may be longer than the model could write, or than what is sent.
    """
    written = completion.text.rstrip()
    note = phrases.text_for("answer_cut", turn.chat.language)
    if completion.finish is Finish.CUT:
        draft.text = f"{outgoing_text.whole_sentences(written)}\n\n{note}"
    provider = dependencies.providers.get(turn.provider)
    if provider is not None:
        parts = dependencies.rules.max_reply_parts
        draft.text = outgoing_text.text_within(draft.text, provider.text_limit, parts, note)
    if draft.text != completion.text:
        draft.left_out["answer_cut"] = True


def _ask(
    material: Material, lease: TurnLease, dependencies: Dependencies, tools: ToolCalls
) -> Answered:
    """Ask the model; where the prompt is too long for it, again with about half of it.

    What a refusal shows of the limit is stored, once a shorter prompt was accepted.
    """
    turn, is_owner = material.turn, material.turn.user_role == GODFATHER
    plain, limits = dependencies.chat_model, dependencies.limits
    chat_model = answer_limits.MeteredChatModel(plain, turn.chat_id, is_owner, limits)
    composed = compose_prompt(material, dependencies, known_context_tokens(dependencies))
    limit = 0
    for refused in range(MAX_SHORTENINGS + 1):
        try:
            completion = _complete(chat_model, composed.prompt, material, lease, tools)
            if limit and dependencies.context_limit is not None:
                dependencies.context_limit.learn(limit)
            return Answered(composed, completion, refused=refused)
        except ChatModelError as error:
            sent = composed.prompt.tokens
            if error.overflow is None or refused == MAX_SHORTENINGS:
                return Answered(composed, error=error, refused=refused)
            reply_tokens = dependencies.rules.max_reply_tokens or 0
            limit = next_limit(sent=sent, overflow=error.overflow, reply=reply_tokens)
            logger.info("A prompt of about %d tokens was refused: %d are tried.", sent, limit)
            shorter = compose_prompt(material, dependencies, limit)
            if shorter.prompt.tokens >= sent:
                # Nothing is left that could be left out.
                return Answered(composed, error=error, refused=refused)
            composed = shorter
    raise AssertionError("not reached")


@tracing.span("model")
def _complete(
    chat_model: ChatModel, prompt: Prompt, material: Material, lease: TurnLease, tools: ToolCalls
) -> Completion:
    """Send the prompt, run the functions that the model calls, and return its answer."""
    request = ChatRequest(
        prompt.messages,
        recalled=_recited(prompt, material),
        max_reply_tokens=tools.dependencies.rules.max_reply_tokens,
    )
    return tools.complete(request, lambda wanted: _complete_once(chat_model, wanted, lease))


def _complete_once(chat_model: ChatModel, request: ChatRequest, lease: TurnLease) -> Completion:
    """Ask the model; where the request is refused for good, again without its pictures."""
    try:
        return chat_model.complete(request, before_attempt=lease.keep)
    except ChatModelError as error:
        is_final = error.overflow is not None or _is_filtered(error)
        has_pictures = any(message.pictures for message in request.messages)
        if not has_pictures or not error.permanent or is_final:
            raise
        logger.warning("The model is asked again, without pictures: %s", error)
    blind = [replace(message, pictures=()) for message in request.messages]
    return chat_model.complete(replace(request, messages=blind), before_attempt=lease.keep)


def _is_filtered(error: ChatModelError) -> bool:
    return getattr(error_text(error), "code", "") in FILTERED


def _recited(prompt: Prompt, material: Material, *, most_unsure: int = 1) -> list[str]:
    """Return the recalled texts for an answer that no model writes.

    Where none is sure, they are at most ``most_unsure`` of the others. The opening hours are the
    answer to questions about them alone, which ``hours_reply`` knows.
    """
    language = material.turn.chat.language
    kept = [text for text in prompt.kept_recalled if not tells_hours(text.content)]
    known = [text for text in kept if text.is_sure] or kept[:most_unsure]
    texts = (recited(text, material.text, holds=_holds(text, language)) for text in known)
    return [text for text in texts if text]


def _holds(text: Recalled, language: str) -> str:
    """Return when a memory holds, in the person's language."""
    if text.times is None:
        return ""
    zone = ZoneInfo(settings.BUSINESS_TIME_ZONE)
    days = days_of(text.times, zone)
    if text.times.has_ended(timezone.now()):
        days = [("ended", day) for _, day in days[-1:]]
    return ", ".join(phrases.text_for(f"fact_{word}", language, day=day) for word, day in days)


@tracing.span("recall")
def _recall(
    turn: Turn, text: str, history: history_queries.History | None, dependencies: Dependencies
) -> RecallResult:
    if history is None:
        return RecallResult([])
    viewer = Viewer(reading_role(turn.user_role, turn.context), turn.chat_id)
    # Without a model nobody tells whether they answer the question: one is offered.
    nearest = 1 if is_offline(dependencies.chat_model) else dependencies.rules.nearest
    return recall_for_prompt(text, viewer, history, dependencies, nearest=nearest)


def _record(draft: Draft, material: Material, composed: Composed, *, refused: int) -> None:
    """Add the replay record to the draft."""
    prompt, history = composed.prompt, composed.history
    draft.prompt = [message.as_dict() for message in prompt.messages]
    draft.recalled = recalled_record(material, prompt)
    draft.left_out = left_out_record(history, material.recalled, prompt, composed.dropped)
    draft.left_out["refused_prompts"] = refused
    draft.summary_id = history.summary.message.message_id if history and history.summary else None


def _timed(draft: Draft, name: str, work: Callable[[], Any]) -> Any:
    started = time.monotonic()
    try:
        return work()
    finally:
        draft.timings[name] = round((time.monotonic() - started) * 1000)
