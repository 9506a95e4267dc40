"""Memory documents, in the database or in a directory tree."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, OperationalError
from django.utils import timezone

from memories_app.memory_document_format.categories import CATEGORIES
from memories_app.memory_document_format.envelope import content_read
from memories_app.memory_document_format.names import Pattern
from memories_app.memory_document_format.strict_json import (
    MemoryDocumentError,
    MemoryDocumentInvalidError,
    MemoryDocumentNotFoundError,
)
from memories_app.memory_documents import command_output as shown
from memories_app.memory_documents.database_store import DatabaseStore
from memories_app.memory_documents.store import Broken, Filter, MemoryDocumentStore
from memories_app.memory_documents.transfer import documents_transfer
from memories_app.memory_documents.tree_store import TreeStore
from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.process.command_options import (
    MEMORY_OFF,
    ProgressBar,
    refuse_missing_values,
)

WRITING = ("save", "import")


class Command(BaseCommand):
    """One method for each action; all actions work with any store."""

    help = (
        "Save, load, list, find, clean up, archive, export and import memory documents: context, "
        "decisions, interfaces and handoffs. In the database, or with --root DIR in the files of "
        "a memory folder."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        shown.add_actions(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        refuse_missing_values(options)
        root = options["root"]
        store: MemoryDocumentStore = (
            DatabaseStore(actor=COMMAND_LINE) if root is None else TreeStore(root)
        )
        if root is None and options["action"] in WRITING and not settings.ENABLE_MEMORY_SYSTEM:
            self.stderr.write(MEMORY_OFF)
        try:
            getattr(self, f"_{options['action']}")(store, options)
        except MemoryDocumentInvalidError as error:
            raise CommandError(shown.problems_as_text(error)) from error
        except MemoryDocumentNotFoundError as error:
            raise CommandError(f"{error}{_elsewhere(store, options)}") from error
        except MemoryDocumentError as error:
            raise CommandError(str(error)) from error
        except OperationalError:
            raise
        except DatabaseError as error:
            raise CommandError(f"The database refused: {error}".strip()) from error
        except BrokenPipeError:
            # The reader of the output has closed the pipe.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def _save(self, store: MemoryDocumentStore, options: dict[str, Any]) -> None:
        category = options["category"]
        given = content_read(category, shown.content_given(options["content"]))
        session_id = options["session_id"]
        saved = store.save(
            category=category,
            identifier=options["identifier"],
            content=given.content,
            session_id=given.session_id if session_id is None else session_id,
        )
        self._tell(options, shown.saved_as_dict(saved), shown.saved_as_text(saved))
        if shown.hint(saved):
            self.stderr.write(shown.hint(saved))

    def _load(self, store: MemoryDocumentStore, options: dict[str, Any]) -> None:
        kept = store.load(
            category=options["category"],
            identifier=options["identifier"],
            archived=options["archived"],
        )
        self.stdout.write(kept.envelope.text)

    def _list(self, store: MemoryDocumentStore, options: dict[str, Any]) -> None:
        """Print a line for each document as it is found; with JSON one array."""
        since, pattern = options.get("since"), options.get("pattern")
        wanted = Filter(
            categories=(options["category"],) if options["category"] else CATEGORIES,
            pattern=None if pattern is None else Pattern(pattern),
            since=None if since is None else timezone.now() - since,
            archived=options["archived"],
        )
        before = "["
        for each in store.find(wanted):
            if isinstance(each, Broken):
                self.stderr.write(shown.broken_as_text(each))
            elif options["json"]:
                line = json.dumps(shown.found_as_dict(each), ensure_ascii=False)
                self.stdout.write(before + line, ending="")
                before = ",\n"
            else:
                self.stdout.write(shown.found_as_text(each))
        if options["json"]:
            self.stdout.write("]" if before != "[" else "[]")

    _query = _list

    def _cleanup(self, store: MemoryDocumentStore, options: dict[str, Any]) -> None:
        dry_run = options["dry_run"]
        removed = store.cleanup(
            category=options["category"],
            older_than=options["older_than"],
            dry_run=dry_run,
            progress=ProgressBar(sys.stderr),
        )
        for broken in removed.broken:
            self.stderr.write(shown.broken_as_text(broken))
        self._tell(
            options,
            shown.removed_as_dict(removed, dry_run=dry_run),
            shown.removed_as_text(removed, dry_run=dry_run),
        )

    def _archive(self, store: MemoryDocumentStore, options: dict[str, Any]) -> None:
        key = store.archive(category=options["category"], identifier=options["identifier"])
        self._tell(options, shown.key_as_dict(key), f"Archived as {key.path}.")

    def _export(self, store: MemoryDocumentStore, options: dict[str, Any]) -> None:
        self._transfer(store, TreeStore(options["folder"]), options)

    def _import(self, store: MemoryDocumentStore, options: dict[str, Any]) -> None:
        self._transfer(TreeStore(options["folder"]), store, options)

    def _transfer(
        self, source: MemoryDocumentStore, target: MemoryDocumentStore, options: dict[str, Any]
    ) -> None:
        try:
            report = documents_transfer(
                source=source,
                target=target,
                replace=options["replace"],
                progress=ProgressBar(sys.stderr),
            )
        except KeyboardInterrupt:
            raise CommandError("Stopped. What is in stays; run it again to go on.") from None
        self._tell(options, report.as_dict(), shown.report_as_text(report))
        if report.refused:
            verb = "was" if report.refused == 1 else "were"
            left = f"{shown.counted(report.refused)} {verb} left alone"
            raise CommandError(f"{left}: see the report.")

    def _tell(self, options: dict[str, Any], result: dict[str, Any], text: str) -> None:
        self.stdout.write(json.dumps(result, ensure_ascii=False) if options["json"] else text)


def _elsewhere(store: MemoryDocumentStore, options: dict[str, Any]) -> str:
    """Return a hint if a document that was not found is in the archive."""
    if "identifier" not in options:
        return ""
    try:
        store.load(category=options["category"], identifier=options["identifier"], archived=True)
    except MemoryDocumentNotFoundError:
        return ""
    except MemoryDocumentError:
        pass  # It is there, broken.
    return " There is one in the archive: see it by load --archived."
