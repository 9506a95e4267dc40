"""What pages and REST resources of other packages use of those of the inbox."""

from sessions_app.inbox.admin.inbox import (
    ACCESSES,
    MAX_QUERY_LENGTH,
    Hit,
    chosen_chats,
    inbox_page,
    staff_choices,
)
from sessions_app.inbox.admin.note_form import NoteForm
from sessions_app.inbox.admin.review_actions import review_urls

__all__ = [
    "ACCESSES",
    "Hit",
    "MAX_QUERY_LENGTH",
    "NoteForm",
    "chosen_chats",
    "inbox_page",
    "review_urls",
    "staff_choices",
]
