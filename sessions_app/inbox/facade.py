"""Public face of the inbox: what other packages may use."""

from sessions_app.inbox.labels import bookmark_set, chats_assign, chats_label
from sessions_app.inbox.move_markers import (
    chat_look,
    chats_mark_read,
    chats_review,
    snoozes_in_force,
)
from sessions_app.inbox.notes import note_write
from sessions_app.inbox.read_markers import (
    FROM_PEOPLE,
    MAX_UNREAD,
    SAID,
    later_assignment,
    news_count,
    news_first,
    old_messages_seen,
    place_marked,
    review_move,
)
