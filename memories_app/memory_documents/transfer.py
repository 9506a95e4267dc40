"""Copy the documents of one store into another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from memories_app.memory_document_format.strict_json import render_problem
from memories_app.memory_documents.store import (
    CONFLICT,
    Broken,
    Kept,
    MemoryDocumentStore,
    Progress,
    Put,
    no_progress,
)

AT_ONCE = 100
# The maximum that is held in memory at once, whatever the size of the documents.
MAX_IN_MEMORY = 4 * 1024 * 1024
# Further entries are only counted.
MAX_LISTED = 1_000


@dataclass
class TransferReport:
    """The result of a transfer. ``conflicts`` and ``broken`` are [{path, detail}].

    Both kinds were left unchanged.
    """

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    refused: int = 0
    conflicts: list[dict[str, str]] = field(default_factory=list)
    broken: list[dict[str, str]] = field(default_factory=list)

    def add(self, put: Put) -> None:
        if put.outcome == CONFLICT:
            self._refuse(self.conflicts, put.key.path, put.detail)
        else:
            # Each other outcome is the name of its count.
            setattr(self, put.outcome, getattr(self, put.outcome) + 1)

    def add_broken(self, broken: Broken) -> None:
        self._refuse(self.broken, broken.path, render_problem(broken.problems))

    def _refuse(self, listed: list[dict[str, str]], path: str, detail: str) -> None:
        self.refused += 1
        if len(listed) < MAX_LISTED:
            listed.append({"path": path, "detail": detail})

    def as_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)


def documents_transfer(
    *,
    source: MemoryDocumentStore,
    target: MemoryDocumentStore,
    replace: bool = False,
    progress: Progress = no_progress,
) -> TransferReport:
    """Copy all documents, including archived ones, each to its place.

    Documents that exist already stay unchanged, so that the transfer can be interrupted and
    repeated. Another text under the same name is a conflict, unless ``replace`` is set. Raises
    MemoryDocumentError; documents that were copied before stay.
    """
    report = TransferReport()
    total, done = source.count(), 0
    for batch in _batches(source):
        kept = [each for each in batch if isinstance(each, Kept)]
        for each in batch:
            if isinstance(each, Broken):
                report.add_broken(each)
        for put in target.put(kept, replace=replace):
            report.add(put)
        done += len(batch)
        progress(done, max(total, done))
    return report


def _batches(source: MemoryDocumentStore) -> Iterator[list[Kept | Broken]]:
    batch: list[Kept | Broken] = []
    held = 0
    for each in source.walk():
        batch.append(each)
        held += len(each.envelope.text) if isinstance(each, Kept) else 0
        if len(batch) == AT_ONCE or held > MAX_IN_MEMORY:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch
