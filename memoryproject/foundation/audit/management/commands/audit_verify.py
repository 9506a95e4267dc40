"""Verify the audit log."""

import sys
from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError
from django.utils import timezone

from memoryproject.foundation.audit import chain, findings, verify
from memoryproject.foundation.audit.audit_events import audit_key, log_path
from memoryproject.foundation.audit.tasks import verification_note
from memoryproject.foundation.commands import ProgressBar, ReportingCommand, flag


class Command(ReportingCommand):
    """Verifies the log. Changes nothing, except that waiting events are sealed."""

    refusals = {
        chain.ChainError: "{error}",
        OSError: "The log file can't be used: {error}",
        DatabaseError: "The database can't be read: {error}",
    }

    arguments = [flag("--write-log"), flag("--begin-anew")]

    def run(self, options: dict[str, Any]) -> None:
        if options["write_log"]:
            chain.log_write(log_path=log_path())
        if options["begin_anew"]:
            chain.audit_begin_anew(key=audit_key(), log_path=log_path())
        report = verify.audit_verify(
            key=audit_key(), log_path=log_path(), progress=ProgressBar(sys.stderr)
        )
        verification_note(report=report, now=timezone.now())
        self.report(options, report.as_dict(), report.describe())
        if not report.verified:
            raise CommandError("\n".join(findings.flaws(report)))
