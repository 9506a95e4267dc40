"""Save conversations from transcripts, and write them as transcripts."""

import json
import sys
from argparse import ArgumentTypeError
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError
from django.db import DatabaseError

from memoryproject.foundation import commands
from sessions_app.conversations import chat_queries, message_store
from sessions_app.transcript_files import parse_transcript
from sessions_app.transcript_files.transcript_folder import BatchFolder
from sessions_app.transcripts.export_transcripts import (
    DEFAULT_CHAT,
    MESSAGES_A_BATCH,
    Target,
    transcripts_export,
)
from sessions_app.transcripts.save import Saved, batches_save, build_save_dependencies
from sessions_app.transcripts.status import folder_status, folder_validate

ACTIONS = ("validate", "save", "export", "status")
FOLDER = Path("chats/chat_memories/temp")
SHOWN = 50


class StepBars:
    """A progress bar for each step, on a terminal."""

    def __init__(self) -> None:
        self._step = ""
        self._bar = commands.ProgressBar(sys.stderr)

    def __call__(self, step: str, done: int, total: int) -> None:
        if step != self._step:
            self._step = step
            self._bar = commands.ProgressBar(sys.stderr)
            if sys.stderr.isatty():
                sys.stderr.write(f"{step} …\n")
        self._bar(done, total)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise ArgumentTypeError("give a number of messages, 0 or more")
    return int(text)


class Command(commands.ReportingCommand):
    """Run the command. A save can be run again at any time: nothing is stored twice."""

    refusals = {
        message_store.ConversationNotFoundError: "{error}",
        DatabaseError: "The database failed: {error} Files that aren't cleaned up are where they "
        "were; run it again: nothing is stored twice.",
        KeyboardInterrupt: "Stopped. Run it again: nothing is stored twice.",
    }

    arguments = [
        commands.option("action", choices=ACTIONS),
        commands.option("--dir", type=commands.folder_given, default=FOLDER),
        [
            commands.option("--session", metavar="SESSION_ID"),
            commands.option(
                "--chat",
                metavar="WHATSAPP_CHAT",
                help="The chat they belong to, such as 15550100123@c.us; a save makes it when it "
                f"is new. Default of save and status: {DEFAULT_CHAT}.",
            ),
        ],
        [commands.flag("--append"), commands.option("--overlap", type=_count, metavar="N")],
        commands.option("--batch-size", type=int, default=MESSAGES_A_BATCH, metavar="MESSAGES"),
        commands.flag("--strict"),
        commands.flag("--redact"),
    ]

    def run(self, options: dict[str, Any]) -> None:
        commands.refuse_missing_values(options)
        target = _target(options)
        run = getattr(self, f"_{options['action']}")
        try:
            run(BatchFolder(options["dir"]), target, options)
        except parse_transcript.RefusedError as error:
            self._show_problems(error.problems, error.further, options, error=str(error))
            raise CommandError(str(error)) from error
        except parse_transcript.TranscriptsError as error:
            if options["json"]:
                self._print({"error": str(error)})
            usage = isinstance(error, parse_transcript.FolderError) and error.usage
            raise CommandError(str(error), returncode=2 if usage else 1) from error

    def _validate(
        self, folder: BatchFolder, target: Target | None, options: dict[str, Any]
    ) -> None:
        found = folder_validate(
            folder=folder, target=target, overlap=_overlap(options), progress=StepBars()
        )
        if options["json"]:
            self._print(found.as_dict())
        else:
            self._show_notes(found.notes, found.left_alone)
            self._show_problems(found.problems, found.further, options)
        count = len(found.problems) + found.further
        if count:
            raise CommandError(f"{counted(count, 'problem')} in {folder.path}.")
        if not options["json"]:
            sizes = f"{counted(found.files, 'batch', 'es')}, {counted(found.messages, 'message')}"
            self.stdout.write(f"{folder.path} is valid: {sizes}.")

    def _save(self, folder: BatchFolder, target: Target | None, options: dict[str, Any]) -> None:
        saved = batches_save(
            folder=folder,
            target=target or Target(),
            dependencies=build_save_dependencies(progress=StepBars()),
            overlap=_overlap(options),
        )
        if options["json"]:
            self._print(vars(saved))
            return
        self._show_notes(saved.notes, saved.left_alone)
        self.stdout.write(_saved(saved, folder))

    def _export(self, folder: BatchFolder, target: Target | None, options: dict[str, Any]) -> None:
        if target is None:
            raise commands.UsageError("Say what to export: --session or --chat.")
        size = options["batch_size"]
        if size < 2 or size % 2:
            raise commands.UsageError("--batch-size must be an even number, 2 or more.")
        conversation = target.find()
        if conversation is None:
            raise CommandError(f"There is no chat {target.whatsapp_chat}.")
        exported = transcripts_export(
            conversation=conversation,
            path=folder.path,
            messages_a_batch=size,
            progress=StepBars(),
            redacted=options["redact"],
        )
        if options["json"]:
            self._print(vars(exported))
        elif exported.messages:
            self.stdout.write(
                f"{counted(exported.messages, 'message')} in "
                f"{counted(exported.files, 'batch', 'es')} were written to {folder.path}"
                f"{', redacted' if exported.redacted else ''}."
            )
        left = exported.left_out
        for one in left[:SHOWN]:
            self.stderr.write(
                f"Left out: message {one['order_num']} of session {one['session_id']} "
                f"({one['role']}): {one['what']}."
            )
        if len(left) > SHOWN:
            self.stderr.write(f"and {len(left) - SHOWN} more: --json has them")
        if not exported.messages:
            raise CommandError("There is no message with its answer to export.")
        if left and options["strict"]:
            raise CommandError(f"{counted(len(left), 'message')} had to be left out.")

    def _status(self, folder: BatchFolder, target: Target | None, options: dict[str, Any]) -> None:
        found = folder_status(
            folder=folder, target=target or Target(), overlap=_overlap(options), progress=StepBars()
        )
        if options["json"]:
            problems = [problem.as_dict() for problem in found["problems"]]
            self._print({**found, "problems": problems})
            return
        self._show_notes(found["notes"], found["folder"]["left_alone"])
        self.stdout.write("\n".join(_status(found)))

    def _show_problems(
        self,
        problems: Iterable[parse_transcript.Problem],
        further: int,
        options: dict[str, Any],
        error: str = "",
    ) -> None:
        if options["json"]:
            shown = [problem.as_dict() for problem in problems]
            self._print({"error": error, "problems": shown, "further": further})
            return
        for problem in problems:
            self.stderr.write(str(problem))
        if further:
            self.stderr.write(f"and {counted(further, 'problem')} more")

    def _show_notes(self, notes: Iterable[str], left_alone: list[str]) -> None:
        for note in notes:
            self.stderr.write(f"Note: {note}")
        if left_alone:
            more = f" and {len(left_alone) - SHOWN} more" if len(left_alone) > SHOWN else ""
            names = ", ".join(left_alone[:SHOWN])
            self.stderr.write(f"Note: left alone, as these are no batches: {names}{more}")

    def _print(self, report: dict[str, Any]) -> None:
        self.stdout.write(json.dumps(report, ensure_ascii=False, indent=2))


def _overlap(options: dict[str, Any]) -> int | None:
    """Return the overlap that the user decided on; None if it is to be found."""
    given: int | None = options["overlap"]
    return 0 if options["append"] else given


def counted(count: int, noun: str, plural: str = "s") -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}{plural}"


def _target(options: dict[str, Any]) -> Target | None:
    """Return the target. Raises CommandError for text that is no id and no address."""
    if options["session"] is not None:
        try:
            return Target(session_id=UUID(options["session"]))
        except ValueError:
            raise commands.UsageError(
                f"--session: {options['session']!r} is no session's id."
            ) from None
    address = options["chat"]
    if address is None:
        return None
    return Target(whatsapp_chat=chat_queries.chat_option(address, option="--chat"))


def _saved(saved: Saved, folder: BatchFolder) -> str:
    if not saved.files:
        return f"There is no batch in {folder.path}: nothing to save."
    there = saved.messages - saved.added
    known = f", {there} were stored already" if there else ""
    lines = [
        f"{counted(saved.files, 'batch', 'es')} saved: {counted(saved.added, 'message')} added to "
        f"session {saved.session_id} of {saved.whatsapp_chat}{known}.",
        f"Backed up and verified: {', '.join(saved.backups)}",
        f"Cleaned up: {counted(saved.cleaned, 'file')}.",
    ]
    return "\n".join(lines)


def _status(found: dict[str, Any]) -> list[str]:
    folder, stored, save = found["folder"], found["stored"], found["save"]
    names = " to ".join(folder["batches"])
    last = stored["last_batch"]
    lines = [
        f"{folder['dir']}: {counted(folder['files'], 'batch', 'es')}"
        + (f" ({names}), {counted(folder['messages'], 'message')}" if names else ""),
        f"{stored['whatsapp_chat']}: {counted(stored['messages'], 'message')} in exchanges"
        + (f"; last batch {last['number']}, saved {last['saved_at']}" if last else ""),
    ]
    if last and not last["cleaned_up"]:
        lines.append("The last save didn't come to cleaning up: run it again.")
    if save["possible"]:
        lines.append(
            f"A save would add {counted(save['add'], 'message')}; {save['overlap']} of the files' "
            f"messages and {counted(save['saved_before'], 'batch', 'es')} are stored already."
        )
    elif not found["problems"]:
        lines.append("There is nothing to save.")
    else:
        lines.append("A save would refuse, for:")
        problems = [f"  {each}" for each in found["problems"][:SHOWN]]
        more = len(found["problems"]) + found["further"] - len(problems)
        lines += problems + ([f"  and {counted(more, 'problem')} more"] if more else [])
    return lines
