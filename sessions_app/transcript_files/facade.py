"""Public face of transcript files: what other packages may use."""

from sessions_app.transcript_files.backups import (
    BackupError,
    Backups,
    UntouchedBackups,
    backup_name,
)
from sessions_app.transcript_files.batch_names import batch_name
from sessions_app.transcript_files.check import (
    WHITE_SPACE,
    BatchFile,
    ChangedError,
    Check,
    Progress,
    folder_check,
    messages_again,
    no_progress,
)
from sessions_app.transcript_files.continuity import (
    Kind,
    Signs,
    Standing,
    batch_position,
    holds_different_exchanges,
    repeated_end,
    standing_as_given,
)
from sessions_app.transcript_files.errors import (
    BusyError,
    FaultError,
    FolderError,
    RefusedError,
    TranscriptsError,
)
from sessions_app.transcript_files.exchanges import (
    REASONS,
    TOO_LARGE,
    UNANSWERED,
    Exchange,
    LeftOut,
    Row,
    exchanges,
)
from sessions_app.transcript_files.parse_transcript import MAX_FILE_SIZE
from sessions_app.transcript_files.problems import Problem
from sessions_app.transcript_files.transcript_folder import NO_NUMBER, BatchFolder
from sessions_app.transcript_files.transcript_text import (
    ASSISTANT,
    USER,
    TranscriptMessage,
    message_text,
)

__all__ = [
    "ASSISTANT",
    "BackupError",
    "Backups",
    "BatchFile",
    "BatchFolder",
    "BusyError",
    "ChangedError",
    "Check",
    "Exchange",
    "FaultError",
    "FolderError",
    "Kind",
    "LeftOut",
    "MAX_FILE_SIZE",
    "NO_NUMBER",
    "Problem",
    "Progress",
    "REASONS",
    "RefusedError",
    "Row",
    "Signs",
    "Standing",
    "TOO_LARGE",
    "TranscriptMessage",
    "TranscriptsError",
    "UNANSWERED",
    "USER",
    "UntouchedBackups",
    "WHITE_SPACE",
    "backup_name",
    "batch_name",
    "exchanges",
    "folder_check",
    "holds_different_exchanges",
    "message_text",
    "messages_again",
    "no_progress",
    "repeated_end",
    "batch_position",
    "standing_as_given",
]
