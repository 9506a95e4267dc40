"""Build from the settings what moving in and out depends on."""

from __future__ import annotations

from functools import partial

from django.conf import settings
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.integrations.embedders.base import Embedder
from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.media.dependencies import build_media_dependencies
from sessions_app.moving.kinds import READERS, kind_check
from sessions_app.moving.records import Options
from sessions_app.moving.sources import Source
from sessions_app.moving.store_records import MoveIn, Report


def move_in(
    kind: str, source: Source, options: Options, *, actor: Actor, embedder: Embedder | None,
    preview: bool, all_or_nothing: bool = False,
) -> Report:  # fmt: skip
    """Bring in a source, or show what it would bring. Raises as MoveIn.run."""
    kind_check(kind, source)
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
