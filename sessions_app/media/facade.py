"""Public face of media: what other packages may use."""

from sessions_app.media.fetch import (
    MediaDependencies,
    MediaQuota,
    bytes_used,
    largest_chats,
    media_abandoned,
    media_fetch,
    refused_for_room,
)
from sessions_app.media.media_store import (
    attachment_of,
    attachment_undo,
    media_detach,
    media_drop,
    media_name,
    media_row_create,
    ordered_files_remove,
)
from sessions_app.media.outgoing_types import EXTENSIONS, HEAD, outgoing_type, sent_name, type_of
