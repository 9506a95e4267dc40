"""Check the table: the seal of each row, missing rows, and the checkpoints."""

from __future__ import annotations

from memoryproject.foundation.audit.canonical import Fields, seal_of
from memoryproject.foundation.audit.chain import (
    BEGINNING,
    Place,
    checkpoint_is_signed,
    head_is_signed,
)
from memoryproject.foundation.audit.models import AuditCheckpoint, AuditHead
from memoryproject.foundation.audit.rows import sealed_rows
from memoryproject.foundation.audit.verify.report import RESTORE, Findings
from memoryproject.foundation.errors.stored_errors import ErrorText

PROBED = 50


class Rows:
    """Checks the rows in order from ``start``; ``place`` is the last row that exists."""

    def __init__(self, key: str, start: Place, found: Findings) -> None:
        self._key = key
        self._found = found
        self.place = start
        self._computed = start.seal
        self.count = 0
        self.first: int | None = None

    def fits(self, fields: Fields, seal: str, passed: dict[int, str]) -> bool:
        """Return whether the seal is the row's own, and report rows missing before it.

        After a gap, the seal of the predecessor is taken from its line, if ``passed`` has it.
        Without it the row can't be checked and counts as fitting.
        """
        # If the predecessor's seal was changed, its right one still binds this row.
        previous = {self.place.seal, self._computed}
        if fields.seq > self.place.seq + 1:
            self._found.add_numbers("row_deleted", self.place.seq + 1, fields.seq - 1)
            previous = {passed[seq] for seq in (fields.seq - 1,) if seq in passed}
        self.place = Place(fields.seq, seal)
        self.count += 1
        self.first = self.first or fields.seq
        computed = {seal_of(self._key, each, fields) for each in previous}
        fits = not computed or seal in computed
        self._computed = seal if fits else computed.pop()
        return fits

    def finish(self, last: int) -> None:
        if self.place.seq < last:
            self._found.add_numbers("row_deleted", self.place.seq + 1, last)


def key_fits(key: str, head: AuditHead | None, checkpoints: list[AuditCheckpoint]) -> bool:
    """Return whether anything was signed with this key.

    It checks the end of the chain, the checkpoints, and the first rows. An empty log fits every
    key.
    """
    signed = [head_is_signed(head, key)] if head else []
    signed += [
        checkpoint_is_signed(one, key, before)
        for before, one in zip([None, *checkpoints], checkpoints, strict=False)
    ]
    last = checkpoints[-1] if checkpoints else None
    place = Place(last.seq, last.seal) if last else BEGINNING
    for fields, seal in sealed_rows(after=place.seq, batch=PROBED):
        if any(signed) or len(signed) > PROBED:
            break
        signed.append(seal == seal_of(key, place.seal, fields))
        place = Place(fields.seq, seal)
    return any(signed) or not signed


def check_checkpoints(key: str, checkpoints: list[AuditCheckpoint], found: Findings) -> Place:
    """Check the checkpoints, and return the place where the rows begin."""
    before: AuditCheckpoint | None = None
    for place, one in enumerate(checkpoints, start=1):
        where = ErrorText("checkpoint_row", number=one.number, row=one.pk)
        follows = one.number == (before.number if before else 0) + 1
        goes_on = one.seq - one.events == (before.seq if before else 0)
        if not follows:
            found.add("checkpoint_removed", where, ErrorText("predecessor_removed"), RESTORE)
        elif not (checkpoint_is_signed(one, key, before) and goes_on and one.number == place):
            found.add("checkpoint_changed", where, ErrorText("changed"), RESTORE)
        before = one
    return Place(before.seq, before.seal) if before else BEGINNING


def check_head(
    key: str, head: AuditHead | None, start: Place, newest: int | None, found: Findings
) -> int:
    """Return the number at which the chain ends.

    ``newest``: the greatest number in the table, which is used if the stored end can't be trusted.
    """
    where = ErrorText("audit_head")
    if head is not None and head_is_signed(head, key):
        return max(head.seq, start.seq)
    if head is not None:
        found.add("head_changed", where, ErrorText("changed"), RESTORE)
    elif newest or start.seq:
        found.add("head_removed", where, ErrorText("removed"), RESTORE)
    return max(newest or 0, start.seq)
