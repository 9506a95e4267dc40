"""The kinds of files that can be moved in, each with its reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from django.utils.timezone import get_default_timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from sessions_app.moving.json_readers import (
    read_chatwoot,
    read_honcho,
    read_langgraph,
    read_mem0,
    read_objects,
    read_zep,
    shapes_in,
)
from sessions_app.moving.old_message import ARCHIVE, WHATSAPP
from sessions_app.moving.open_archive import is_archive, read_archive
from sessions_app.moving.records import Found, MoveError, Options
from sessions_app.moving.sources import Source
from sessions_app.moving.whatsapp_export import has_chats, read_whatsapp

Reader = Callable[[Source, Options], Iterator[Found]]

_OF_OBJECTS = {
    "mem0": read_mem0,
    "zep": read_zep,
    "honcho": read_honcho,
    "langgraph": read_langgraph,
    "chatwoot": read_chatwoot,
}
READERS: Mapping[str, Reader] = {
    ARCHIVE: read_archive,
    WHATSAPP: lambda source, options: read_whatsapp(source, options, get_default_timezone()),
    **{kind: partial(read_objects, reader) for kind, reader in _OF_OBJECTS.items()},
}
NAMES = {
    ARCHIVE: _("an archive of this server"),
    WHATSAPP: _("WhatsApp (Export chat)"),
    "mem0": "mem0",
    "zep": "Zep",
    "honcho": "Honcho",
    "langgraph": "LangGraph",
    "chatwoot": "Chatwoot",
}


def kind_check(kind: str, source: Source) -> None:
    """Raise MoveError if the file is none of this kind, with the kind that it looks like."""
    if is_archive(source):
        kinds = {ARCHIVE}
    else:
        kinds = {WHATSAPP} if has_chats(source) else shapes_in(source)
    # An export job of mem0 has whatever fields it was told to have.
    if kind in kinds or kind == "mem0" and not kinds:
        return
    # A file of which nothing can be read looks like each of them, and so like none.
    like = () if kinds == _OF_OBJECTS.keys() else READERS
    likely = next((each for each in like if each in kinds), "")
    hint = ""
    if likely:
        hint = gettext("It looks like %(name)s: use the kind %(kind)s.")
    elif kind == "chatwoot":
        hint = gettext("A report has figures only: take the conversations and messages of its API.")
    text = gettext("Nothing in %(file)s is of the kind %(asked)s.")
    values = {"name": NAMES.get(likely, ""), "kind": likely, "file": source.title, "asked": kind}
    raise MoveError(f"{text} {hint}".strip() % values)
