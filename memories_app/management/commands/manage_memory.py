"""Memory documents, in the database or in a directory tree."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db import DatabaseError, OperationalError
from django.utils import timezone

from memories_app.memory_document_format import envelope, strict_json
from memories_app.memory_document_format.names import CATEGORIES, SUPERSEDED, Pattern
from memories_app.memory_documents.database_store import DatabaseStore
from memories_app.memory_documents.store import (
    Broken,
    Filter,
    Found,
    Key,
    MemoryDocumentStore,
    Removed,
    Saved,
    TransferReport,
    documents_transfer,
)
from memories_app.memory_documents.tree_store import TreeStore
from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.commands import (
    MEMORY_OFF,
    Argument,
    DeclaredCommand,
    ProgressBar,
    flag,
    folder_given,
    option,
    refuse_missing_values,
)

WRITING = ("save", "import")


def _duration(text: str) -> timedelta:
    try:
        return envelope.read_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


# The options that may stand before or after the action.
_ROOT: dict[str, Any] = {"type": folder_given, "metavar": "DIR"}
# Suppressed: otherwise the default would override an option given before the action.
_ANYWHERE = (
    option("--root", **_ROOT, default=argparse.SUPPRESS),
    option("--json", action="store_true", default=argparse.SUPPRESS),
)
_CATEGORY = option("--category", choices=CATEGORIES)
_ONE = (
    option("--category", choices=CATEGORIES, required=True),
    option("--identifier", required=True, metavar="NAME"),
)
_FOLDER = (option("folder", type=folder_given, metavar="DIR"), flag("--replace"))
_ARCHIVED = flag("--archived")
_ACTIONS: dict[str, Sequence[Argument]] = {
    "save": [*_ONE, option("--content", required=True), option("--session-id", metavar="ID")],
    "load": [*_ONE, _ARCHIVED],
    "list": [_CATEGORY, option("--since", type=_duration, metavar="TIME"), _ARCHIVED],
    "query": [option("--pattern", required=True), _CATEGORY, _ARCHIVED],
    "cleanup": [
        _ONE[0],
        option("--older-than", type=_duration, required=True, metavar="TIME"),
        flag("--dry-run"),
    ],
    "archive": _ONE,
    "export": _FOLDER,
    "import": _FOLDER,
}


class Command(DeclaredCommand):
    """One method for each action; all actions work with any store."""

    arguments = [option("--root", **_ROOT), flag("--json")]
    actions = {name: [*_ANYWHERE, *arguments] for name, arguments in _ACTIONS.items()}
    action_shown = "ACTION"

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
        except strict_json.MemoryDocumentInvalidError as error:
            raise CommandError(problems_as_text(error)) from error
        except strict_json.MemoryDocumentNotFoundError as error:
            raise CommandError(f"{error}{_elsewhere(store, options)}") from error
        except strict_json.MemoryDocumentError as error:
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
        given = envelope.content_read(category, content_given(options["content"]))
        session_id = options["session_id"]
        saved = store.save(
            category=category,
            identifier=options["identifier"],
            content=given.content,
            session_id=given.session_id if session_id is None else session_id,
        )
        self._tell(options, saved_as_dict(saved), saved_as_text(saved))
        if hint(saved):
            self.stderr.write(hint(saved))

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
                self.stderr.write(broken_as_text(each))
            elif options["json"]:
                line = json.dumps(found_as_dict(each), ensure_ascii=False)
                self.stdout.write(before + line, ending="")
                before = ",\n"
            else:
                self.stdout.write(found_as_text(each))
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
            self.stderr.write(broken_as_text(broken))
        self._tell(
            options,
            removed_as_dict(removed, dry_run=dry_run),
            removed_as_text(removed, dry_run=dry_run),
        )

    def _archive(self, store: MemoryDocumentStore, options: dict[str, Any]) -> None:
        key = store.archive(category=options["category"], identifier=options["identifier"])
        self._tell(options, key_as_dict(key), f"Archived as {key.path}.")

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
        self._tell(options, report.as_dict(), report_as_text(report))
        if report.refused:
            verb = "was" if report.refused == 1 else "were"
            left = f"{counted(report.refused)} {verb} left alone"
            raise CommandError(f"{left}: see the report.")

    def _tell(self, options: dict[str, Any], result: dict[str, Any], text: str) -> None:
        self.stdout.write(json.dumps(result, ensure_ascii=False) if options["json"] else text)


def _elsewhere(store: MemoryDocumentStore, options: dict[str, Any]) -> str:
    """Return a hint if a document that was not found is in the archive."""
    if "identifier" not in options:
        return ""
    try:
        store.load(category=options["category"], identifier=options["identifier"], archived=True)
    except strict_json.MemoryDocumentNotFoundError:
        return ""
    except strict_json.MemoryDocumentError:
        pass  # It is there, broken.
    return " There is one in the archive: see it by load --archived."


# Arguments and output of manage_memory.


_SHOWN = 20


def content_given(option: str) -> bytes | str:
    """Return the content as it was given, cut just above the size limit."""
    return sys.stdin.buffer.read(strict_json.MAX_BYTES + 1) if option == "-" else option


def found_as_text(found: Found) -> str:
    key, about = found.key, found.about
    return f"{envelope.stamp(about.changed)}  {key.category:<10}  {about.status:<10}  {key.name}"


def found_as_dict(found: Found) -> dict[str, Any]:
    about = found.about
    return {
        **key_as_dict(found.key),
        "summary": about.summary,
        "created": envelope.stamp(about.created),
        "changed": envelope.stamp(about.changed),
        "status": about.status,
        "session_id": about.session_id,
    }


def key_as_dict(key: Key) -> dict[str, Any]:
    return {"category": key.category, "name": key.name, "path": key.path, "archived": key.archived}


def saved_as_dict(saved: Saved) -> dict[str, Any]:
    archived = saved.archived_as
    return {
        **key_as_dict(saved.key),
        "outcome": saved.outcome,
        "archived_as": None if archived is None else archived.path,
    }


def saved_as_text(saved: Saved) -> str:
    text = f"{saved.key.path}: {saved.outcome}."
    if saved.archived_as is not None:
        text += f" It is completed, and was archived as {saved.archived_as.path}."
    return text


def hint(saved: Saved) -> str:
    """Return what the user still has to do by hand; empty if nothing."""
    if saved.envelope.status != SUPERSEDED:
        return ""
    return "The decision is superseded. When nobody needs it in the list any more: archive it."


def removed_as_dict(removed: Removed, *, dry_run: bool) -> dict[str, Any]:
    return {"removed": len(removed.names), "names": list(removed.names), "dry_run": dry_run}


def removed_as_text(removed: Removed, *, dry_run: bool) -> str:
    verb = "would be removed" if dry_run else "removed"
    return "\n".join([*removed.names, f"{counted(len(removed.names))} {verb}."])


def counted(count: int) -> str:
    return "1 document" if count == 1 else f"{count} documents"


def broken_as_text(broken: Broken) -> str:
    problem = strict_json.render_problem(broken.problems)
    return f"Left alone, it can't be read: {broken.path}: {problem}"


def report_as_text(report: TransferReport) -> str:
    lines = [
        f"{counted(report.created)} copied, {report.updated} replaced, "
        f"{report.unchanged} there already, {report.refused} left alone."
    ]
    for title, entries in (("conflict", report.conflicts), ("broken", report.broken)):
        lines += [f"  {title}: {each['path']}: {each['detail']}" for each in entries[:_SHOWN]]
    listed = sum(min(len(each), _SHOWN) for each in (report.conflicts, report.broken))
    if report.refused > listed:
        lines.append(f"  and {report.refused - listed} more: --json has them")
    return "\n".join(lines)


def problems_as_text(error: strict_json.MemoryDocumentInvalidError) -> str:
    """Return all problems, one a line."""
    lines = [f"  {problem}" for problem in error.problems]
    return "\n".join([f"{error.place or 'The document'} is not as it should be:", *lines])
