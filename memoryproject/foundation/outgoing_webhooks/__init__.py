"""Outgoing webhooks: notify integrators of events. See docs/webhooks.md.

Code that changes something calls ``hooks_raise`` (deliveries.py) in the transaction of the
change. An event that is rolled back is never sent, and a committed event is never lost. A worker
sends it.
"""

from django.dispatch import Signal

# Sent outside of transactions. Argument: endpoint_id (int), an endpoint with due deliveries. This
# package knows no task: receivers queue the work. A sweep finds deliveries that none handles.
deliveries_due = Signal()
