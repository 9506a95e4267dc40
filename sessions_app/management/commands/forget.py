"""Forget with proof."""

import os
import sys
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError
from django.db import DatabaseError, connection
from psycopg import sql

from memories_app.visibility import memories_for_staff
from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.commands import ReportingCommand, UsageError, flag, option
from memoryproject.foundation.retrieval.query import with_words
from sessions_app.conversations.chat_queries import chat_chosen
from sessions_app.forgetting.deletion_plan import NothingToForgetError
from sessions_app.forgetting.dependencies import build_forget_dependencies
from sessions_app.forgetting.forget_objects import memories_forget, object_forget
from sessions_app.forgetting.person_export import person_export
from sessions_app.forgetting.registry import COLUMNS, OWN, SWEPT
from sessions_app.models import Chat, ForgetReceipt

KINDS = ("memory", "message", "session", "document", "memory_document", "chat", "search", "purge")


class Command(ReportingCommand):
    json_help = "The receipts as JSON."
    refusals = {NothingToForgetError: "{error}", DatabaseError: "Nothing was forgotten: {error}"}

    arguments = [
        option("kind", choices=KINDS),
        option("what", nargs="*"),
        flag("--yes"),
        option("--export", metavar="FILE"),
    ]

    def run(self, options: dict[str, Any]) -> None:
        kind, what = options["kind"], " ".join(options["what"])
        if kind == "purge":
            self._purge()
            return
        if not what:
            raise UsageError(f"Say which {kind}: forget {kind} …")
        receipts = self._forget(kind, what, options)
        lines = [_as_line(receipt) for receipt in receipts] or ["Nothing matched."]
        shown = [receipt.as_dict() for receipt in receipts]
        self.report(options, shown, "\n".join(lines), indent=2)

    def _forget(self, kind: str, what: str, options: dict[str, Any]) -> list[ForgetReceipt]:
        dependencies = build_forget_dependencies()
        if kind == "search":
            found = with_words(memories_for_staff(), what, each=True)
            self._ask(f"{found.count()} memories", options)
            ids = list(found.values_list("pk", flat=True))
            return memories_forget(memory_ids=ids, dependencies=dependencies, actor=COMMAND_LINE)
        if kind == "chat":
            chat = chat_chosen(what, option="chat")
            if options["export"]:
                self._export(chat, options["export"])
            key, named = chat.pk, f"the chat {what} with everything in it"
        else:
            key = _id(what)
            named = f"the {kind} {key}"
        self._ask(named, options)
        return [
            object_forget(kind=kind, object_id=key, dependencies=dependencies, actor=COMMAND_LINE)
        ]

    def _ask(self, what: str, options: dict[str, Any]) -> None:
        if options["yes"]:
            return
        if not sys.stdin.isatty():
            raise UsageError(f"Add --yes to forget {what}.")
        if input(f"Forget {what}? It can't be undone. [y/N] ").strip().lower() != "y":
            raise CommandError("Nothing was forgotten.")

    def _export(self, chat: Chat, file: str) -> None:
        try:
            with open(file, "x", encoding="utf-8", opener=_private) as out:
                for line in person_export(chat=chat, actor=COMMAND_LINE):
                    out.write(line + "\n")
        except OSError as error:
            raise CommandError(f"{file} can't be written: {error.strerror}.") from error
        self.stderr.write(f"All that is kept of the chat was written to {file}.")

    def _purge(self) -> None:
        try:
            tables = purge(progress=lambda table: self.stderr.write(f"Rewriting {table} …"))
        except DatabaseError as error:
            raise CommandError(
                f"PostgreSQL refused: {error}. The role must own the tables and may CHECKPOINT "
                "(GRANT pg_checkpoint) and switch the log."
            ) from error
        self.stdout.write(f"{tables} tables were rewritten and the log was closed behind them.")


def _as_line(receipt: ForgetReceipt) -> str:
    rows = sum(receipt.swept.values())
    return (
        f"Receipt {receipt.receipt_id}: {receipt.kind} {receipt.object_id} was forgotten, "
        f"{rows} rows in {len(receipt.swept)} tables; probe: {receipt.probe}."
    )


def _id(what: str) -> UUID:
    try:
        return UUID(what)
    except ValueError:
        raise UsageError(f"{what!r} is no id such as a page of the admin shows.") from None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


# Remove forgotten texts from PostgreSQL's own files at once.


def purge(*, progress: Callable[[str], None] = lambda _table: None) -> int:
    """Rewrite every table with swept or deleted texts, and close the write-ahead log after it.

    Returns the number of tables. Call it outside of a transaction.

    Otherwise deleted rows stay in PostgreSQL's files until vacuuming and new rows overwrite them,
    and in the write-ahead log until its files are removed. Each table is locked while it is
    rewritten. Raises django.db.DatabaseError if the role lacks the privileges.
    """
    tables = sorted(
        table
        for table, columns in COLUMNS.items()
        if any(how in (SWEPT, OWN) for how, _ in columns.values())
    )
    with connection.cursor() as cursor:
        for table in tables:
            progress(table)
            # As composed SQL, because Django's cursor takes no identifiers as parameters.
            cursor.execute(sql.SQL("VACUUM (FULL, ANALYZE) {}").format(sql.Identifier(table)))
        # The first checkpoint writes the rewritten tables to disk; after the switch the second one
        # leaves no older log file behind.
        cursor.execute("CHECKPOINT")
        cursor.execute("SELECT pg_switch_wal()")
        cursor.execute("CHECKPOINT")
    return len(tables)
