"""Outgoing webhooks: integrators are told what happens here. See docs/webhooks.md.

Whoever changes something calls ``hooks_raise`` (events.py) in the transaction of the change:
what is rolled back is never told, and what is committed is never lost. A worker sends it.
"""
