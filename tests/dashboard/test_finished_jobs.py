"""Of the jobs that are done, only the newest are kept."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone
from django_q.models import Failure, Schedule, Success, Task

from memoryproject.foundation.process.tasks import finished_jobs_drop
from sessions_app.schedules import PLANNED, schedules_install

pytestmark = pytest.mark.django_db


def job(minutes_ago: int, *, success: bool = True) -> str:
    ended = timezone.now() - timedelta(minutes=minutes_ago)
    made = Task.objects.create(
        id=uuid.uuid4().hex,
        name=f"job {minutes_ago}",
        func="sessions_app.tasks.answer_chat",
        started=ended - timedelta(seconds=1),
        stopped=ended,
        success=success,
    )
    return str(made.pk)


def test_the_newest_and_the_last_of_each_schedule_and_all_failures_stay() -> None:
    jobs = [job(minutes) for minutes in range(1, 11)]
    failed = job(60, success=False)
    daily = job(24 * 60)
    schedules_install()
    Schedule.objects.filter(name=PLANNED[0].name).update(task=daily)

    assert finished_jobs_drop(keep=4) == 6
    assert set(Success.objects.values_list("pk", flat=True)) == {*jobs[:4], daily}
    assert Failure.objects.get().pk == failed
    assert finished_jobs_drop(keep=4) == 0


@pytest.mark.parametrize("count", [0, 4])
def test_nothing_goes_until_there_are_more(count: int) -> None:
    for minutes in range(count):
        job(minutes)
    assert finished_jobs_drop(keep=4) == 0
    assert Success.objects.count() == count


def test_a_schedule_drops_them() -> None:
    planned = {each.task for each in PLANNED}
    assert "memoryproject.foundation.process.tasks.drop_finished_jobs" in planned
