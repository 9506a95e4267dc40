"""Rebuild a session from its messages (RECOVERY-001)."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError
from django.utils import timezone

from memoryproject.foundation.process.command_options import folder_given
from sessions_app.embedding.facade import embedder
from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.legacy_import.files.errors import FolderError
from sessions_app.legacy_import.files.ids import session_uuid
from sessions_app.legacy_import.files.report import ImportReport
from sessions_app.legacy_import.files.session_folder import LegacyFolder
from sessions_app.legacy_import.import_folder import FolderImport
from sessions_app.legacy_import.session_rebuild import (
    Rebuilt,
    SessionNotFoundError,
    SessionState,
    session_rebuild,
    session_state,
)
from sessions_app.legacy_import.sessions_import_command import as_text
from sessions_app.models import ChatSession


class Command(BaseCommand):
    """Run the command. It can be run again at any time."""

    help = (
        "Work out a session's counter, window, tokens, time of last activity and words for recall "
        "afresh from its messages; with --from, take in its messages from old files first."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("session_id", metavar="SESSION_ID", help="The session's id.")
        parser.add_argument(
            "--from",
            dest="folder",
            metavar="DIR",
            type=folder_given,
            help="A folder of sessions (see sessions_import): take in this session's messages "
            "from DIR/messages/, and make the session where it is missing.",
        )
        parser.add_argument(
            "--no-vectors",
            action="store_true",
            help="With --from: don't make the vectors of the messages taken in.",
        )
        parser.add_argument("--json", action="store_true", help="Print before and after as JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        session_id = session_uuid(options["session_id"])
        try:
            before = _state_of(session_id)
            taken = self._take_in(session_id, options) if options["folder"] else None
            rebuilt = session_rebuild(session_id=session_id, rules=build_intake_rules())
        except FolderError as error:
            raise CommandError(str(error), returncode=2 if error.usage else 1) from error
        except SessionNotFoundError as error:
            raise CommandError(_not_found(options)) from error
        except DatabaseError as error:
            raise CommandError(f"The database cannot be used: {error}".strip()) from error
        if options["json"]:
            self.stdout.write(_as_json(session_id, before, rebuilt, taken))
        else:
            self.stdout.write(_as_text(session_id, before, rebuilt, taken))
        if taken and taken.skipped:
            raise CommandError(f"{len(taken.skipped)} of its messages were skipped: see the log.")

    def _take_in(self, session_id: UUID, options: dict[str, Any]) -> ImportReport:
        return FolderImport(
            folder=LegacyFolder(options["folder"]),
            rules=build_intake_rules(),
            now=timezone.now(),
            embedder=None if options["no_vectors"] else embedder(),
        ).run_session(session_id)


def _state_of(session_id: UUID) -> SessionState | None:
    session = ChatSession.objects.filter(pk=session_id).first()
    return session_state(session) if session else None


def _not_found(options: dict[str, Any]) -> str:
    if options["folder"]:
        return (
            f"No session {options['session_id']}, neither in the database nor in messages that "
            "can be used: the log says what was found."
        )
    return (
        f"No session {options['session_id']} in the database. Where its old files are at hand: "
        f"session_rebuild {options['session_id']} --from DIR"
    )


def _as_json(
    session_id: UUID, before: SessionState | None, rebuilt: Rebuilt, taken: ImportReport | None
) -> str:
    document = {
        "session_id": str(session_id),
        "before": before.as_dict() if before else None,
        "after": rebuilt.after.as_dict(),
        "messages_changed": rebuilt.messages_changed,
        "taken_in": taken.as_dict() if taken else None,
    }
    return json.dumps(document, indent=2)


def _as_text(
    session_id: UUID, before: SessionState | None, rebuilt: Rebuilt, taken: ImportReport | None
) -> str:
    lines = [as_text(taken)] if taken else []
    lines.append(f"session {session_id}")
    was = before.as_dict() if before else {}
    for name, value in rebuilt.after.as_dict().items():
        lines.append(f"  {name}: {was.get(name, 'none')} -> {value}")
    lines.append(f"  messages with other tokens or words: {rebuilt.messages_changed}")
    return "\n".join(lines)
