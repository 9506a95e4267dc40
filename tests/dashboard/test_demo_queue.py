"""The demo's month beside a server that runs."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.utils import timezone
from django_q.models import OrmQ

from memoryproject.foundation.process.jobs import enqueue
from sessions_app.models import Chat
from sessions_app.schedules import future_times_repair

# Some jobs are put into the queue after a commit.
pytestmark = pytest.mark.django_db(transaction=True)


def test_telling_it_leaves_the_queue_alone() -> None:
    enqueue("builtins.abs", 1, task_name="queued")
    call_command("demo_data", "--days=1")
    assert Chat.objects.exists()
    # Jobs of the story would seem to have waited for weeks.
    assert [job.name() for job in OrmQ.objects.all()] == ["queued"]
    # Nor do its schedules look like those of a clock that was set back.
    assert future_times_repair(timezone.now()) == 0
