"""Put jobs into django-q2's queue.

A job is a hint, and may be lost: what is due is in tables of its own, where the sweep of each
minute finds it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django_q.tasks import async_task


def enqueue(function: str, *args: Any, task_name: str, **options: Any) -> None:
    """Put a job into the queue, where it is seen once the open transaction is committed.

    ``function`` is a dotted name, ``options`` are django-q2's. Jobs in the database are written in
    the transaction itself: one commit writes all to the disk. Redis gets them after the commit.
    """
    put = partial(async_task, function, *args, task_name=task_name, **options)
    if settings.Q_BROKER:
        transaction.on_commit(put)
    else:
        put()
