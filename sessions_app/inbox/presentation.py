"""What pages and REST resources of other packages use of those of the inbox."""

from sessions_app.inbox.admin.inbox import (
    LONGEST_QUERY,
    Hit,
    chosen_chats,
    inbox_page,
    staff_choices,
)
from sessions_app.inbox.admin.note_form import NoteForm
from sessions_app.inbox.admin.review import review_urls

__all__ = [
    "Hit",
    "LONGEST_QUERY",
    "NoteForm",
    "chosen_chats",
    "inbox_page",
    "review_urls",
    "staff_choices",
]
