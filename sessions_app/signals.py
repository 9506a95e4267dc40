"""What others may want to know of conversations."""

from __future__ import annotations

from django.dispatch import Signal

# Sent once for each session, after the commit that ended it. Argument: session_id (UUID).
# A receiver that fails is logged and harms nothing; it must be quick, or enqueue its work.
session_expired = Signal()

# Sent after the commit that made the cards of sessions due: they are new, or to be made again.
# Argument: session_ids (a list of UUIDs). What nobody makes then, a sweep finds.
cards_due = Signal()
