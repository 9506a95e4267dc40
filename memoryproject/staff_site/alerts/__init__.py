"""Alerts: tell the operator once when something needs attention, and once when it is over."""
