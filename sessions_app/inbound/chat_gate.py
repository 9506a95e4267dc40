"""Keep a chat in which something is slow from holding the threads that others' webhooks need."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from django.db import OperationalError
from psycopg.errors import LockNotAvailable

from memoryproject.foundation.integrations.whatsapp import events
from memoryproject.foundation.integrations.whatsapp.events import Event


class ChatBusyError(OperationalError):
    """Events of a chat could not be stored in time: the provider delivers them again."""


class ChatGate:
    """Let one thread of this process at a time store an event of a chat.

    The others wait, since an event takes some milliseconds, but none waits longer than
    ``patience`` seconds, and none for a thread that has been at it for longer.
    """

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self._changed = threading.Condition()
        self._since: dict[str, float] = {}

    @contextmanager
    def passed(self, addresses: Collection[str]) -> Iterator[None]:
        """Hold the gate of these addresses. Raises ChatBusyError."""
        until = time.monotonic() + self.patience
        with self._changed:
            while begun := [self._since[each] for each in addresses if each in self._since]:
                left = min(until, min(begun) + self.patience) - time.monotonic()
                if left <= 0:
                    raise ChatBusyError("Another event of this chat is being stored.")
                self._changed.wait(left)
            self._since.update(dict.fromkeys(addresses, time.monotonic()))
        try:
            yield
        finally:
            with self._changed:
                for each in addresses:
                    self._since.pop(each, None)
                self._changed.notify_all()


def addresses_of(event: Event) -> frozenset[str]:
    """Return the addresses that name the chat of an event; none for an event of no chat."""
    group_id = getattr(event, "group_id", None)
    if group_id:
        return frozenset({group_id})
    if isinstance(event, events.AddressChanged):
        return frozenset([*event.old.addresses(), *event.new.addresses()])
    party = getattr(event, "party", None)
    return frozenset(party.addresses() if party else [])


def waited_for_a_lock(error: OperationalError) -> bool:
    """Return whether the event waited as long as it may, for a thread or for a lock."""
    return isinstance(error, ChatBusyError) or isinstance(error.__cause__, LockNotAvailable)
