"""Names of background jobs and of their errors, for staff.

A job's content is never shown: its arguments, results and error messages may hold texts that people
wrote.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

KINDS: dict[str, _StrPromise] = {
    "sessions_app.tasks.run_trial": gettext_lazy("Try an answer again"),
    "sessions_app.tasks.sweep_work": gettext_lazy("Retry stuck work"),
    "sessions_app.tasks.summarize_sessions": gettext_lazy("Sum up sessions that are due"),
    "sessions_app.tasks.summarize_session": gettext_lazy("Sum up a session"),
    "sessions_app.tasks.learn_from_chat": gettext_lazy("Learn from a chat"),
    "sessions_app.tasks.redact_chat": gettext_lazy("Remove deleted texts from replays"),
    "sessions_app.tasks.make_cards": gettext_lazy("Make cards of sessions"),
    "sessions_app.tasks.sweep_cards": gettext_lazy("Retry due cards"),
    "sessions_app.tasks.expire_sessions": gettext_lazy("Expire idle sessions"),
    "sessions_app.tasks.archive_sessions": gettext_lazy("Archive sessions that expired long ago"),
    "sessions_app.tasks.embed_session": gettext_lazy("Make vectors of messages"),
    "sessions_app.tasks.embed_memories": gettext_lazy("Make vectors of memories"),
    "sessions_app.tasks.propose_merges": gettext_lazy("Look for memories that may be one"),
    "sessions_app.tasks.read_document": gettext_lazy("Read a document"),
    "sessions_app.tasks.tend_embeddings": gettext_lazy("Look after the index of memories"),
    "sessions_app.tasks.tend_memory_documents": gettext_lazy("Remove and archive old documents"),
    "sessions_app.tasks.drop_raw_deliveries": gettext_lazy("Remove the providers' old raw bodies"),
    "sessions_app.tasks.drop_old_usage": gettext_lazy("Remove the usage of days long past"),
    "sessions_app.tasks.drop_transcript_backups": gettext_lazy("Remove old backups of transcripts"),
    "sessions_app.tasks.fetch_media": gettext_lazy("Fetch a picture or recording"),
    "sessions_app.tasks.remove_media": gettext_lazy("Remove the files of messages that are gone"),
    "sessions_app.tasks.drop_old_media": gettext_lazy("Remove old pictures and recordings"),
    "sessions_app.tasks.send_webhooks": gettext_lazy("Send webhooks"),
    "sessions_app.tasks.drop_webhook_deliveries": gettext_lazy("Remove the old log of webhooks"),
    "sessions_app.tasks.run_forgetting": gettext_lazy("Carry out an erasure"),
    "memoryproject.staff_site.tasks.recount": gettext_lazy("Count for the dashboard"),
    "memoryproject.staff_site.tasks.check_alerts": gettext_lazy("Look for what needs attention"),
    "memoryproject.foundation.audit.tasks.verify": gettext_lazy("Verify the audit log"),
    "memoryproject.foundation.audit.tasks.seal": gettext_lazy("Seal the audit log"),
    "memoryproject.foundation.audit.tasks.prune": gettext_lazy("Remove audit events after 90 days"),
    "memoryproject.foundation.rest_kit.tasks.tidy": gettext_lazy(
        "Remove old answers to repeated API calls"
    ),
}

ERRORS: dict[str, _StrPromise] = {
    "OperationalError": gettext_lazy("The database could not be used."),
    "InterfaceError": gettext_lazy("The connection to the database broke."),
    "IntegrityError": gettext_lazy("The database refused what was to be stored."),
    "DataError": gettext_lazy("The database refused what was to be stored."),
    "ProgrammingError": gettext_lazy("The tables are not those of this version: run migrations."),
    "DeadlockDetected": gettext_lazy("Two jobs stood in each other's way."),
    "TimeoutException": gettext_lazy("It took too long and was stopped."),
    "EmbedderError": gettext_lazy("The embedding model could not be used."),
    "WrongDimensionsError": gettext_lazy("The embedding model is another one than before."),
    "ChatModelError": gettext_lazy("The chat model could not be used."),
    "SendError": gettext_lazy("WhatsApp's provider refused the message."),
    "MediaError": gettext_lazy("The provider did not hand out the file."),
    "ConnectionError": gettext_lazy("A server could not be reached."),
    "ConnectError": gettext_lazy("A server could not be reached."),
    "TimeoutError": gettext_lazy("A server did not answer in time."),
    "OSError": gettext_lazy("A file or the disk could not be used."),
    "PermissionError": gettext_lazy("A file or folder may not be used."),
    "FileNotFoundError": gettext_lazy("A file is not there."),
    "MemoryError": gettext_lazy("The machine ran out of memory."),
    "DoesNotExist": gettext_lazy("What it was about is gone."),
}
FRAME = re.compile(
    r'File "[^"]*?((?:memoryproject|sessions_app|memories_app|cards_app)/[\w/]+\.py)", line (\d+)'
)
CLASS_NAME = re.compile(r"[A-Za-z_]\w{0,80}")
NO_FUNCTION = re.compile(r"Function [\w.]+ is not defined")


@dataclass(frozen=True)
class Fault:
    """An error.

    ``text``: in words. ``name``: the kind of error. ``place``: the last line of our code in the
    traceback, such as sessions_app/tasks.py:42.
    """

    text: str
    name: str
    place: str


def kind_of(function: str) -> str:
    """Return what a job does, in words; the function's name if it has no description."""
    return str(KINDS.get(function, function))


def fault_of(result: object) -> Fault:
    """Return the fault from django-q2's result of a failed job: the error's text and traceback."""
    text = result if isinstance(result, str) else ""
    trace = text.rpartition("Traceback (most recent call last):")[2]
    if not trace or trace == text:
        return Fault(words_for(""), "", "")
    name = _class_of(trace)
    frames = FRAME.findall(trace)
    place = f"{frames[-1][0]}:{frames[-1][1]}" if frames else ""
    words = _("There is no such job in this version.") if NO_FUNCTION.search(trace) else ""
    return Fault(words or words_for(name), name, place)


def _class_of(trace: str) -> str:
    """Return the error's class: from the first line after the frames that isn't indented."""
    for line in trace.splitlines()[1:]:
        if line and not line[0].isspace():
            name = line.partition(":")[0].strip().rpartition(".")[2]
            return name if CLASS_NAME.fullmatch(name) else ""
    return ""


def words_for(name: str) -> str:
    """Return the meaning of a kind of error."""
    if name in ERRORS:
        return str(ERRORS[name])
    return _("A fault in the program.") if name else _("It is not known why.")
