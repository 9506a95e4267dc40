"""Write an archive of chats, messages and memories, in an open form."""

from __future__ import annotations

import os
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.commands import ReportingCommand
from memoryproject.foundation.integrations.media_storage.storage_choice import (
    configured_media_storage,
)
from sessions_app.conversations.chat_queries import chat_at, chat_option
from sessions_app.moving.open_archive import archive_write


class Command(ReportingCommand):
    help = (
        "Write an archive: a Zip with a README and lines of JSON. import_from archive reads it. "
        "It is no backup: see the command backup."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", metavar="FILE", type=Path, help="Replaced as a whole.")
        parser.add_argument("--chat", metavar="WHATSAPP_CHAT", help="Only this chat.")
        parser.add_argument("--media", action="store_true", help="With the files of messages.")
        parser.add_argument(
            "--redact",
            action="store_true",
            help="Without personal data, and without files. It can't be moved in again.",
        )
        super().add_arguments(parser)

    def run(self, options: dict[str, Any]) -> None:
        path: Path = options["path"]
        chat = chat_at(options["chat"]) if options["chat"] else None
        if options["chat"] and chat is None:
            chat_option(options["chat"], option="--chat")
            raise CommandError(f"There is no chat {options['chat']}.")
        if path.exists() and not path.is_file():
            raise CommandError(f"{path} is not a file.")
        storage = configured_media_storage() if options["media"] else None
        part = ""
        try:
            # Only its owner can read it, and it is never there by half.
            handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
            with os.fdopen(handle, "wb") as file:
                counts = archive_write(
                    file, chat=chat, actor=COMMAND_LINE, storage=storage, redacted=options["redact"]
                )
                file.flush()
                os.fsync(file.fileno())
            Path(part).replace(path)
        except OSError as error:
            raise CommandError(f"{path} can't be written: {error.strerror or error}.") from error
        finally:
            if part:
                Path(part).unlink(missing_ok=True)
        held = ", ".join(f"{number} {name}" for name, number in counts.items())
        self.report(options, {"path": str(path), **counts}, f"{path}: {held}")
