"""Keep what is forgotten from coming back by a worker that had read it before.

Forgettings are counted by scope: a chat ("chat:<id>") and the memories of all clients
("public"). A worker that stores something that was made of memory takes a mark of the scopes
that its chat can see before it reads, and shows the mark when it stores. If anything was
forgotten there in between, it begins again. A forgetting in another chat doesn't concern it.

The locks are advisory, by scope, and are taken in the order of ``_place``. See "The order of
locks" in docs/architecture.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import Error, connection
from django.db.models import F, Q, Sum
from django.db.models.functions import Coalesce

from memories_app.models import Visibility
from memories_app.store.facade import scope_of
from sessions_app.models import ForgetEpoch

PUBLIC = str(Visibility.PUBLIC)
# The owner's chats can see the memories of every chat. Forgettings share this lock, and storing
# in one of the owner's chats takes it alone, so that no client ever waits for it.
_EVERY_MEMORY = "every memory"
# Rows that belong to no chat: the queue, the admin's log, kept answers of the API.
_NO_CHAT = "no chat"
_BACKUP = "backup:"

SHARED, EXCLUSIVE = "_shared", ""


class ForgottenMeanwhileError(Exception):
    """Something was forgotten since the mark was taken: read again."""


@dataclass(frozen=True)
class Reader:
    """A chat in which something is made of memory. ``sees_all``: it can see the memories of
    every chat, as the owner's can."""

    chat_id: UUID
    sees_all: bool = False


@dataclass(frozen=True)
class Mark:
    """How much had been forgotten in what the reader can see."""

    reader: Reader
    count: int


@dataclass(frozen=True)
class Scopes:
    """What a forgetting concerns. ``memories``: memories go, which the owner's chats can see
    wherever they are from. ``backups``: the backups of transcripts that are swept."""

    names: frozenset[str] = frozenset()
    memories: bool = False
    backups: frozenset[str] = frozenset()

    def __or__(self, other: Scopes) -> Scopes:
        return Scopes(
            self.names | other.names,
            self.memories or other.memories,
            self.backups | other.backups,
        )

    def covers(self, other: Scopes) -> bool:
        """Whether the locks of these scopes are enough for the other ones."""
        return (
            (PUBLIC in self.names or other.names <= self.names)
            and self.memories >= other.memories
            and self.backups >= other.backups
        )


class ScopesGrewError(Exception):
    """A forgetting concerns more than it has locked: begin again with these scopes."""

    def __init__(self, scopes: Scopes) -> None:
        super().__init__("The forgetting concerns further scopes.")
        self.scopes = scopes


class ScopeBusyError(Exception):
    """Somebody else has a lock that was not to be waited for."""


@dataclass(frozen=True)
class Held:
    """The locks of a forgetting, until its transaction ends."""

    scopes: Scopes

    def require(self, scopes: Scopes) -> None:
        """Raises ScopesGrewError where these are not locked. It is too late to lock them: who
        waits while holding rows can wait in a circle."""
        if not self.scopes.covers(scopes):
            raise ScopesGrewError(self.scopes | scopes)

    def count(self) -> None:
        """Note that something was forgotten, so that nobody stores what was read before."""
        names = {PUBLIC} if PUBLIC in self.scopes.names else self.scopes.names
        more = int(self.scopes.memories)
        ForgetEpoch.objects.bulk_create(
            [ForgetEpoch(scope=name) for name in sorted(names)], ignore_conflicts=True
        )
        ForgetEpoch.objects.filter(scope__in=names).update(
            epoch=F("epoch") + 1, memories=F("memories") + more
        )


def chat_scope(chat_id: UUID) -> str:
    """A chat's scope, which is that of its memories, too."""
    return scope_of(str(Visibility.CHAT), chat_id)


def forgetting_mark(reader: Reader) -> Mark:
    """Return how much was forgotten so far. The counters only rise, so that their sum is the
    same only where each of them is."""
    seen = Q(scope__in=[chat_scope(reader.chat_id), PUBLIC])
    sums: dict[str, Any] = {"own": Coalesce(Sum("epoch", filter=seen), 0)}
    epochs = ForgetEpoch.objects.filter(seen)
    if reader.sees_all:
        sums["all"] = Coalesce(Sum("memories"), 0)
        epochs = ForgetEpoch.objects.all()
    return Mark(reader, sum(epochs.aggregate(**sums).values()))


def forgetting_wait(reader: Reader) -> None:
    """Wait for a forgetting that is in progress in what the reader can see, and let none begin
    there until the transaction ends. The first locks of the transaction."""
    modes = {chat_scope(reader.chat_id): SHARED, PUBLIC: SHARED}
    if reader.sees_all:
        modes[_EVERY_MEMORY] = EXCLUSIVE
    _lock(modes)


def forgetting_check(mark: Mark) -> None:
    """As ``forgetting_wait``, and make sure that nothing was forgotten since the mark. Raises
    ForgottenMeanwhileError."""
    forgetting_wait(mark.reader)
    if forgetting_mark(mark.reader) != mark:
        raise ForgottenMeanwhileError("Something was forgotten meanwhile: it is made again.")


def forgetting_begin(scopes: Scopes) -> Held:
    """Wait for those who are storing in these scopes, and let nobody store there until the
    transaction ends. The first locks of the transaction."""
    _lock(_modes(scopes))
    return Held(scopes)


def forgetting_try(scopes: Scopes) -> Held:
    """As ``forgetting_begin``, without waiting. Raises ScopeBusyError; the locks that were got
    until then are given back when the transaction or its savepoint is rolled back."""
    with connection.cursor() as cursor:
        for name, mode in _in_order(_modes(scopes)):
            cursor.execute(f"SELECT pg_try_advisory_xact_lock{mode}(%s)", [_key(name)])
            if not cursor.fetchone()[0]:
                raise ScopeBusyError(f"Somebody is at work in {name.partition(':')[0]}.")
    return Held(scopes)


def rest_begin() -> None:
    """Wait for another forgetting that is at the rows that belong to no chat. These rows have
    no scope, so that the lock is one for the whole system; only forgettings take it, at their
    end, and nobody who answers or stores waits for it. The last lock of the transaction."""
    _lock({_NO_CHAT: EXCLUSIVE})


@contextmanager
def backup_held(name: str, chat_id: UUID | None) -> Iterator[None]:
    """Keep a backup of transcripts from being swept until the block ends: a file that isn't
    written yet can't be swept. ``chat_id``: the chat that it is of, None where that is new.
    Call it outside of a transaction, which is why the locks are the connection's."""
    names = [_BACKUP + name, *([chat_scope(chat_id)] if chat_id else [])]
    keys = [_key(name) for name, _ in _in_order(dict.fromkeys(names, SHARED))]
    with connection.cursor() as cursor:
        for key in keys:
            cursor.execute("SELECT pg_advisory_lock_shared(%s)", [key])
    try:
        yield
    finally:
        # A connection that is lost has given up its locks.
        with suppress(Error), connection.cursor() as cursor:
            for key in keys:
                cursor.execute("SELECT pg_advisory_unlock_shared(%s)", [key])


def _modes(scopes: Scopes) -> dict[str, str]:
    """The locks of a forgetting. Everybody who stores shares the lock of public memories, so
    that who takes that one alone needs none of a chat: thousands may have been told."""
    modes = {_BACKUP + name: EXCLUSIVE for name in scopes.backups}
    if PUBLIC in scopes.names:
        return {**modes, PUBLIC: EXCLUSIVE}
    modes |= {**dict.fromkeys(scopes.names, EXCLUSIVE), PUBLIC: SHARED}
    return {**modes, _EVERY_MEMORY: SHARED} if scopes.memories else modes


def _lock(modes: Mapping[str, str]) -> None:
    """Take the locks in order, in one query: who stores an answer does this, too."""
    ordered = _in_order(modes)
    calls = ", ".join(f"pg_advisory_xact_lock{mode}(%s)" for _, mode in ordered)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {calls}", [_key(name) for name, _ in ordered])


def _in_order(modes: Mapping[str, str]) -> list[tuple[str, str]]:
    return sorted(modes.items(), key=lambda item: _place(item[0]))


def _place(name: str) -> tuple[bool, int]:
    """Backups first: they can take long to be written, and who waits for one holds nothing
    else. Then by key, which is what PostgreSQL locks."""
    return (not name.startswith(_BACKUP), _key(name))


def _key(name: str) -> int:
    digest = hashlib.blake2b(f"forgetting {name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
