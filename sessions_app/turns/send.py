"""Send a stored answer part by part; no part is sent twice automatically."""

import io
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import BinaryIO, cast

from django.db import IntegrityError, transaction
from django.utils import timezone

from memoryproject.foundation.errors.stored_errors import ErrorText, error_text
from memoryproject.foundation.integrations.media_storage.base import MediaStorageError
from memoryproject.foundation.integrations.whatsapp import base as whatsapp, templates
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import address_forms
from memoryproject.foundation.leases import RELEASED
from memoryproject.foundation.process.tracing import span
from sessions_app.conversations.redact_derived import unstored_forget
from sessions_app.limits.intake import BLOCKED, LimitReachedError
from sessions_app.media.fetch import attachment_of, media_name
from sessions_app.models import ChatAddress, OutboundPart, Turn
from sessions_app.models.chats import Provider
from sessions_app.models.deliveries import PartState
from sessions_app.models.messages import DeliveryStatus
from sessions_app.models.turns import QUOTES, SENDS_FILE, TEMPLATE, TurnState, turn_move, turns_move
from sessions_app.turns import questions, statuses
from sessions_app.turns.turn_claims import TurnLease, is_blocked, turn_update_state
from sessions_app.turns.turn_dependencies import TurnWork

logger = logging.getLogger(__name__)

RETRY_DELAYS = (1.0, 2.0, 4.0)
# A longer delay (a day, for some of Meta's limits) would hold up the chat.
MAX_WAIT = timedelta(minutes=15)


@span("send")
def reply_send(work: TurnWork, *, refused: str = "") -> bool:
    """Send the parts of a turn's answer that are still waiting.

    Returns whether the turn has ended, and its lease with it.

    A temporary failure leaves the turn ``replied`` for a later retry, and so does a provider that
    refuses our account, until the answer is too old. A permanent failure ends it as ``failed``. A
    failure with an unknown outcome leaves it ``sending`` until a status webhook or the sweeper
    decides. Where staff have blocked the chat meanwhile, it ends as ``refused``.
    ``refused``: why nothing is sent. Raises LeaseLostError.
    """
    turn, lease = work.turn, work.lease
    max_age = work.dependencies.rules.max_answer_age
    to = recipient_of(turn)
    waiting = OutboundPart.objects.filter(turn=turn.pk, state=PartState.WAITING)
    parts = list(work.parts or waiting.order_by("number"))
    if refused and parts:
        _refuse(lease, parts[0], refused)
        return True
    if parts and statuses.too_late(turn, max_age):
        # Held until WhatsApp's window had closed: it isn't called.
        error = whatsapp.SendError(ErrorText("send_too_late", why=turn.error), permanent=True)
        _part_failed(lease, parts[0], error, max_age)
        return False
    for part in parts:
        try:
            result = _send_part(work, part, to)
        except LimitReachedError as limit:
            _refuse(lease, part, limit.code)
            return True
        except whatsapp.SendError as error:
            _part_failed(lease, part, error, max_age)
            return False
        if _part_sent(part, result, is_console=turn.provider == str(Provider.CONSOLE)):
            return True
    if not parts:
        with transaction.atomic():
            turn_update_state(turn=lease.lock())
    return False


def sends_file(turn: Turn, part: OutboundPart) -> bool:
    """Return whether a part of a turn is its file, with the part's text as its caption."""
    return SENDS_FILE in turn.context and part.number == 1


def recipient_of(turn: Turn) -> whatsapp.Recipient:
    """Return where the answer goes at the turn's provider.

    That is the chat's address, in the form of its number that WhatsApp used last at this provider.
    Where staff merged two contacts it is the one that the message came from, as long as it is
    theirs.
    """
    chat = turn.chat
    if chat.is_group:
        return whatsapp.Recipient.at(chat.whatsapp_chat, turn.number_id)
    current = ChatAddress.objects.filter(chat=chat, provider=turn.provider, left_at__isnull=True)
    is_main_alone = getattr(turn, "current_addresses", ()) == [chat.whatsapp_chat]
    links = [] if is_main_alone else list(current.order_by("-created_at"))
    main = chat.whatsapp_chat
    sender = turn.message.sender if turn.message is not None else ""
    origins = {link.address: link.origin for link in links}
    if len(set(origins.values())) > 1:
        main = sender if sender in origins else main
        links = [link for link in links if link.origin == origins.get(main)]
    forms = address_forms(main)
    used = [link.address for link in links if link.address in forms]
    if used and (main not in used or turn.provider != chat.provider):
        # Another provider used the main one last.
        main = sender if sender in used else used[0]
    bsuid = next((link.address for link in links if link.address.endswith("@bsuid")), None)
    # A merge at this moment may have moved the addresses: then the main one says what is known.
    return whatsapp.Recipient.at(main, turn.number_id, bsuid and bsuid.removesuffix("@bsuid"))


def _send_part(work: TurnWork, part: OutboundPart, to: whatsapp.Recipient) -> whatsapp.SendResult:
    """Send one part, with the quick retries.

    Each attempt is committed as ``sending`` before it, the first one with the answer, and as
    ``waiting`` after it where it is known that nothing went out. So a worker that is killed between
    two attempts leaves an answer that will be sent. Raises SendError, and LimitReachedError before
    an attempt.
    """
    turn, lease = work.turn, work.lease
    for delay in (*RETRY_DELAYS, None):
        if part.state != PartState.SENDING:
            _commit(lease, part, TurnState.SENDING, PartState.SENDING)
        try:
            if sends_file(turn, part):
                return file_send(work, part, to=to, reply_to=_quote(turn, part, to))
            return _send(work.dependencies.providers[turn.provider], turn, part, to)
        except whatsapp.SendError as error:
            if error.permanent or error.outcome_unknown or error.is_paused or delay is None:
                raise
            logger.warning("An answer could not be sent, trying again: %s", error)
            _commit(lease, part, TurnState.REPLIED, PartState.WAITING)
            work.dependencies.sleep(max(delay, min(error.retry_after or 0.0, 30.0)))
    raise AssertionError("the last try returns or raises")


def _send(
    provider: whatsapp.WhatsAppProvider, turn: Turn, part: OutboundPart, to: whatsapp.Recipient
) -> whatsapp.SendResult:
    """Call the provider once. Raises SendError."""
    callback_id = str(part.id)
    # A template whose values were erased is as empty as a text.
    if TEMPLATE in turn.context and part.content:
        if not isinstance(provider, whatsapp.TemplateProvider):
            raise whatsapp.SendError(ErrorText("send_no_template"), permanent=True)
        template = _template(turn, part)
        return provider.send_template(to=to, template=template, callback_id=callback_id)
    with_choices = questions.question_send(provider, turn, part, to)
    if with_choices is not None:
        return with_choices
    reply_to = _quote(turn, part, to)
    return provider.send_text(to=to, text=part.content, callback_id=callback_id, reply_to=reply_to)


def _template(turn: Turn, part: OutboundPart) -> whatsapp.Template:
    """Return the template of a turn: its part holds a title and, a line each, the values."""
    about = turn.context[TEMPLATE]
    _title, *values = part.content.split("\n")
    slots = tuple(templates.Slot(**slot) for slot in about.get("slots", ()))
    return whatsapp.Template(str(about["name"]), str(about["language"]), tuple(values), slots)


def _commit(lease: TurnLease, part: OutboundPart, turn_state: str, part_state: str) -> None:
    """Commit the new states of the turn and of a part, and the renewed lease, together.

    Nothing is written between this and the call: where the database can't store ``sending``, the
    state still says that nothing was sent. Raises LeaseLostError, also where the answer was
    cancelled, and LimitReachedError where staff have blocked the chat by now.
    """
    with transaction.atomic():
        if part_state == PartState.SENDING and is_blocked(lease.lock()):
            raise LimitReachedError(BLOCKED)
        if not turns_move(lease.held(), turn_state, lease_until=lease.until()):
            raise lease.lost()
        part.state = part_state
        if part_state == PartState.SENDING:
            part.started_at = timezone.now()
        part.save(update_fields=["state", "started_at"])


def _quote(turn: Turn, part: OutboundPart, to: whatsapp.Recipient) -> str | None:
    """Return the message to quote.

    A reply by staff quotes the message that they chose, in its first part. In a group an answer
    quotes the message, so that people see whom it answers.
    """
    if turn.by_hand:
        chosen = str(turn.context.get(QUOTES, ""))
        return chosen or None if part.number == 1 else None
    # Not by the turn's chat: that may be merged into another one at this very moment.
    return turn.provider_message_id or None if to.group_id else None


def _part_sent(part: OutboundPart, result: whatsapp.SendResult, *, is_console: bool) -> bool:
    """Store that a part was sent; return whether the turn has ended with it."""
    try:
        with transaction.atomic():
            # A status may be on its way in at this moment: neither write may overwrite the other.
            part, parts = statuses.parts_locked(part)
            part.provider_message_id = result.provider_message_id
            part.state = PartState.SENT
            part.content = ""
            arrived = DeliveryStatus.DELIVERED if is_console else DeliveryStatus.SENT
            part.delivery_status = part.delivery_status or arrived
            statuses.early_statuses_take(part=part)
            statuses.part_update(
                part, parts, more=any(each.state == PartState.WAITING for each in parts)
            )
    except IntegrityError:
        # The echo of this send was taken for an older one of the same text.
        at_provider = OutboundPart.objects.filter(provider=part.provider, number_id=part.number_id)
        mistaken = at_provider.filter(provider_message_id=result.provider_message_id)
        mistaken = mistaken.exclude(pk=part.pk)
        if not mistaken.update(provider_message_id=None, state=PartState.UNCONFIRMED):
            raise
        return _part_sent(part, result, is_console=is_console)
    return part.turn.lease_token is None


def _refuse(lease: TurnLease, part: OutboundPart, code: str) -> None:
    """End a turn whose chat isn't answered any more: neither this part nor a later one is sent."""
    reason = ErrorText(code)
    ended = {"error": reason, "finished_at": timezone.now(), **RELEASED}
    with transaction.atomic():
        if not turns_move(lease.held(), TurnState.REFUSED, **ended):
            raise lease.lost()
        part, _parts = statuses.parts_locked(part)
        waiting = OutboundPart.objects.filter(turn=part.turn, state=PartState.WAITING)
        waiting.update(
            state=PartState.FAILED, delivery_status=DeliveryStatus.FAILED, error=reason, content=""
        )
        statuses.reply_refresh(part=part, parts=part.turn.parts.all())
        if part.turn.session_id is None:
            unstored_forget(part.turn)


def _part_failed(
    lease: TurnLease, part: OutboundPart, error: whatsapp.SendError, max_age: timedelta
) -> None:
    """Decide the next state of a part that did not go out, or may not have."""
    now = timezone.now()
    wait = timedelta(seconds=error.retry_after or 0.0)
    level = logging.CRITICAL if error.alert else logging.WARNING
    with transaction.atomic():
        turn = lease.lock()
        part.refresh_from_db()
        if part.state == PartState.SENT:
            # A status has reported meanwhile that it went out after all.
            turn_update_state(turn=turn)
            return
        logger.log(level, "The answer of turn %s was not sent: %s", turn.turn_id, error)
        is_final = error.permanent and not error.alert
        part.error = error_text(error)
        if error.outcome_unknown:
            part.state = PartState.SENDING
        elif is_final or now - turn.asked_at > max_age or wait > MAX_WAIT:
            part.state = PartState.FAILED
            part.delivery_status = DeliveryStatus.FAILED
        else:
            part.state = PartState.WAITING
            turn_move(turn, TurnState.REPLIED, not_before=now + max(statuses.LATER, wait))
        is_waiting = part.state == PartState.WAITING
        turn.error = statuses.postponed_error(turn, error) if is_waiting else part.error
        part.save(update_fields=["state", "error", "delivery_status"])
        turn.save(update_fields=["error"])
        turn_update_state(turn=turn)
        statuses.reply_refresh(part=part, parts=turn.parts.all())


# Send the file of a reply by staff.


# A large file on a slow line takes longer than a lease.
RENEWED_AFTER_SECONDS = 30.0


class _LeasedFile(io.RawIOBase):
    """A file that renews the lease while it is read. Raises SendError where it can't be read."""

    def __init__(self, file: BinaryIO, lease: TurnLease) -> None:
        super().__init__()
        self._file = file
        self._lease = lease
        self._renewed = time.monotonic()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        now = time.monotonic()
        if now - self._renewed > RENEWED_AFTER_SECONDS:
            self._lease.renew()
            self._renewed = now
        with _reported():
            return self._file.read(-1 if size is None else size)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()
        super().close()


@contextmanager
def _reported() -> Iterator[None]:
    """Say that nothing was sent where the storage doesn't answer: it is tried again later."""
    try:
        yield
    except MediaStorageError as error:
        logger.warning("A file can't be sent now: %s", error)
        raise whatsapp.SendError(ErrorText("send_file_storage")) from None


def file_send(
    work: TurnWork, part: OutboundPart, *, to: whatsapp.Recipient, reply_to: str | None
) -> whatsapp.SendResult:
    """Call the provider once with the turn's file. Raises SendError and LeaseLostError."""
    turn, storage = work.turn, work.dependencies.media
    provider = work.dependencies.providers[turn.provider]
    row = attachment_of(turn)
    if row is None or storage is None:
        raise whatsapp.SendError(ErrorText("send_file_gone"), permanent=True)
    name = media_name(row.pk)

    def opened() -> BinaryIO:
        with _reported():
            return cast(BinaryIO, _LeasedFile(storage.open(name), work.lease))

    media = turn.reply.media if turn.reply else turn.context.get("media") or {}
    file = whatsapp.OutgoingFile(
        kind=str(turn.context[SENDS_FILE]),
        content_type=row.content_type,
        filename=str(media.get("filename") or row.pk),
        open=opened,
    )
    try:
        return provider.send_file(
            to=to, file=file, caption=part.content, callback_id=str(part.id), reply_to=reply_to
        )
    except FileNotFoundError:
        raise whatsapp.SendError(ErrorText("send_file_gone"), permanent=True) from None
