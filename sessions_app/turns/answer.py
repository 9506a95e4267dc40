"""Make and store the answer of one turn.

A worker starts with `turn_run`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db import DatabaseError, Error, IntegrityError, connection, transaction
from django.db.models import BigIntegerField, F, OuterRef, QuerySet
from django.utils import timezone

from memoryproject.foundation.compiled_sql import Given, compiled_models
from memoryproject.foundation.errors.stored_errors import ErrorText, named_error_text
from memoryproject.foundation.integrations.llm.base import Picture
from memoryproject.foundation.integrations.whatsapp.base import SendError
from memoryproject.foundation.leases import LeaseLostError
from memoryproject.foundation.outside_services.deadline import deadline
from memoryproject.foundation.process.storage import is_disk_full
from sessions_app.conversations.facade import (
    ANSWERING,
    ChatGoneError,
    EpochSnapshot,
    ForgottenMeanwhileError,
    Reader,
    epoch_read,
    parse_command,
    received_text,
    text_for,
    turn_failed,
    unstored_forget,
)
from sessions_app.limits.facade import (
    DAY_CODES,
    NOT_OWNERS,
    LimitReachedError,
    answer_check,
    day_notice_due,
    notice_for,
    word_for,
)
from sessions_app.models import ChatAddress, Turn
from sessions_app.models.roles import GODFATHER
from sessions_app.models.turn_states import turns_move
from sessions_app.models.turns import TurnState
from sessions_app.turns.commands.dispatch import command_reply
from sessions_app.turns.documents import document_note
from sessions_app.turns.draft import Draft
from sessions_app.turns.model_reply import model_reply
from sessions_app.turns.pictures import pictures_of
from sessions_app.turns.reply_store import reply_store
from sessions_app.turns.send import recipient_of, reply_send
from sessions_app.turns.turn_claims import TurnLease
from sessions_app.turns.turn_dependencies import Dependencies
from sessions_app.turns.voice import KINDS as RECORDINGS
from sessions_app.turns.voice import NotHeardError, recording_heard

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
# How long a turn waits for disk space before it is retried.
STORAGE_PAUSE = timedelta(minutes=1)
# How often an answer is made again immediately because something was forgotten meanwhile.
DRAFTS = 3
# After a lost connection: half a minute in all.
RECONNECT_DELAYS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)


def turn_run(*, lease: TurnLease, dependencies: Dependencies) -> None:
    """Answer a claimed turn and send the answer; release the lease at the end.

    An unexpected fault leaves the turn for a retry. After the third fault the person gets an
    apology and staff see the error.
    """
    has_ended = False
    try:
        turn = _turn_read(lease)
        refused = _role_renew(turn, dependencies)
        message, session = turn.message, turn.session
        if message is not None and session is not None and message.session_id == session.pk:
            message.session = session
        if turn.state == TurnState.RUNNING:
            with deadline(dependencies.rules.deadline.total_seconds()):
                answered = _answer(turn, lease, dependencies)
            if answered is None:
                return
            turn = answered
        if turn.state == TurnState.REPLIED:
            has_ended = reply_send(
                lease=lease,
                turn=turn,
                provider=dependencies.providers[turn.provider],
                max_age=dependencies.rules.max_answer_age,
                sleep=dependencies.sleep,
                media=dependencies.media,
                refused=refused,
            )
    except LeaseLostError as lost:
        logger.warning("%s", lost)
    except (Turn.DoesNotExist, ChatGoneError):
        logger.warning("Turn %s was forgotten while it was answered.", lease.turn_id)
    except Exception as error:
        if is_disk_full(error):
            _storage_full(lease, dependencies)
            return
        if isinstance(error, IntegrityError) and not _is_there(lease):
            logger.warning("Turn %s was forgotten while it was answered.", lease.turn_id)
            return
        logger.exception("A turn failed.")
        if isinstance(error, Error) and not connection.is_usable():
            _put_back_after_outage(lease, error, dependencies.sleep)
            return
        _fault(lease, error)
    finally:
        if not has_ended:
            _release(lease)


def _is_there(lease: TurnLease) -> bool:
    return Turn.objects.filter(pk=lease.turn_id).exists()


def _role_renew(turn: Any, dependencies: Dependencies) -> str:
    """Give the turn the role that its chat has now: the settings may have changed while it waited.

    Returns the code of why an answer that is stored already must not be sent, or "": one that was
    made for the owner may tell what only the owner sees.
    """
    before = turn.user_role
    role_in = dependencies.chat_memory.role_in
    turn.user_role = role_in(turn.chat, addresses=turn.current_addresses)
    if turn.user_role == before:
        return ""
    if turn.state == TurnState.RUNNING:
        logger.warning("Turn %s is answered as a %s's.", turn.turn_id, turn.user_role)
        Turn.objects.filter(pk=turn.pk).update(user_role=turn.user_role)
        return ""
    return NOT_OWNERS if before == GODFATHER and not turn.by_hand else ""


def _turn_read(lease: TurnLease) -> Any:
    """Return the turn with all that an answer needs of it. Raises Turn.DoesNotExist."""
    found = _turns_with_all(turn_id=lease.turn_id)
    if not found:
        raise Turn.DoesNotExist
    return found[0]


@compiled_models
def _turns_with_all() -> QuerySet[Turn]:
    current = ChatAddress.objects.filter(chat=OuterRef("chat"), left_at__isnull=True)
    addresses = ArraySubquery(current.order_by().values("address"))
    turns = Turn.objects.select_related("chat__access", "session", "message")
    turns = turns.annotate(current_addresses=addresses)
    return turns.filter(pk=Given("turn_id", BigIntegerField())).defer("message__terms")


def _release(lease: TurnLease) -> None:
    """Release the lease; where the release can't be written, the lease expires by itself."""
    try:
        lease.release()
    except Error as error:
        if connection.is_usable() and not is_disk_full(error):
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


def _answer(turn: Turn, lease: TurnLease, dependencies: Dependencies) -> Turn | None:
    """Make and store the answer; return the turn as stored, or None if it ends without one."""
    if turn.message is not None and turn.message.revoked_at:
        _end(turn, lease, TurnState.CANCELLED)
        return None
    if timezone.now() - turn.asked_at > dependencies.rules.max_answer_age:
        _end(turn, lease, TurnState.MISSED)
        return None
    try:
        answer_check(turn=turn, limits=dependencies.limits, now=timezone.now())
        _show_as_read(turn, dependencies)
        return _draft_until_stored(turn, lease, dependencies)
    except LimitReachedError as limit:
        return _refuse(turn, lease, limit.code, dependencies)


def _refuse(turn: Turn, lease: TurnLease, code: str, dependencies: Dependencies) -> Turn | None:
    """End a turn that a limit forbids to answer; the first of a day says so to the person."""
    reason = ErrorText(code)
    limits = dependencies.limits
    if code not in DAY_CODES or not day_notice_due(
        turn=turn, code=code, limits=limits, now=timezone.now()
    ):
        _end(turn, lease, TurnState.REFUSED, error=reason)
        return None
    return _store(turn, lease, _say("limit_day", turn, error=reason), dependencies)


def _draft_until_stored(turn: Turn, lease: TurnLease, dependencies: Dependencies) -> Turn:
    for _ in range(DRAFTS - 1):
        try:
            return _draft_and_store(turn, lease, dependencies)
        except ForgottenMeanwhileError:
            logger.info("Turn %s is answered anew: something was forgotten.", turn.turn_id)
            turn.refresh_from_db()
            lease.renew()
    return _draft_and_store(turn, lease, dependencies)


def _draft_and_store(turn: Turn, lease: TurnLease, dependencies: Dependencies) -> Turn:
    """Make and store the answer.

    Raises ForgottenMeanwhileError where the answer may hold what has been forgotten.
    """
    epoch = epoch_read(Reader(turn.chat_id, sees_all=turn.user_role == GODFATHER))
    started = time.monotonic()
    waited = timezone.now() - turn.created_at
    draft = _draft(turn, lease, dependencies)
    draft.timings["waited_ms"] = max(round(waited.total_seconds() * 1000), 0)
    draft.timings["total_ms"] = round((time.monotonic() - started) * 1000)
    return _store(turn, lease, draft, dependencies, epoch)


def _store(
    turn: Turn,
    lease: TurnLease,
    draft: Draft,
    dependencies: Dependencies,
    epoch: EpochSnapshot | None = None,
) -> Turn:
    if notice := notice_for(turn=turn):
        draft.text = f"{notice}\n\n{draft.text}"
    is_notice = epoch is None or "notice" in turn.context
    return reply_store(
        lease=lease,
        begun=turn,
        draft=draft,
        provider=dependencies.providers[turn.provider],
        chat_memory=dependencies.chat_memory,
        epoch=epoch if draft.uses_memory else None,
        learn=None if is_notice else dependencies.learn,
    )


def _draft(turn: Turn, lease: TurnLease, dependencies: Dependencies) -> Draft:
    """Make the answer without storing it."""
    if notice := turn.context.get("notice"):
        return _notice(notice, turn, dependencies)
    text = turn.message.content if turn.message else turn.unstored_text
    kind = turn.context.get("kind", "text")
    tries_left = turn.attempts <= MAX_ATTEMPTS
    if kind in RECORDINGS and not text.strip() and tries_left:
        try:
            text = recording_heard(turn=turn, lease=lease, dependencies=dependencies)
        except NotHeardError as error:
            return _say(error.text_name, turn)
    if kind == "document" and tries_left:
        return _with_document(turn, text, lease, dependencies)
    return _reply(turn, text, lease, dependencies)


def _with_document(turn: Turn, text: str, lease: TurnLease, dependencies: Dependencies) -> Draft:
    """Answer a message that came with a document.

    First comes the note on the document, then the answer to the message's text, which has access to
    the document.
    """
    note = document_note(turn=turn, lease=lease, dependencies=dependencies)
    if not text.strip():
        return Draft(text=note, is_system_text=True)
    draft = _reply(turn, text, lease, dependencies)
    draft.text = f"{note}\n\n{draft.text}"
    return draft


def _reply(turn: Turn, text: str, lease: TurnLease, dependencies: Dependencies) -> Draft:
    command = parse_command(text, in_group=turn.chat.is_group)
    if command is not None:
        return command_reply(turn=turn, command=command, dependencies=dependencies)
    pictures: list[Picture] = []
    if dependencies.rules.sees_pictures and turn.attempts <= MAX_ATTEMPTS:
        pictures = pictures_of(turn=turn, lease=lease, dependencies=dependencies)
    if not text.strip() and not pictures:
        kind = turn.context.get("kind", "text")
        return Draft(text=received_text(kind, turn.chat.language), is_system_text=True)
    if turn.attempts > MAX_ATTEMPTS:
        return _say("apology", turn)
    return model_reply(
        turn=turn, text=text, lease=lease, dependencies=dependencies, pictures=pictures
    )


def _say(name: str, turn: Turn, *, error: str = "", **values: str) -> Draft:
    text = text_for(name, turn.chat.language, **values)
    return Draft(text=text, is_system_text=True, error=error)


def _notice(name: str, turn: Turn, dependencies: Dependencies) -> Draft:
    """Return the system text that answers the message instead of the model."""
    limits = dependencies.limits
    words = limits.stop_words if name == "opted_in" else limits.start_words
    reason = turn.context.get("reason")
    error = ErrorText(reason) if reason else ""
    return _say(name, turn, error=error, word=word_for(turn.chat.language, words))


def _show_as_read(turn: Turn, dependencies: Dependencies) -> None:
    """Show the person that the assistant is at work.

    This is unimportant: a failure is logged.
    """
    if turn.attempts > 1 or not turn.provider_message_id:
        return
    try:
        dependencies.providers[turn.provider].mark_read(
            provider_message_id=turn.provider_message_id, to=recipient_of(turn), typing=True
        )
    except SendError as error:
        logger.info("A message could not be marked as read: %s", error)


def _end(turn: Turn, lease: TurnLease, state: str, **noted: Any) -> None:
    """End a turn without an answer."""
    held = lease.held()
    if turns_move(held, state, finished_at=timezone.now(), **noted) and turn.session_id is None:
        unstored_forget(turn)


def _fault(lease: TurnLease, error: Exception) -> None:
    """Record the fault for staff and leave the turn for a retry.

    Each retry waits a little longer. After the apology has failed too, the turn fails for good.
    """
    held = lease.held()
    turn = held.first()
    if turn is None:
        return
    text = named_error_text(error)
    if turn.attempts > MAX_ATTEMPTS:
        with transaction.atomic():
            if turns_move(held, TurnState.FAILED, error=text, finished_at=timezone.now()):
                turn_failed(turn, stage=ANSWERING)
        return
    later = timezone.now() + timedelta(seconds=2**turn.attempts)
    _retry_later(turn, held, error=text, not_before=later)


def _retry_later(turn: Turn, held: QuerySet[Turn], **noted: Any) -> None:
    """Leave the turn for a retry; an answer that is stored is only sent again."""
    if turn.state == TurnState.RUNNING:
        turns_move(held, TurnState.PENDING, **noted)
    else:
        held.update(**noted)
