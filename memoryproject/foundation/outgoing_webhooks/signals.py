"""The signal for due deliveries. This package knows no task; receivers queue the work."""

from __future__ import annotations

from django.dispatch import Signal

# Sent outside of transactions. Argument: endpoint_id (int), an endpoint with due deliveries. A
# sweep finds deliveries that no receiver handles.
deliveries_due = Signal()
