"""Functions of the inbox for pages and REST resources of other packages."""

from sessions_app.inbox.filters_page import ACCESSES, FILTER_PAGES, MAX_QUERY_LENGTH
from sessions_app.inbox.inbox import CHOICES as SNOOZE_CHOICES
from sessions_app.inbox.inbox import (
    Hit,
    chosen_chats,
    inbox_fragment,
    inbox_page,
    inbox_pane,
    staff_choices,
)
from sessions_app.inbox.inbox_list import attention_shown, inbox_csv
from sessions_app.inbox.notes import NoteForm
from sessions_app.inbox.review_actions import REVIEW_PAGES
