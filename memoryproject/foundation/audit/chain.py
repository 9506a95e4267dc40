"""The beginning and the end of the chain, and the locks and permissions for moving them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime

from django.db import Error, connection

from memoryproject.foundation.audit.audit_logfile import is_signed, sign, utc_text
from memoryproject.foundation.audit.models import AuditCheckpoint, AuditEvent, AuditHead
from memoryproject.foundation.errors.stored_errors import ErrorText

# An advisory lock number that nothing else uses.
_LOCK = 0xA0D1781

WRONG_KEY = ErrorText("chain_wrong_key")
NOT_SIGNED = ErrorText("chain_not_signed")
NO_HEAD = ErrorText("chain_no_head")


class ChainError(Exception):
    """The chain can't be continued; the text says why and what to do."""


@dataclass(frozen=True)
class Place:
    """A place in the chain: the event with this number has this seal.

    The chain begins after number 0, whose seal is empty.
    """

    seq: int = 0
    seal: str = ""


BEGINNING = Place()


def chain_lock() -> None:
    """Lock the chain until the caller's transaction ends: one process seals or prunes."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


@contextmanager
def chain_lock_for_session() -> Iterator[None]:
    """Lock the chain across transactions, for as long as the context is open."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
    try:
        yield
    finally:
        # A lost connection has released its lock.
        with suppress(Error), connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])


def head_is_signed(head: AuditHead, key: str) -> bool:
    return is_signed(head.mac, key, "head", head.seq, head.seal)


def head_current(*, key: str) -> Place:
    """Return the end of the chain.

    Raises ChainError if it was changed or the key is another one.
    """
    head = AuditHead.objects.filter(pk=1).first()
    if head is None:
        if AuditCheckpoint.objects.exists() or AuditEvent.objects.filter(seq__gte=1).exists():
            raise ChainError(NO_HEAD)
        return BEGINNING
    if not head_is_signed(head, key):
        raise ChainError(NOT_SIGNED)
    return Place(head.seq, head.seal)


def head_move(*, key: str, to: Place) -> None:
    mac = sign(key, "head", to.seq, to.seal)
    AuditHead.objects.update_or_create(pk=1, defaults={"seq": to.seq, "seal": to.seal, "mac": mac})


def checkpoint_is_signed(
    checkpoint: AuditCheckpoint, key: str, previous: AuditCheckpoint | None
) -> bool:
    return is_signed(checkpoint.mac, key, "checkpoint", *_checkpoint_parts(checkpoint, previous))


def checkpoint_last() -> AuditCheckpoint | None:
    return AuditCheckpoint.objects.order_by("-number").first()


def checkpoint_add(*, key: str, to: Place, events: int, at: datetime) -> None:
    """Sign that so many events up to ``to`` were deleted legitimately."""
    last = checkpoint_last()
    number = last.number + 1 if last else 1
    made = AuditCheckpoint(number=number, seq=to.seq, seal=to.seal, events=events, at=at)
    made.mac = sign(key, "checkpoint", *_checkpoint_parts(made, last))
    made.save()


def _checkpoint_parts(
    checkpoint: AuditCheckpoint, previous: AuditCheckpoint | None
) -> tuple[str | int, ...]:
    return (
        previous.mac if previous else "",
        checkpoint.number,
        checkpoint.seq,
        checkpoint.seal,
        checkpoint.events,
        utc_text(checkpoint.at),
    )


@contextmanager
def removal_allowed() -> Iterator[None]:
    """Allow deleting events and checkpoints, which the database refuses otherwise.

    Applies to the caller's transaction. For pruning and restoring.
    """
    allow = "SELECT set_config('memoryproject.audit_pruning', %s, true)"
    with connection.cursor() as cursor:
        cursor.execute(allow, ["on"])
        yield
        cursor.execute(allow, [""])
