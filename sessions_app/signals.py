"""What others may want to know of conversations."""

from __future__ import annotations

from django.dispatch import Signal

# Sent once for each session, after the commit that ended it. Argument: session_id (UUID).
# A receiver that fails is logged and harms nothing; it must be quick, or enqueue its work.
session_expired = Signal()
