"""Public face of merging and splitting contacts: what other packages may use."""

from sessions_app.merging.merge_chats import (
    MergeError,
    MergePreview,
    SeenChangedError,
    chat_merge,
    chats_merge,
    contacts_merge,
    merge_preview,
)
from sessions_app.merging.portion import COUNTED, ContactSide
from sessions_app.merging.split_contact import (
    SplitPreview,
    contact_split,
    merge_undo,
    split_preview,
    undo_preview,
)
