"""Read documents into memory, from the command line."""

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from memories_app.documents.document_store import DocumentBusyError
from memories_app.documents.read_document import document_store
from memories_app.models import DocumentState, SourceDocument, Visibility
from memoryproject.foundation import commands
from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.integrations.documents.sniffing import DocumentError
from sessions_app.conversations import chat_queries, epochs, phrases
from sessions_app.documents.upload import document_upload
from sessions_app.embedding.facade import embedder
from sessions_app.models import Chat
from sessions_app.turns.dependencies import build_file_dependencies

BLOCK = 1024 * 1024


class Command(commands.ReportingCommand):
    """Can be run again at any time: a file that was read already is left as it is."""

    json_help = "Print the result as JSON."
    fills_memory = True
    refusals = {**commands.ReportingCommand.refusals, KeyboardInterrupt: commands.GO_ON}

    arguments = [
        commands.option("files", metavar="FILE", type=Path, nargs="+"),
        commands.option("--chat", metavar="WHATSAPP_CHAT"),
        commands.option("--visibility", choices=Visibility.values, default=""),
    ]

    def run(self, options: dict[str, Any]) -> None:
        chat = self._checked(options)
        progress = commands.ProgressBar(sys.stderr)
        results: list[dict[str, Any]] = []
        for number, path in enumerate(options["files"], start=1):
            results.append(_read(path, chat, options["visibility"]))
            progress(number, len(options["files"]))
        text = "\n".join(map(_as_text, results))
        self.report(options, results, text, ensure_ascii=False, indent=2)
        failed = sum(result["state"] == DocumentState.FAILED for result in results)
        if failed:
            raise CommandError(f"{failed} of {len(results)} files could not be read.")

    def _checked(self, options: dict[str, Any]) -> Chat | None:
        """Return the chat after checking that all files exist."""
        missing = [str(path) for path in options["files"] if not path.is_file()]
        if missing:
            raise commands.UsageError(f"No such file: {', '.join(missing)}")
        chat = chat_queries.chat_chosen(options["chat"], returncode=2) if options["chat"] else None
        if chat is not None and chat.memory_enabled is False:
            raise CommandError(
                "Memory is switched off for this chat: nothing is stored for it. Switch it on in "
                "the admin first."
            )
        if options["visibility"] == str(Visibility.CHAT) and chat is None:
            raise commands.UsageError("--visibility chat needs --chat.")
        return chat


def _read(path: Path, chat: Chat | None, visibility: str) -> dict[str, Any]:
    dependencies = build_file_dependencies()
    result: dict[str, Any] = {"file": str(path)}
    try:
        with path.open("rb") as file:
            received = document_upload(
                blocks=iter(lambda: file.read(BLOCK), b""),
                name=path.name,
                folder=dependencies.folder,
                max_bytes=dependencies.limits.size,
                chat=chat,
                visibility=visibility,
                actor=COMMAND_LINE,
            )
        document = document_store(
            document_id=received.document.document_id,
            folder=dependencies.folder,
            extractor=dependencies.extractor,
            embedder=embedder(),
            actor=COMMAND_LINE,
        )
    except (DocumentError, DocumentBusyError, epochs.ChatGoneError, OSError) as error:
        return {**result, "state": str(DocumentState.FAILED), "error": str(error)}
    return {**result, **_described(document), "known_before": received.duplicate}


def _described(document: SourceDocument) -> dict[str, Any]:
    return {
        "document_id": str(document.document_id),
        "state": str(document.state),
        "pages": document.pages,
        "passages": document.memories.count(),
        "warnings": document.warnings,
        "error": document.error,
    }


def _as_text(result: dict[str, Any]) -> str:
    if result["state"] == DocumentState.FAILED:
        return f"{result['file']}: not read. {result['error']}"
    sizes = [phrases.counted("passage", result["passages"], "en")]
    if result["pages"] is not None:
        sizes.insert(0, phrases.counted("page", result["pages"], "en"))
    known = " (was there before)" if result["known_before"] else ""
    details = " ".join([f"{', '.join(sizes)}{known}", *result["warnings"]])
    return f"{result['file']}: {details}"
