"""Answer the messages that wait."""

import logging
import signal
import sys
import threading
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.utils import timezone

from memoryproject.checks import SETTINGS
from memoryproject.foundation.audit.tasks import note_settings
from memoryproject.foundation.commands import DeclaredCommand, option
from sessions_app import schedules, tasks
from sessions_app.turns.dependencies import build_answerer

logger = logging.getLogger(__name__)

# Threads wait for the database many times. After each statement a thread waits until another one
# gives up the interpreter, by default for 5 ms.
SWITCH_SECONDS = 0.0005


class Command(DeclaredCommand):
    # Checking all would load the staff's pages and the API.
    requires_system_checks = (SETTINGS,)

    arguments = [option("--threads", type=int)]

    def handle(self, *args: Any, **options: Any) -> None:
        threads = options["threads"]
        if threads is None:
            threads = settings.ANSWER_THREADS
        if threads < 1:
            raise CommandError("--threads must be at least 1.")
        sys.setswitchinterval(SWITCH_SECONDS)
        answerer = build_answerer(threads=threads, tend=tend)

        def stop(_number: int, _frame: FrameType | None) -> None:
            answerer.stop()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        threading.Thread(target=record_settings, daemon=True).start()
        answerer.run()


def tend() -> None:
    """Take up what dead programs left, and what a clock that was set back would delay."""
    schedules.future_times_repair(timezone.now())
    tasks.sweep_turns()


def record_settings() -> None:
    """Record changed settings. This program starts with every server."""
    try:
        note_settings()
    except Exception:
        logger.exception("Whether settings changed could not be recorded.")
