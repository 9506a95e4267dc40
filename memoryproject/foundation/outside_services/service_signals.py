"""The signals of outside services."""

from __future__ import annotations

from django.dispatch import Signal

# Sent once when a service falls sick and once when it has recovered.
# Arguments: service (OutsideService), is_sick (bool).
service_changed = Signal()
