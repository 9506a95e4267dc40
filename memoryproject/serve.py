"""The program `server` of `make run`: web servers and workers, forked from one process.

What that process has loaded is in memory once for all of them, and loaded once. In a deployment
they are programs of their own: see docs/deploy.md.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from gunicorn.app.wsgiapp import WSGIApplication
from gunicorn.arbiter import Arbiter

from memoryproject.foundation.process.forked_programs import ForkedPrograms
from memoryproject.programs import (
    WEB_PROCESSES,
    WEB_THREADS,
    WEBHOOK_PROCESSES,
    WEBHOOK_THREADS,
    Application,
    PeerAddress,
    gunicorn_options,
)

# Answers take seconds anyway; a webhook is to be taken in some milliseconds.
NICENESS = 10


class ForkedArbiter(Arbiter):  # type: ignore[misc]
    """gunicorn's first process, which ends with its parent."""

    def __init__(self, app: ForkedServer, parent: int) -> None:
        super().__init__(app)
        self._parent = parent

    def murder_workers(self) -> None:
        """Look after the others. gunicorn calls this once a second."""
        if os.getppid() != self._parent:
            # At once: an orderly end would remove the sockets, which may be those of another run by
            # now. gunicorn's other processes end with this one, after their requests.
            os._exit(1)
        super().murder_workers()


class ForkedServer(WSGIApplication):  # type: ignore[misc]
    """gunicorn with an application that is loaded."""

    def __init__(self, arguments: Sequence[str], loaded: Application) -> None:
        sys.argv = ["gunicorn", *arguments]
        self._loaded = loaded
        super().__init__()

    def load(self) -> Application:
        return self._loaded


def serve(arguments: Sequence[str], loaded: Application, parent: int) -> None:
    ForkedArbiter(ForkedServer(arguments, loaded), parent).run()


def serve_webhooks(arguments: Sequence[str], parent: int) -> None:
    """Serve with the settings that differ for webhooks; they are read when Django's is made."""
    from memoryproject import webhook_settings  # noqa: PLC0415 not those of the others

    settings.ROOT_URLCONF = webhook_settings.ROOT_URLCONF
    settings.MIDDLEWARE = webhook_settings.MIDDLEWARE
    serve(arguments, PeerAddress(get_wsgi_application()), parent)


def lead_workers(parent: int) -> None:
    from memoryproject.foundation.process.lane_processes import lead  # noqa: PLC0415 needs the apps
    from memoryproject.foundation.process.lanes import LANES  # noqa: PLC0415 needs the apps

    os.nice(NICENESS)
    lead(LANES, parent)


def load() -> Application:
    """Load everything, and return the application of the web server."""
    from memoryproject.wsgi import application  # noqa: PLC0415 prepares Django

    _load_for_workers()
    return application


def _load_for_workers() -> None:
    from memoryproject.preloading import preload_workers, prepare_fork  # noqa: PLC0415 needs the apps

    preload_workers()
    prepare_fork()


def main(webhooks_address: str, web_address: str, worker_folder: str) -> None:
    """Run all until SIGTERM. ``worker_folder``: see gunicorn_options."""
    webhooks = gunicorn_options(
        "webhooks",
        webhooks_address,
        WEBHOOK_PROCESSES,
        WEBHOOK_THREADS,
        worker_folder=worker_folder,
    )
    web = gunicorn_options(
        "web", web_address, WEB_PROCESSES, WEB_THREADS, worker_folder=worker_folder
    )
    ForkedPrograms(
        {
            "webhooks": partial(serve_webhooks, webhooks),
            "web": partial(serve, web, load()),
            "workers": lead_workers,
        }
    ).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
