"""Make and store the answer of one turn.

A worker starts with `turn_run`.
"""

import logging
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError, connection
from django.utils import timezone

from memoryproject.foundation.errors.stored_errors import ErrorText, named_error_text
from memoryproject.foundation.integrations.llm.base import Picture
from memoryproject.foundation.integrations.whatsapp.base import Recipient, SendError
from memoryproject.foundation.leases import LeaseLostError
from memoryproject.foundation.outside_services.guards import deadline, time_left
from memoryproject.foundation.process.storage import is_disk_full
from sessions_app.conversations import epochs
from sessions_app.conversations.buttons import addressed, command_of, is_own_turn
from sessions_app.conversations.chat_language import language_learn
from sessions_app.conversations.phrases import received_text
from sessions_app.conversations.plain_words import asks_to_forget
from sessions_app.conversations.redact_derived import unstored_forget
from sessions_app.limits import answer_limits, intake
from sessions_app.models import GODFATHER, Message, Outcome, Provider, Turn, TurnState
from sessions_app.models.turns import turns_move
from sessions_app.turns import handing_over, message_files, open_questions, reply_store, send
from sessions_app.turns.bursts import OPEN_STATES, REMADE, burst_join, texts_to_answer
from sessions_app.turns.commands.dispatch import chosen_reply, command_reply, quoting_command
from sessions_app.turns.model_reply import MAX_ATTEMPTS, lease_release, model_reply, turn_put_back
from sessions_app.turns.turn_claims import WHOLE_TURNS, TurnLease
from sessions_app.turns.turn_dependencies import Dependencies, TurnWork

logger = logging.getLogger(__name__)

# How often an answer is made again immediately because something was forgotten meanwhile.
DRAFTS = 3


def turn_run(*, lease: TurnLease, dependencies: Dependencies) -> None:
    """Answer a claimed turn and send the answer; release the lease at the end.

    After an unexpected fault the answer is made once more, and then the person gets an apology and
    staff see the error. Where that can't be stored either, the turn is left for a retry.
    """
    has_ended = False
    try:
        work = TurnWork(lease.row, lease, dependencies)
        refused = _role_renew(work) or answer_limits.broadcast_refusal(work.turn)
        message, session = work.turn.message, work.turn.session
        if message is not None and session is not None and message.session_id == session.pk:
            message.session = session
        if work.turn.state in OPEN_STATES:
            try:
                with deadline(dependencies.rules.deadline.total_seconds()):
                    answered = _answer_or_apologise(work)
            finally:
                # What came meanwhile may have joined it.
                lease = work.lease
            if answered is None:
                return
            if answered.pk != lease.turn_id:
                # The apology of a question that has no answer.
                lease = TurnLease(answered, lease.token)
            work.turn, work.lease = answered, lease
        if work.turn.state in (TurnState.REPLIED, TurnState.SENDING):
            has_ended = send.reply_send(work, refused=refused)
    except LeaseLostError as lost:
        logger.warning("%s", lost)
    except (Turn.DoesNotExist, epochs.ChatGoneError):
        logger.warning("Turn %s was forgotten while it was answered.", lease.turn_id)
    except Exception as error:
        if isinstance(error, IntegrityError) and not _is_there(lease):
            logger.warning("Turn %s was forgotten while it was answered.", lease.turn_id)
        else:
            turn_put_back(lease, error, dependencies)
    finally:
        if not has_ended:
            lease_release(lease)


def _answer_or_apologise(work: TurnWork) -> Turn | None:
    """Make and store the answer, at the second try if need be; after that, an apology.

    Raises what has nothing to do with the answer: a lost lease or connection, a full disk, and
    what was forgotten meanwhile.
    """
    for tries_left in (1, 0):
        try:
            return _answer(work)
        except (LeaseLostError, Turn.DoesNotExist, epochs.ChatGoneError):
            raise
        except Exception as error:
            if is_disk_full(error) or not connection.is_usable() or not _is_there(work.lease):
                raise
            logger.exception("An answer could not be made or stored.")
            fault = ErrorText("answer_fault", why=named_error_text(error))
        work.lease.renew()
        work.turn = WHOLE_TURNS.get(pk=work.lease.turn_id)
        if work.turn.state not in OPEN_STATES:
            # It was stored after all: only the database's word that it was got lost.
            return work.turn
        # They were not stored.
        work.parts = ()
        if not tries_left or time_left() == 0:
            break
    return _store(work, open_questions.apology_draft(work.turn, fault))


def _is_there(lease: TurnLease) -> bool:
    return Turn.objects.filter(pk=lease.turn_id).exists()


def _role_renew(work: TurnWork) -> str:
    """Give the turn the role that its chat has now: the settings may have changed while it waited.

    Returns the code of why an answer that is stored already must not be sent, or "": one that was
    made for the owner may tell what only the owner sees.
    """
    turn: Any = work.turn
    before = turn.user_role
    role_in = work.dependencies.chat_memory.role_in
    turn.user_role = role_in(turn.chat, addresses=turn.current_addresses)
    if turn.user_role == before:
        return ""
    if turn.state in OPEN_STATES:
        logger.warning("Turn %s is answered as a %s's.", turn.turn_id, turn.user_role)
        Turn.objects.filter(pk=turn.pk).update(user_role=turn.user_role)
        return ""
    return intake.NOT_OWNERS if before == GODFATHER and not turn.by_hand else ""


def _answer(work: TurnWork) -> Turn | None:
    """Make and store the answer; return the turn as stored, or None if there is nothing to send.

    The turn of an apology is returned in the place of one that gets no answer.
    """
    turn, dependencies = work.turn, work.dependencies
    if turn.message is not None and turn.message.revoked_at:
        _end(work, TurnState.CANCELLED)
        return None
    if timezone.now() - turn.asked_at > dependencies.rules.max_answer_age:
        if not open_questions.question_missed(turn):
            _end(work, TurnState.MISSED)
        return None
    _learn_language(turn)
    try:
        answer_limits.answer_check(turn=turn, limits=dependencies.limits, now=timezone.now())
        _show_as_read(turn, dependencies)
        return _draft_until_stored(work)
    except intake.LimitReachedError as limit:
        return _refuse(work, limit.code)


def _learn_language(turn: Turn) -> None:
    """Learn the person's language from the message, here, so that no webhook waits for it."""
    text = turn.message.content if turn.message else turn.unstored_text
    # The words of calls and votes are ours.
    is_vote = turn.message is not None and "vote" in turn.message.metadata
    if text.strip() and not is_vote and turn.context.get("kind") != "call":
        command = command_of(text, in_group=turn.chat.is_group)
        words = command.argument if command else text
        language_learn(chat=turn.chat, text=words, spoken=command.language if command else "")


def _refuse(work: TurnWork, code: str) -> Turn | None:
    """End a turn that a limit forbids to answer; the first of a day says so to the person."""
    turn, limits, now = work.turn, work.dependencies.limits, timezone.now()
    reason = ErrorText(code)
    if code not in intake.DAY_CODES or not answer_limits.day_notice_due(
        turn=turn, code=code, limits=limits, now=now
    ):
        _end(work, TurnState.REFUSED, error=reason)
        return None
    draft = reply_store.say("limit_day", turn, error=reason, outcome=Outcome.REFUSED)
    # A caller of the API reads the error.
    if handing_over.can_be_handed_over(turn) and turn.provider != str(Provider.CONSOLE):
        draft.handover = handing_over.LIMIT
        draft.text = f"{draft.text}\n\n{handing_over.handover_text(turn, handing_over.LIMIT)}"
    return _store(work, draft)


def _draft_until_stored(work: TurnWork) -> Turn | None:
    for _ in range(DRAFTS - 1):
        try:
            return _draft_and_store(work)
        except _NewerTextError:
            logger.info("Turn %s answers what came meanwhile, too.", work.turn.turn_id)
        except epochs.ForgottenMeanwhileError:
            logger.info("Turn %s is answered anew: something was forgotten.", work.turn.turn_id)
            work.turn.refresh_from_db()
            work.lease.renew()
    return _draft_and_store(work)


def _draft_and_store(work: TurnWork) -> Turn | None:
    """Make and store the answer.

    Raises ForgottenMeanwhileError where the answer may hold what has been forgotten.
    """
    turn: Any = work.turn
    reader = epochs.Reader(turn.chat_id, sees_all=turn.user_role == GODFATHER)
    # As of the claim, for the first draft.
    epoch = epochs.epoch_read(reader, seen=turn.epochs)
    turn.epochs = None
    started, begun_at = time.monotonic(), timezone.now()
    draft = _draft(work)
    _join_newer(work, draft, begun_at=begun_at, took=time.monotonic() - started)
    waited = (begun_at - turn.created_at).total_seconds()
    draft.timings["waited_ms"] = max(round(waited * 1000), 0)
    draft.timings["total_ms"] = round((time.monotonic() - started) * 1000)
    return _store(work, draft, epoch)


class _NewerTextError(Exception):
    """The person has written on meanwhile: the answer is made anew, for the newest message."""


def _join_newer(
    work: TurnWork, draft: reply_store.Draft, *, begun_at: datetime, took: float
) -> None:
    """Take up what the person has written while the answer was made, once, if there is time.

    So is the answer to a text that was edited. What a choice has done is said as it is.

    Raises _NewerTextError, and then ``work`` is about the newest turn.
    """
    left, gap = time_left(), work.dependencies.rules.burst_gap
    is_in_time = left is None or left > took
    if not gap or not is_in_time or draft.chosen or work.turn.context.keys() & {REMADE, "notice"}:
        return
    lease = burst_join(work.lease, gap=gap, begun_at=begun_at)
    edited = Message.objects.filter(pk=work.turn.message_id, edited_at__gte=begun_at)
    if lease is work.lease and not (draft.prompt and edited.exists()):
        return
    Turn.objects.filter(pk=lease.turn_id).update(context={**lease.row.context, REMADE: True})
    work.lease, work.turn = lease, WHOLE_TURNS.get(pk=lease.turn_id)
    raise _NewerTextError


def _store(
    work: TurnWork, draft: reply_store.Draft, epoch: epochs.EpochSnapshot | None = None
) -> Turn | None:
    turn = work.turn
    if draft.is_apology and turn.provider != str(Provider.CONSOLE):
        return open_questions.question_unanswered(work, draft, epoch)
    if notice := answer_limits.notice_for(turn=turn, profile=work.profile):
        draft.text = f"{notice}\n\n{draft.text}"
    is_notice = epoch is None or "notice" in turn.context
    return reply_store.reply_store(
        work, draft, epoch if draft.uses_memory else None, may_learn=not is_notice
    )


def _draft(work: TurnWork) -> reply_store.Draft:
    """Make the answer without storing it."""
    turn = work.turn
    if notice := turn.context.get("notice"):
        return reply_store.notice_draft(notice, turn, work.dependencies)
    text = turn.message.content if turn.message else turn.unstored_text
    kind = turn.context.get("kind", "text")
    tries_left = turn.attempts <= MAX_ATTEMPTS
    if kind in message_files.RECORDINGS and not text.strip() and tries_left:
        try:
            text = message_files.recording_heard(work)
        except message_files.NotHeardError as error:
            outcome = Outcome.FAILED if error.why else Outcome.ANSWERED
            draft = reply_store.say(error.text_name, turn, error=error.why, outcome=outcome)
            draft.is_apology = draft.is_outside = error.is_outside
            return draft
    if kind == "document" and tries_left:
        return _with_document(work, text)
    return _reply(work, text)


def _with_document(work: TurnWork, text: str) -> reply_store.Draft:
    """Answer a message that came with a document.

    First comes the note on the document, then the answer to the message's text, which has access to
    the document.
    """
    note = message_files.document_note(work)
    if not text.strip():
        return reply_store.Draft(text=note, is_system_text=True)
    draft = _reply(work, text)
    draft.text = f"{note}\n\n{draft.text}"
    return draft


def _reply(work: TurnWork, text: str) -> reply_store.Draft:
    turn, dependencies = work.turn, work.dependencies
    text = addressed(text, in_group=turn.chat.is_group)
    is_own = is_own_turn(turn)
    chosen = chosen_reply(turn=turn, text=text, dependencies=dependencies) if is_own else None
    if chosen is not None:
        return chosen
    command = command_of(text, in_group=turn.chat.is_group)
    command = quoting_command(turn, text, command) if is_own else None
    if command is not None:
        return command_reply(turn=turn, command=command, dependencies=dependencies)
    pictures: list[Picture] = []
    if dependencies.rules.sees_pictures and turn.attempts <= MAX_ATTEMPTS:
        pictures = message_files.pictures_of(work)
    if not text.strip() and not pictures:
        kind = turn.context.get("kind", "text")
        return reply_store.Draft(text=received_text(kind, turn.chat.language), is_system_text=True)
    if turn.attempts > MAX_ATTEMPTS:
        return open_questions.apology_draft(turn, turn.error or ErrorText("answer_cut_off"))
    texts = texts_to_answer(turn, text)
    text = "\n".join(texts)
    if reason := handing_over.handover_reason(turn, text):
        return reply_store.handover_draft(turn, reason)
    hours: dict[str, str] = {}
    if reply_store.is_offline(dependencies.chat_model) and not pictures:
        talk = reply_store.small_talk_reply(turn, text, dependencies)
        if talk is not None:
            return talk
        if asks_to_forget(text):
            # What isn't surely their own is not forgotten at a word, and not told either.
            return reply_store.say("forget_usage", turn)
        hours = {each: answer for each in texts if (answer := reply_store.hours_reply(turn, each))}
        text = "\n".join(each for each in texts if each not in hours)
        if not text:
            # Without a model's name: it isn't among the questions without an answer.
            return reply_store.Draft(text=_joined(hours), is_system_text=True, uses_memory=False)
    draft = model_reply(work, text, pictures)
    draft.text = "\n\n".join(filter(None, (_joined(hours), draft.text)))
    if not draft.is_apology and handing_over.handover_is_offered(turn, text):
        reply_store.offer_person(draft, turn)
    return draft


def _joined(answers: Mapping[str, str]) -> str:
    return "\n\n".join(dict.fromkeys(answers.values()))


def _show_as_read(turn: Turn, dependencies: Dependencies) -> None:
    """Show the person that the assistant is at work.

    This is unimportant: a failure is logged.
    """
    if turn.attempts > 1 or not turn.provider_message_id:
        return
    # Where the message came from; it is answered where the person is by then.
    sender = turn.message.sender if turn.message and not turn.chat.is_group else ""
    to = Recipient(sender, by_number=turn.number_id) if sender else send.recipient_of(turn)
    try:
        dependencies.providers[turn.provider].mark_read(
            provider_message_id=turn.provider_message_id, to=to, typing=True
        )
    except SendError as error:
        logger.info("A message could not be marked as read: %s", error)


def _end(work: TurnWork, state: str, **noted: Any) -> None:
    """End a turn without an answer."""
    turn, held = work.turn, work.lease.held()
    if turns_move(held, state, finished_at=timezone.now(), **noted) and turn.session_id is None:
        unstored_forget(turn)
