"""Verify the audit log."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import audit_key, log_path
from memoryproject.foundation.audit.chain import ChainError, audit_begin_anew, log_write
from memoryproject.foundation.audit.findings import flaws
from memoryproject.foundation.audit.tasks import verification_note
from memoryproject.foundation.audit.verify import audit_verify
from memoryproject.foundation.commands import ProgressBar, ReportingCommand


class Command(ReportingCommand):
    """Verifies the log. Changes nothing, except that waiting events are sealed."""

    help = (
        "Seal the events that wait, then check the whole audit log: that no event was edited, "
        "deleted, inserted or moved, that its end wasn't cut off, and that the log file says "
        "the same. Exits with 1 where anything is wrong. The server may run meanwhile."
    )

    refusals = {
        ChainError: "{error}",
        OSError: "The log file can't be used: {error}",
        DatabaseError: "The database can't be read: {error}",
    }

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--write-log",
            action="store_true",
            help="First write the log file anew from the database, where it is missing because "
            "a backup was restored.",
        )
        parser.add_argument(
            "--begin-anew",
            action="store_true",
            help="First seal all events afresh, as they are now, where the chain can't be gone on "
            "with: the key is lost, or somebody changed the mark of its end.",
        )

    def run(self, options: dict[str, Any]) -> None:
        if options["write_log"]:
            log_write(log_path=log_path())
        if options["begin_anew"]:
            audit_begin_anew(key=audit_key(), log_path=log_path())
        report = audit_verify(
            key=audit_key(), log_path=log_path(), progress=ProgressBar(sys.stderr)
        )
        verification_note(report=report, now=timezone.now())
        self.report(options, report.as_dict(), report.describe())
        if not report.verified:
            raise CommandError("\n".join(flaws(report)))
