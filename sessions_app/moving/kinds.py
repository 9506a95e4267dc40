"""The kinds of files that can be moved in, each with its reader, and the move itself."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy as _

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.integrations.embedders.base import Embedder
from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.media.dependencies import build_media_dependencies
from sessions_app.moving.json_readers import OBJECT_READERS, read_objects, shapes_in
from sessions_app.moving.open_archive import is_archive, read_archive
from sessions_app.moving.records import ARCHIVE, WHATSAPP, Found, MoveError, Options
from sessions_app.moving.sources import Source
from sessions_app.moving.store_records import MoveIn, Report
from sessions_app.moving.whatsapp_export import chats_in, read_whatsapp

Reader = Callable[[Source, Options], Iterator[Found]]

READERS: Mapping[str, Reader] = {
    ARCHIVE: read_archive,
    WHATSAPP: read_whatsapp,
    **{kind: partial(read_objects, kind) for kind in OBJECT_READERS},
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


def move_in(
    kind: str,
    source: Source,
    options: Options,
    *,
    actor: Actor,
    embedder: Embedder | None,
    preview: bool,
    all_or_nothing: bool = False,
) -> Report:
    """Bring in a source, or show what it would bring. Raises as MoveIn.run."""
    _kind_check(kind, source)
    return MoveIn(
        kind=kind,
        source=source,
        read=partial(READERS[kind], source, options),
        options=options,
        rules=build_intake_rules(),
        embedder=embedder,
        media=build_media_dependencies() if settings.MEDIA_RETENTION_DAYS else None,
        actor=actor,
        now=timezone.now(),
    ).run(preview=preview, all_or_nothing=all_or_nothing)


def _kind_check(kind: str, source: Source) -> None:
    """Raise MoveError if the file is none of this kind, with the kind that it looks like."""
    if is_archive(source):
        kinds = {ARCHIVE}
    else:
        kinds = {WHATSAPP} if chats_in(source) else shapes_in(source)
    # An export job of mem0 has whatever fields it was told to have.
    if kind in kinds or kind == "mem0" and not kinds:
        return
    # A file of which nothing can be read looks like each of them, and so like none.
    like = () if kinds == OBJECT_READERS.keys() else READERS
    likely = next((each for each in like if each in kinds), "")
    hint = ""
    if likely:
        hint = gettext("It looks like %(name)s: use the kind %(kind)s.")
    elif kind == "chatwoot":
        hint = gettext("A report has figures only: take the conversations and messages of its API.")
    text = gettext("Nothing in %(file)s is of the kind %(asked)s.")
    values = {"name": NAMES.get(likely, ""), "kind": likely, "file": source.title, "asked": kind}
    raise MoveError(f"{text} {hint}".strip() % values)
