"""What others may want to know of conversations."""

from __future__ import annotations

from django.dispatch import Signal

# Sent once for each session, after the commit that ended it. Argument: session_id (UUID).
# A receiver that fails is logged and harms nothing; it must be quick, or enqueue its work.
session_expired = Signal()

# Sent within the transaction that finds that two chats belong to one person. Arguments: one, other
# (Chat). The one receiver merges them and returns the chat that stays.
one_person_found = Signal()

# Sent after the commit that made the cards of sessions due: they are new, or to be made again.
# Argument: session_ids (a list of UUIDs). What nobody makes then, a sweep finds.
cards_due = Signal()
