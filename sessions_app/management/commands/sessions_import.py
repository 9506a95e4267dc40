"""Import sessions and messages from seed 002's JSON files."""

import sys
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from memoryproject.foundation import commands
from sessions_app.embedding.facade import embedder
from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.legacy_import import import_folder, session_folder


class Command(commands.ReportingCommand):
    """Run the command. It can be run again at any time: existing data stays unchanged."""

    json_help = "Print the report as JSON, with every file."
    refusals = {
        **commands.ReportingCommand.refusals,
        session_folder.FolderError: "{error}",
        KeyboardInterrupt: commands.GO_ON,
    }

    arguments = [
        commands.option("dir", metavar="DIR", type=commands.folder_given),
        commands.flag("--dry-run"),
        commands.option("--orphans", choices=["report", "rebuild"], default="report"),
        commands.flag("--no-vectors"),
    ]

    def run(self, options: dict[str, Any]) -> None:
        report = import_folder.FolderImport(
            folder=session_folder.LegacyFolder(options["dir"]),
            rules=build_intake_rules(),
            now=timezone.now(),
            embedder=None if options["no_vectors"] else embedder(),
            rebuild_orphans=options["orphans"] == "rebuild",
            dry_run=options["dry_run"],
            progress=commands.ProgressBar(sys.stderr),
        ).run()
        self.report(options, report.as_dict(), session_folder.as_text(report), indent=2)
        if not report.skipped:
            return
        # What could be used is in. The exit code says that it wasn't all.
        where = "see the report" if options["json"] else "see above"
        text = f"{len(report.skipped)} were skipped: {where} and the log."
        raise CommandError(text)
