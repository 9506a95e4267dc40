"""Signals of conversations."""

from django.dispatch import Signal

# Sent once for each session, after the commit that ended it. Argument: session_id (UUID).
# A receiver's error is only logged. Receivers must be quick, or queue their work.
session_expired = Signal()

# Sent in the transaction that detects two chats of the same person. Arguments: one, other
# (Chat). The only receiver merges them and returns the chat that stays.
one_person_found = Signal()

# Sent after the commit that stored messages of the assistant, or of somebody of the business.
# Arguments: session_id (UUID), texts (a list of str). A sweep finds what nobody read.
business_wrote = Signal()

# Sent after the commit that made the cards of sessions due, for the first time or again.
# Argument: session_ids (a list of UUIDs). A sweep finds cards that nobody made.
cards_due = Signal()
