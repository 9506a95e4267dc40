"""Write an archive of chats, messages and memories, in an open form."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.commands import ReportingCommand, flag, option
from memoryproject.foundation.integrations.media_storage import storage_choice
from memoryproject.foundation.process.storage import file_replaced
from sessions_app.conversations.chat_queries import chat_chosen
from sessions_app.moving.open_archive import archive_write


class Command(ReportingCommand):
    arguments = [
        option("path", metavar="FILE", type=Path),
        option("--chat", metavar="WHATSAPP_CHAT"),
        flag("--media"),
        flag("--redact"),
    ]

    def run(self, options: dict[str, Any]) -> None:
        path: Path = options["path"]
        chat = chat_chosen(options["chat"]) if options["chat"] else None
        if path.exists() and not path.is_file():
            raise CommandError(f"{path} is not a file.")
        storage = storage_choice.configured_media_storage() if options["media"] else None
        try:
            with file_replaced(path) as file:
                counts = archive_write(
                    file, chat=chat, actor=COMMAND_LINE, storage=storage, redacted=options["redact"]
                )
        except OSError as error:
            raise CommandError(f"{path} can't be written: {error.strerror or error}.") from error
        held = ", ".join(f"{number} {name}" for name, number in counts.items())
        self.report(options, {"path": str(path), **counts}, f"{path}: {held}")
