"""Public face of media: what other packages may use."""

from sessions_app.media.fetch import MediaDependencies, media_abandoned, media_fetch
from sessions_app.media.media_store import (
    media_detach,
    media_drop,
    media_row_create,
    ordered_files_remove,
    strays_remove,
)

__all__ = [
    "MediaDependencies",
    "media_abandoned",
    "media_detach",
    "media_drop",
    "media_fetch",
    "media_row_create",
    "ordered_files_remove",
    "strays_remove",
]
