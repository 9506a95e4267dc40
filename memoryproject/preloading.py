"""Load before the fork what the forked processes need.

The processes of a web server, and those of the workers, are forked from one process. What it has
loaded by then is in memory once; what a process loads later, it has for itself. Most of these
modules are imported late, because commands shouldn't wait for them.

Nothing here may send a request or start a thread.
"""

from __future__ import annotations

import gc
from contextlib import suppress
from importlib import import_module

from django.conf import settings
from django.core.cache import DEFAULT_CACHE_ALIAS, caches
from django.db import Error, connections
from django.db.migrations.loader import MigrationLoader
from django.utils import translation
from django_q.models import OrmQ

from memoryproject.foundation.integrations.configured import load_models_early
from memoryproject.foundation.text.tokenizer import stem
from sessions_app.embedding.facade import load_early
from sessions_app.schedules import PLANNED

RECALL = (
    "memoryproject.foundation.retrieval.message_features",
    "psutil",
    "sessions_app.recall.recall_steps",
)
WORK = (
    "memoryproject.foundation.integrations.network.checked_transport",
    "memoryproject.foundation.integrations.network.checked_transport",
    "memoryproject.foundation.outside_services.breaker",
    "phonenumbers",
    "stdnum.iban",
    "stdnum.luhn",
)


def preload_web() -> None:
    """Load what the processes of the web server need, beside their pages."""
    if settings.ROOT_URLCONF == "memoryproject.urls":
        _load(RECALL)
        load_early()
    # For /readyz. None: no connection, so that a server without its database starts, too.
    MigrationLoader(None)
    _load_django()


def preload_workers() -> None:
    """Load what the lanes need: their tasks, recall, the models and the providers."""
    _load(sorted({planned.task.rpartition(".")[0] for planned in PLANNED}))
    _load(RECALL)
    _load(WORK)
    if settings.EXTRACT_MEMORIES:
        _load(["sessions_app.extraction.facts_form"])
    load_early()
    load_models_early()
    _load_django()
    _connect_once()


def prepare_fork() -> None:
    """Call directly before the fork.

    Forked processes must not share a connection. Everything loaded by now stays in memory. Freezing
    it keeps the garbage collector from scanning it again and again, which delayed one request in
    six by 0.2 s, and from copying it in each process.
    """
    connections.close_all()
    gc.collect()
    gc.freeze()


def _connect_once() -> None:
    """Connect and look for a job and a heartbeat, as the processes of the lanes do all the time.

    Much of the memory of a process that only waits is what its first connection and its first
    queries load. Without a database there is nothing to do: the lanes wait for it.
    """
    with suppress(Error):
        OrmQ.objects.first()
        caches[DEFAULT_CACHE_ALIAS].get("memory")


def _load(names: list[str] | tuple[str, ...]) -> None:
    for name in names:
        import_module(name)


def _load_django() -> None:
    """Load what Django loads at its first use, the class of the broker, and a stemmer."""
    _load([settings.Q_CLUSTER["broker_class"].rpartition(".")[0]])
    for language, _ in settings.LANGUAGES:
        with translation.override(language):
            translation.gettext("memory")
    caches[DEFAULT_CACHE_ALIAS]
    stem("delivery")
