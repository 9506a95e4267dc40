"""Answers that are held because a provider refuses our account, until it accepts it again.

Their parts stay ``waiting``, and each is tried again like after any failure that passes. Once one
was sent, the others follow at once.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Executor
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import Actor, audit_record
from memoryproject.foundation.errors.stored_errors import ErrorText, error_text
from memoryproject.foundation.integrations.whatsapp.base import (
    Recipient,
    SendError,
    WhatsAppProvider,
)
from memoryproject.foundation.integrations.whatsapp.events import Event, InboundMessage
from memoryproject.foundation.outside_services.models import ServiceName, services_try_again
from memoryproject.foundation.process.shared_times import SharedTimes
from memoryproject.foundation.text.characters import detect_language
from sessions_app.conversations.facade import text_for
from sessions_app.models import Turn
from sessions_app.models.chats import Provider
from sessions_app.models.turns import TurnState

HELD, PAUSED = "send_held", "service_paused"
# The sweep takes up the others.
MAX_AT_ONCE = 50


class Account(NamedTuple):
    """Our account at a provider: the service, and the setting of its token."""

    service: str
    setting: str


ACCOUNTS = {
    str(Provider.CLOUD): Account(ServiceName.WHATSAPP_CLOUD, "WHATSAPP_CLOUD_ACCESS_TOKEN"),
    str(Provider.GREEN): Account(ServiceName.WHATSAPP_GREEN, "GREEN_API_TOKEN"),
}


def postponed_error(turn: Turn, error: SendError) -> str:
    """Return the error of a turn whose answer is sent later."""
    if error.is_paused and is_held(turn):
        # The provider wasn't called: what it said before still counts.
        return turn.error
    return ErrorText(HELD, why=error_text(error)) if error.alert else error_text(error)


def is_held(turn: Turn) -> bool:
    """Return whether the provider refused our account when the answer was to be sent."""
    return getattr(turn.error, "code", "") == HELD


def is_put_off(turn: Turn) -> bool:
    """Return whether the answer wasn't sent because of the provider's state, not for itself."""
    is_waiting = turn.state == TurnState.REPLIED and turn.not_before is not None
    return is_waiting and getattr(turn.error, "code", "") in (HELD, PAUSED)


def accounts_refused() -> dict[str, ErrorText]:
    """Return the providers that refuse our account, each with what it said; one query."""
    held = _put_off(HELD).order_by("-id").values_list("provider", "error")
    return {provider: error.params["why"] for provider, error in held[:MAX_AT_ONCE]}


def sends_release(*, providers: Collection[str], enqueue: Callable[[UUID], object]) -> int:
    """Have the answers sent now that were put off, the oldest first; return how many."""
    waiting = _put_off(HELD, PAUSED).filter(provider__in=providers)
    with transaction.atomic():
        chats = list(dict.fromkeys(waiting.order_by("id").values_list("chat_id", flat=True)))
        released = waiting.update(not_before=timezone.now())

        def hand_over() -> None:
            for chat_id in chats[:MAX_AT_ONCE]:
                enqueue(chat_id)

        transaction.on_commit(hand_over, robust=True)
    return released


def held_send_now(*, actor: Actor, enqueue: Callable[[UUID], object]) -> int:
    """Send what is held, as staff ask for; return how many answers."""
    with transaction.atomic():
        services_try_again([account.service for account in ACCOUNTS.values()])
        released = sends_release(providers=ACCOUNTS, enqueue=enqueue)
        audit_record(action="turn.send_held", actor=actor, details={"answers": released})
    return released


def send_followed_up(*, turn: Turn, enqueue: Callable[[UUID], object] | None) -> None:
    """Let the other answers follow one that was sent after all. ``turn``: as it was begun."""
    if not is_put_off(turn):
        return
    if Turn.objects.filter(pk=turn.pk, state=TurnState.SENT).update(error="") and enqueue:
        sends_release(providers=[turn.provider], enqueue=enqueue)


def too_late(turn: Turn, max_age: timedelta) -> bool:
    """Return whether an answer that was put off is too old by now to be sent."""
    return is_put_off(turn) and timezone.now() - turn.asked_at > max_age


def _put_off(*codes: str) -> QuerySet[Turn]:
    which = Q()
    for code in codes:
        which |= Q(error__startswith=f'{{"code": "{code}"')
    return Turn.objects.filter(which, state=TurnState.REPLIED, not_before__isnull=False)


# Notify people that nothing can be stored (ERR-SESSION-002).

logger = logging.getLogger(__name__)

EVERY_SECONDS = 15 * 60


class StorageNotices:
    """Notify each chat at most once in fifteen minutes.

    The limit holds however often the chat's message is delivered again, and across processes.

    ``executor`` sends outside the caller's thread, since the caller may be a webhook. ``notified``
    stores when each chat was notified.
    """

    def __init__(
        self,
        providers: Mapping[str, WhatsAppProvider],
        executor: Executor,
        notified: SharedTimes,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._providers = providers
        self._executor = executor
        self._notified = notified
        self._clock = clock

    def notify_sender(self, event: Event) -> None:
        """Notify the sender of a message; other events need no notice."""
        if not isinstance(event, InboundMessage) or event.from_business:
            return
        if event.group_id and not (event.mentions_us or event.replies_to_us):
            return
        language = detect_language(event.text) or ""
        self.notify(provider=event.provider, to=_sender(event), language=language)

    def notify(self, *, provider: str, to: Recipient, language: str) -> None:
        """Send the notice, unless this chat was notified a short while ago."""
        sender = self._providers.get(provider)
        if sender is None:
            return
        chat = f"{provider}:{to.whatsapp_chat}"
        if self._notified.claim(chat, now=self._clock(), every=EVERY_SECONDS):
            self._executor.submit(self._send, sender, to, text_for("storage_full", language))

    def _send(self, sender: WhatsAppProvider, to: Recipient, text: str) -> None:
        try:
            sender.send_text(to=to, text=text, callback_id=str(uuid.uuid4()))
        except SendError as error:
            logger.error("Nobody could be told that the storage is full: %s", error)


def _sender(event: InboundMessage) -> Recipient:
    if event.group_id:
        return Recipient(event.group_id, group_id=event.group_id.removesuffix("@g.us"))
    party = event.party
    return Recipient(next(iter(party.addresses()), ""), phone=party.phone, bsuid=party.bsuid)
