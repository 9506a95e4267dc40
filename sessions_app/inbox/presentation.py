"""What pages and REST resources of other packages use of those of the inbox."""

from sessions_app.inbox.admin.inbox import (
    Hit,
    chosen_chats,
    inbox_fragment,
    inbox_page,
    staff_choices,
)
from sessions_app.inbox.admin.inbox_filters import MAX_QUERY_LENGTH
from sessions_app.inbox.admin.note_form import NoteForm
from sessions_app.inbox.admin.review_actions import review_urls

__all__ = [
    "Hit",
    "MAX_QUERY_LENGTH",
    "NoteForm",
    "chosen_chats",
    "inbox_fragment",
    "inbox_page",
    "review_urls",
    "staff_choices",
]
