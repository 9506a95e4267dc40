"""What background jobs are called, and why jobs and answers failed, for staff."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from sessions_app.models import Chat, Turn
from sessions_app.models.turns import WAITING_STATES, TurnState

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

KINDS: dict[str, _StrPromise] = {
    "sessions_app.tasks.run_trial": gettext_lazy("Try an answer again"),
    "sessions_app.tasks.check_questions": gettext_lazy("Check the question set"),
    "sessions_app.tasks.sweep_work": gettext_lazy("Retry stuck work"),
    "sessions_app.tasks.summarize_sessions": gettext_lazy("Sum up sessions that are due"),
    "sessions_app.tasks.summarize_session": gettext_lazy("Sum up a session"),
    "sessions_app.tasks.learn_from_chat": gettext_lazy("Learn from a chat"),
    "sessions_app.tasks.read_promises": gettext_lazy("Look for promises"),
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
    "sessions_app.tasks.tend_partitions": gettext_lazy("Make and drop the partitions of months"),
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
    "memoryproject.staff_site.tasks.notify_staff": gettext_lazy("Notify members of staff"),
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


# Replies that weren't delivered. The texts of conversations are on pages where reading is audited.


STUCK = "stuck"
STUCK_AFTER = timedelta(minutes=5)
ENDED = (TurnState.FAILED, TurnState.UNCONFIRMED, TurnState.MISSED)
OPEN = (*WAITING_STATES, TurnState.SENDING)
TURN_KINDS = (str(TurnState.FAILED), str(TurnState.UNCONFIRMED), str(TurnState.MISSED), STUCK)
# The limit up to which a page counts.
MAX_COUNTED = 1_000
FAULT = re.compile(r"([A-Za-z_]\w{0,80}): ")
HTTP = re.compile(r"HTTP (\d{3})")
# Meta's code for a closed window, as it appears in its messages.
WINDOW = "(#131047)"


def turns_of(kind: str) -> QuerySet[Turn]:
    """Return the turns of a kind, newest first; those of all kinds for an empty one."""
    if kind == STUCK:
        which = _stuck(timezone.now())
    elif kind:
        which = Q(state=kind)
    else:
        # By their keys: this way each half uses its own index.
        stuck = Turn.objects.filter(_stuck(timezone.now())).order_by().values_list("pk", flat=True)
        which = Q(state__in=ENDED) | Q(pk__in=list(stuck[:MAX_COUNTED]))
    found = Turn.objects.filter(which).select_related("chat").order_by("-id")
    return found.defer("unstored_text", "unstored_reply")


def _stuck(now: datetime) -> Q:
    """Match turns that began or waited long ago and aren't postponed."""
    old = now - STUCK_AFTER
    put_off = Q(not_before__isnull=True) | Q(not_before__lt=old)
    waits = Q(state__in=WAITING_STATES) | Q(state=TurnState.SENDING)
    return waits & Q(created_at__lt=old) & put_off


def counts() -> dict[str, int]:
    """Return the number of turns of each kind, up to MAX_COUNTED."""
    return {kind: turns_of(kind)[:MAX_COUNTED].count() for kind in TURN_KINDS}


def dead_turn(turn: Turn) -> dict[str, Any]:
    """Return an undelivered reply with its kind of TURN_KINDS, and whether a worker has it now."""
    ended = turn.state in ENDED
    return {
        "turn": turn,
        "kind": turn.state if ended else STUCK,
        "reason": reason_of(turn),
        "held": not ended and turn.is_held(timezone.now()),
    }


def by_chat(turns: list[dict[str, Any]]) -> list[tuple[Chat, list[dict[str, Any]]]]:
    """Group one page's turns by chat. The chat of the newest turn comes first."""
    found: dict[UUID, list[dict[str, Any]]] = {}
    for each in turns:
        found.setdefault(each["turn"].chat_id, []).append(each)
    return [(group[0]["turn"].chat, group) for group in found.values()]


REASONS = {
    TurnState.MISSED: gettext_lazy(
        "The message was past WhatsApp's 24 hours before it could be answered."
    ),
    TurnState.UNCONFIRMED: gettext_lazy(
        "The connection broke while the answer was being sent: it may have arrived."
    ),
    TurnState.SENDING: gettext_lazy("It is not known yet whether the answer went out."),
    TurnState.REPLIED: gettext_lazy("The answer is stored and waits to be sent."),
    TurnState.PENDING: gettext_lazy("No worker has taken it up."),
    TurnState.RUNNING: gettext_lazy("A worker began with it and has not ended."),
}


def reason_of(turn: Turn) -> str:
    """Return the reason, without any text of the conversation."""
    if turn.error and turn.state not in (TurnState.MISSED, TurnState.UNCONFIRMED):
        return error_words(turn.error)
    return str(REASONS[TurnState(turn.state)]) if turn.state in REASONS else words_for("")


def error_words(error: str) -> str:
    """Return a turn's error: the provider's HTTP status in words, or the kind of fault."""
    status = HTTP.match(error)
    if WINDOW in error:
        return _("The person has not written for more than 24 hours: WhatsApp allows no answer.")
    if status and status[1] in ("401", "403"):
        text = _("The provider did not accept our credentials (HTTP %(status)s).")
        return text % {"status": status[1]}
    if status:
        return _("The provider refused the answer (HTTP %(status)s).") % {"status": status[1]}
    if error.startswith("the provider can't be reached"):
        return _("The provider could not be reached.")
    if error.startswith("The disk is full"):
        return _("The disk is full.")
    fault = FAULT.match(error)
    return words_for(fault[1]) if fault else _("The answer could not be sent.")
