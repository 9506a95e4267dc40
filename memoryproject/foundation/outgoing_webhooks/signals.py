"""Who hands work to the workers is told through this; the room knows no task."""

from __future__ import annotations

from django.dispatch import Signal

# Sent outside of transactions. Argument: endpoint_id (int), which has something to be sent.
# What nobody sends then, a sweep finds.
deliveries_due = Signal()
