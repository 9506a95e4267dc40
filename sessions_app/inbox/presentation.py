"""Functions of the inbox for pages and REST resources of other packages."""

from sessions_app.inbox.admin.filters_page import ACCESSES, MAX_QUERY_LENGTH, filter_urls
from sessions_app.inbox.admin.inbox import CHOICES as SNOOZE_CHOICES
from sessions_app.inbox.admin.inbox import (
    Hit,
    chosen_chats,
    inbox_page,
    staff_choices,
)
from sessions_app.inbox.admin.inbox_list import attention_shown, inbox_csv
from sessions_app.inbox.admin.inbox_live import inbox_fragment, inbox_pane
from sessions_app.inbox.admin.note_form import NoteForm
from sessions_app.inbox.admin.review_actions import review_urls

__all__ = [
    "ACCESSES",
    "Hit",
    "MAX_QUERY_LENGTH",
    "NoteForm",
    "SNOOZE_CHOICES",
    "attention_shown",
    "chosen_chats",
    "filter_urls",
    "inbox_csv",
    "inbox_fragment",
    "inbox_page",
    "inbox_pane",
    "review_urls",
    "staff_choices",
]
