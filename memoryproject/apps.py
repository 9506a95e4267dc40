"""The project itself as an app: its checks and commands."""

from __future__ import annotations

import logging

from django.apps import AppConfig
from django.conf import settings

logger = logging.getLogger(__name__)


class MemoryProjectConfig(AppConfig):
    name = "memoryproject"

    def ready(self) -> None:
        from memoryproject import checks  # noqa: F401, PLC0415 registers the checks
        from memoryproject.foundation.process.queues import use_recovering_queues  # noqa: PLC0415 needs the apps

        use_recovering_queues()
        for note in settings.CONFIG_NOTES:
            logger.log(logging.getLevelName(note.level), "%s", note.text)
