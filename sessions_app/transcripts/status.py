"""Report on a folder of batches and on the stored conversation; change nothing."""

from dataclasses import dataclass, field
from typing import Any

from memoryproject.foundation.text.uuids import iso_utc
from sessions_app.transcript_files.parse_transcript import Problem
from sessions_app.transcript_files.transcript_folder import (
    BatchFolder,
    Check,
    Progress,
    folder_check,
    no_progress,
)
from sessions_app.transcripts.export_transcripts import Target, conversation_signs, last_batch
from sessions_app.transcripts.transcript_plan import Plan, boundary_problems, plan_make

NOT_CHECKED = (
    "Only the format was checked. Whether it goes on from what is stored, without a gap, was not "
    "looked at: name the chat or the session for that."
)


@dataclass
class Validation:
    """The result of a validation: whether a save would accept the files.

    ``further``: the number of problems that are not listed.
    """

    files: int
    messages: int
    problems: list[Problem]
    further: int = 0
    notes: list[str] = field(default_factory=list)
    left_alone: list[str] = field(default_factory=list)

    @property
    def valid(self) -> bool:
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        return {
            "valid": self.valid,
            **vars(self),
            "problems": [problem.as_dict() for problem in self.problems],
        }


def folder_validate(
    *,
    folder: BatchFolder,
    target: Target | None = None,
    overlap: int | None = None,
    progress: Progress = no_progress,
) -> Validation:
    """Check all files and, with a ``target``, that they continue the stored conversation.

    An empty folder is a problem: there should be a file. Raises FolderError and
    ConversationNotFoundError.
    """
    check, plan = _look(folder, target, progress, overlap=overlap)
    problems = check.problems + plan.problems
    if not check.files and not problems:
        problems = [Problem.of("no_files", str(folder.path))]
    return Validation(
        files=len(check.files),
        messages=len(check.signs),
        problems=problems,
        further=check.further,
        notes=[*check.notes, *plan.notes],
        left_alone=check.strangers,
    )


def folder_status(
    *,
    folder: BatchFolder,
    target: Target,
    overlap: int | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Return the folder's files, the stored conversation, and the effect of a save.

    ``problems`` are Problems.

    Raises FolderError and ConversationNotFoundError.
    """
    check, plan = _look(folder, target, progress, overlap=overlap)
    problems = check.problems + plan.problems
    return {
        "folder": {
            "dir": str(folder.path),
            "batches": [file.name for file in check.files[:1] + check.files[1:][-1:]],
            "files": len(check.files),
            "messages": len(check.signs),
            "left_alone": check.strangers,
        },
        "stored": _stored(target),
        "save": {
            "possible": bool(check.files) and not problems,
            "add": 0 if problems else plan.add,
            "overlap": plan.overlap,
            "saved_before": len(plan.saved),
        },
        "problems": problems,
        "further": check.further,
        "notes": [*check.notes, *plan.notes],
    }


def _look(
    folder: BatchFolder, target: Target | None, progress: Progress, *, overlap: int | None
) -> tuple[Check, Plan]:
    """Return the check and the plan, which is empty if there is nothing to plan for."""
    conversation = target.find() if target else None
    check = folder_check(folder=folder, progress=progress)
    if check.problems:
        return check, Plan(None)
    if target is None:
        if overlap is None:
            check.add_problems(list(boundary_problems(check, check.files, check.notes)))
        check.notes.append(NOT_CHECKED)
        return check, Plan(None)
    plan = plan_make(check=check, conversation=conversation, folder=folder, overlap=overlap)
    return check, plan


def _stored(target: Target) -> dict[str, Any]:
    """Return the stored conversation in the order of transcripts: messages and their answers."""
    conversation = target.find()
    if conversation is None:
        return {"whatsapp_chat": target.whatsapp_chat, "messages": 0, "last_batch": None}
    last = last_batch(conversation=conversation)
    return {
        "whatsapp_chat": conversation.chat.whatsapp_chat,
        "session_id": str(conversation.session.pk) if conversation.session else None,
        "messages": len(conversation_signs(conversation=conversation).signs),
        "last_batch": last
        and {
            "number": last.number,
            "saved_at": iso_utc(last.saved_at),
            "cleaned_up": last.cleaned_at is not None,
        },
    }
