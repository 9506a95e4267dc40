"""Label the database's tables for staff who read how many rows were swept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.apps import apps
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memoryproject.foundation.errors.stored_errors import ErrorText, translate_error
from sessions_app.forgetting.execute import BACKUP, BACKUP_FILES
from sessions_app.forgetting.probe import ABSENT
from sessions_app.models.receipts import MEDIA_FILES

# Labels for models whose own names say too little.
WORDS = {
    "memories_app_memory": gettext_lazy("Memories"),
    "memories_app_memoryembedding": gettext_lazy("Vectors of memories"),
    "memories_app_memoryrevision": gettext_lazy("Earlier wordings of memories"),
    "memories_app_memorytelling": gettext_lazy("Records of who mentioned a memory"),
    "memories_app_mergeproposal": gettext_lazy("Proposals to merge memories"),
    "memories_app_proposalmemory": gettext_lazy("Parts of proposals to merge"),
    "memories_app_sourcedocument": gettext_lazy("Documents"),
    "cards_app_memorycard": gettext_lazy("Memory cards"),
    "sessions_app_note": gettext_lazy("Notes of staff, deleted or cut"),
    "sessions_app_cardwork": gettext_lazy("Cards that were to be made"),
    "sessions_app_chat": gettext_lazy("Chats"),
    "sessions_app_chataddress": gettext_lazy("Addresses"),
    "sessions_app_chatsession": gettext_lazy("Sessions"),
    "sessions_app_message": gettext_lazy("Messages, deleted or cut"),
    "sessions_app_messageembedding": gettext_lazy("Vectors of messages"),
    "sessions_app_turn": gettext_lazy("Replays of answers, deleted or cleaned"),
    "sessions_app_answertrial": gettext_lazy("Trials of answers"),
    "sessions_app_outboundpart": gettext_lazy("Parts of answers on their way"),
    "sessions_app_inbounddelivery": gettext_lazy("Raw deliveries, emptied"),
    "sessions_app_summarizationmetadata": gettext_lazy("Summaries, taken back"),
    "sessions_app_summarywork": gettext_lazy("Summaries that were to be made"),
    "sessions_app_extractionwork": gettext_lazy("Notes of learning"),
    "sessions_app_transcriptbatch": gettext_lazy("Records of saved transcripts"),
    "api_idempotentanswer": gettext_lazy("Kept answers of the API"),
    "hooks_webhookdelivery": gettext_lazy("Notices to integrators"),
    "django_q_task": gettext_lazy("Results of background work"),
    "django_q_ormq": gettext_lazy("Jobs in the queue"),
    "django_admin_log": gettext_lazy("Entries of the admin's own log"),
    "django_session": gettext_lazy("Notices that waited in logins"),
    BACKUP_FILES: gettext_lazy("Files of transcripts' backups"),
    MEDIA_FILES: gettext_lazy("Files of messages"),
}

# Labels of what is still there; those of rows are in the catalogue of errors.
LEFT = {
    "statistics": gettext_lazy("Values that PostgreSQL keeps for its statistics"),
    BACKUP: gettext_lazy("Backup of transcripts"),
    MEDIA_FILES: gettext_lazy("Files of messages"),
}
# What staff do about it.
FINISH = {
    "statistics": gettext_lazy("Have the owner of the table run ANALYZE on it."),
    MEDIA_FILES: gettext_lazy("They go by themselves once their storage answers."),
    BACKUP: gettext_lazy("Delete this folder in the folder of transcripts' backups."),
}
FINISH_ROW = gettext_lazy("Open it in the admin and erase it there.")

# Labels of the probe's steps.
LOOKS = {
    "columns": gettext_lazy("Columns that may hold the text, read through"),
    "recall": gettext_lazy("Recall, as staff and as each chat"),
    "staff search": gettext_lazy("The search of staff"),
    "statistics": gettext_lazy("Values that PostgreSQL keeps for its statistics"),
}


def table_words(table: str) -> str:
    """Return a table's label."""
    if table in WORDS:
        return str(WORDS[table])
    for model in apps.get_models(include_auto_created=True):
        if model._meta.db_table == table:
            return str(capfirst(model._meta.verbose_name_plural))
    return table


def swept_words(swept: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the labels of the swept tables with their rows, the most important first."""
    places = {table: place for place, table in enumerate(WORDS)}
    tables = sorted(swept, key=lambda table: (places.get(table, len(places)), table))
    return [(table_words(table), swept[table]) for table in tables if swept[table]]


def probe_words(probe: str) -> str:
    """Return the label of the probe's result."""
    if probe == ABSENT:
        return _("Searched afterwards, not found.")
    return _("Searched afterwards: something is still there, see below.")


def row_kind(what: str) -> str:
    """Return the code of a kind of row in the catalogue of errors."""
    return f"kind_{what.replace(' ', '_')}"


def left_words(left: Iterable[Mapping[str, str]]) -> list[tuple[str, str, str]]:
    """Return what is still there, its id, and what staff do about it."""
    return [
        (
            str(LEFT.get(each["what"]) or translate_error(ErrorText(row_kind(each["what"])))),
            each["id"],
            str(FINISH.get(each["what"], FINISH_ROW)),
        )
        for each in left
    ]


def looks_words(details: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, int, int]]:
    """Return the labels of the probe's steps, each with its queries and the rows examined."""
    return [
        (str(LOOKS.get(name, name)), look["queries"], look["rows"])
        for name, look in details.items()
    ]


def looked_at(details: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the columns, indexes and statistics that the probe checked."""
    return sorted({name for look in details.values() for name in look["looked_at"]})


def actor_short(kind: str, name: str) -> str:
    """Return the label of an actor for lists: people in it have no pseudonym."""
    return _("the person") if kind == "person" else actor_words(kind, name)


def actor_words(kind: str, name: str) -> str:
    """Return the label of an actor."""
    words = {
        "staff": _("staff: {name}"),
        "api": _("by the API, with the token {name}"),
        "person": _("the person in the chat, under the pseudonym {name}"),
        "command": _("somebody at the server's command line"),
        "system": _("the server by itself"),
    }
    return words.get(kind, "{name}").format(name=name)
