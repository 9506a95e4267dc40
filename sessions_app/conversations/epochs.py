"""Prevent a worker from restoring forgotten data that it had read before.

Forgettings are counted by scope: a chat ("chat:<id>") and the memories of all clients
("public"). A worker that stores something derived from memory reads the epochs of the scopes that
its chat can see before it reads, and checks them when it stores. If anything in these
scopes was forgotten in between, the worker starts again. A forgetting in another chat doesn't
concern it.

The locks are advisory, by scope, and are taken in the order of ``_place``. See "The order of
locks" in docs/reference.md.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db import Error, connection
from django.db.models import OuterRef, Q, Sum, TextField, Value
from django.db.models.functions import Cast, Concat

from memories_app.models import Visibility
from memories_app.visibility import scope_of
from sessions_app.models import AssistantProfile, Chat, ForgetEpoch

PUBLIC = str(Visibility.PUBLIC)
# The owner's chats can see the memories of every chat. Forgettings share this lock. Only a write
# to one of the owner's chats takes it exclusively, so that no client ever waits for it.
_EVERY_MEMORY = "every memory"
# Rows that belong to no chat: the queue, the admin's log, kept answers of the API.
_NO_CHAT = "no chat"
_BACKUP = "backup:"

SHARED, EXCLUSIVE = "_shared", ""


class ForgottenMeanwhileError(Exception):
    """Something was forgotten after the epochs were read: read again."""


class ChatGoneError(Exception):
    """A chat was erased, or merged into another one, after it was read."""


@dataclass(frozen=True)
class Reader:
    """A chat in which something is derived from memory.

    ``sees_all``: the chat can see the memories of every chat, as the owner's can.
    """

    chat_id: UUID
    sees_all: bool = False


@dataclass(frozen=True)
class EpochSnapshot:
    """The number of forgettings in the scopes that the reader can see."""

    reader: Reader
    count: int


@dataclass(frozen=True)
class Scopes:
    """The scopes that a forgetting changes.

    ``memories``: memories are erased; the owner's chats can see them all. ``backups``: the
    backups of transcripts that are swept.
    """

    names: frozenset[str] = frozenset()
    memories: bool = False
    backups: frozenset[str] = frozenset()

    def __or__(self, other: "Scopes") -> "Scopes":
        return Scopes(
            self.names | other.names, self.memories or other.memories, self.backups | other.backups
        )

    def covers(self, other: "Scopes") -> bool:
        """Return whether the locks of these scopes include those of the other ones."""
        return (
            (PUBLIC in self.names or other.names <= self.names)
            and self.memories >= other.memories
            and self.backups >= other.backups
        )


_COUNT = """
INSERT INTO sessions_app_forgetepoch AS counted (scope, epoch, memories)
SELECT scope, 1, %s FROM unnest(%s::text[]) AS scope
ON CONFLICT (scope) DO UPDATE
SET epoch = counted.epoch + 1, memories = counted.memories + excluded.memories
"""


class ScopesGrewError(Exception):
    """A forgetting needs more scopes than it has locked: start again with these."""

    def __init__(self, scopes: Scopes) -> None:
        super().__init__("The forgetting concerns further scopes.")
        self.scopes = scopes


class ScopeBusyError(Exception):
    """Another process holds a lock, and the caller doesn't wait for it."""


@dataclass(frozen=True)
class Held:
    """The locks that a forgetting holds until its transaction ends."""

    scopes: Scopes

    def require(self, scopes: Scopes) -> None:
        """Raise ScopesGrewError if these scopes are not locked.

        It is too late to lock them: waiting while holding rows can cause a deadlock.
        """
        if not self.scopes.covers(scopes):
            raise ScopesGrewError(self.scopes | scopes)

    def count(self) -> None:
        """Count the forgetting, so that no worker stores data that it read before."""
        names = {PUBLIC} if PUBLIC in self.scopes.names else self.scopes.names
        with connection.cursor() as cursor:
            cursor.execute(_COUNT, [int(self.scopes.memories), sorted(names)])


def chat_scope(chat_id: UUID) -> str:
    """Return a chat's scope, which is also the scope of its memories."""
    return scope_of(str(Visibility.CHAT), chat_id)


def epochs_seen(chat: str) -> ArraySubquery:
    """Return the expression of the counters that a client's chat sees, by the field of its id."""
    own = Concat(Value(f"{Visibility.CHAT}:"), Cast(OuterRef(chat), TextField()))
    seen = ForgetEpoch.objects.filter(Q(scope=PUBLIC) | Q(scope=own))
    return ArraySubquery(seen.order_by().values("epoch"))


def epoch_read(reader: Reader, *, seen: Collection[int] | None = None) -> EpochSnapshot:
    """Return the number of forgettings so far. ``seen``: what ``epochs_seen`` has read just now.

    The counters only rise, so an equal sum means that every counter is equal.
    """
    if seen is not None and not reader.sees_all:
        return EpochSnapshot(reader, sum(seen))
    epochs = ForgetEpoch.objects.order_by()
    own = Q(scope__in=[chat_scope(reader.chat_id), PUBLIC])
    if not reader.sees_all:
        return EpochSnapshot(reader, sum(epochs.filter(own).values_list("epoch", flat=True)))
    # Whoever sees all memories also counts the forgettings of memories in other scopes.
    sums = epochs.aggregate(
        seen=Sum("epoch", filter=own, default=0), memories=Sum("memories", default=0)
    )
    return EpochSnapshot(reader, sums["seen"] + sums["memories"])


def forgetting_wait(reader: Reader) -> None:
    """Wait for running forgettings that the reader can see, and block new ones.

    The block lasts until the transaction ends. These must be the first locks of the
    transaction.
    """
    modes = {chat_scope(reader.chat_id): SHARED, PUBLIC: SHARED}
    if reader.sees_all:
        modes[_EVERY_MEMORY] = EXCLUSIVE
    _lock(modes)


def epoch_check(snapshot: EpochSnapshot, *, seen: Collection[int] | None = None) -> None:
    """Wait as ``forgetting_wait`` does, and check that nothing was forgotten since the snapshot.

    ``seen``: what ``epochs_seen`` has read after ``forgetting_wait`` in this transaction. Raises
    ForgottenMeanwhileError.
    """
    if seen is None:
        forgetting_wait(snapshot.reader)
    if epoch_read(snapshot.reader, seen=seen) != snapshot:
        raise ForgottenMeanwhileError("Something was forgotten meanwhile: it is made again.")


def chats_keep(chat_ids: Collection[UUID]) -> None:
    """Keep these chats from being erased or merged until the transaction ends.

    For what is stored in a chat by no foreign key, such as a memory: after an erasure nobody would
    find it. These must be the first locks of the transaction. Raises ChatGoneError.
    """
    ids = set(chat_ids)
    if not ids:
        return
    _lock({**dict.fromkeys(map(chat_scope, ids), SHARED), PUBLIC: SHARED})
    rows = Chat.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk")
    if len(rows.values_list("pk")) < len(ids):
        raise ChatGoneError("The chat was erased or merged meanwhile, and nothing is stored.")


def forgetting_begin(scopes: Scopes) -> Held:
    """Wait for writers in these scopes, and block new ones until the transaction ends.

    These must be the first locks of the transaction.
    """
    _lock(_modes(scopes))
    return Held(scopes)


def forgetting_try(scopes: Scopes) -> Held:
    """Lock as ``forgetting_begin`` does, without waiting.

    Raises ScopeBusyError. The locks taken so far are released when the transaction or its
    savepoint is rolled back.
    """
    with connection.cursor() as cursor:
        for name, mode in _in_order(_modes(scopes)):
            cursor.execute(f"SELECT pg_try_advisory_xact_lock{mode}(%s)", [_key(name)])
            if not cursor.fetchone()[0]:
                raise ScopeBusyError(f"Somebody is at work in {name.partition(':')[0]}.")
    return Held(scopes)


def unscoped_begin() -> None:
    """Wait for another forgetting that works on rows that belong to no chat.

    These rows have no scope, so one lock covers the whole system. Only forgettings take it, at
    their end; no answer or write waits for it. It is the last lock of the transaction.
    """
    _lock({_NO_CHAT: EXCLUSIVE})


@contextmanager
def backup_held(name: str, chat_id: UUID | None) -> Iterator[None]:
    """Keep a backup of transcripts from being swept until the block ends.

    A file that isn't written yet can't be swept. ``chat_id``: the chat of the backup, None if
    the chat is new. Call it outside of a transaction: the locks belong to the connection.
    """
    names = [_BACKUP + name, *([chat_scope(chat_id)] if chat_id else [])]
    keys = [_key(name) for name, _ in _in_order(dict.fromkeys(names, SHARED))]
    with connection.cursor() as cursor:
        for key in keys:
            cursor.execute("SELECT pg_advisory_lock_shared(%s)", [key])
    try:
        yield
    finally:
        # A lost connection has released its locks.
        with suppress(Error), connection.cursor() as cursor:
            for key in keys:
                cursor.execute("SELECT pg_advisory_unlock_shared(%s)", [key])


def _modes(scopes: Scopes) -> dict[str, str]:
    """Return the mode of each lock of a forgetting.

    Every writer shares the lock of public memories. A forgetting that takes this lock
    exclusively needs no chat locks: thousands of chats may have seen the memory.
    """
    modes = {_BACKUP + name: EXCLUSIVE for name in scopes.backups}
    if PUBLIC in scopes.names:
        return {**modes, PUBLIC: EXCLUSIVE}
    modes |= {**dict.fromkeys(scopes.names, EXCLUSIVE), PUBLIC: SHARED}
    return {**modes, _EVERY_MEMORY: SHARED} if scopes.memories else modes


def _lock(modes: Mapping[str, str]) -> None:
    """Take the locks in order, in one query, since storing an answer does this too."""
    ordered = _in_order(modes)
    calls = ", ".join(f"pg_advisory_xact_lock{mode}(%s)" for _, mode in ordered)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {calls}", [_key(name) for name, _ in ordered])


def _in_order(modes: Mapping[str, str]) -> list[tuple[str, str]]:
    return sorted(modes.items(), key=lambda item: _place(item[0]))


def _place(name: str) -> tuple[bool, int]:
    """Return the sort key of a lock.

    Backups come first: they can take long to write, and a process that waits for one holds no
    other lock. Then by key, which is the value that PostgreSQL locks.
    """
    return (not name.startswith(_BACKUP), _key(name))


def _key(name: str) -> int:
    digest = hashlib.blake2b(f"forgetting {name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


# Lock the assistant's profile for a change.


def profile_locked() -> AssistantProfile:
    """Return the one profile, locked until the caller's transaction ends.

    Creates it if it doesn't exist.
    """
    AssistantProfile.objects.get_or_create(pk=1)
    return AssistantProfile.objects.select_for_update().get(pk=1)
