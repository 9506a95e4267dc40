"""Kill processes of one installation at random, until told to stop."""

from __future__ import annotations

import random
import threading
from collections import Counter
from contextlib import suppress

import psutil

from memoryproject.foundation.embedded_postgres.places import Places, postmaster_of
from tests.processes.installation import Installation, family

# A backend is killed less often: PostgreSQL then ends all connections and recovers.
WEIGHTS = {"web": 1.0, "answer": 0.5, "qcluster": 0.5, "postgres": 0.15}


class Killer(threading.Thread):
    """Sends SIGKILL to a random process of a program, or to a PostgreSQL backend."""

    def __init__(
        self,
        installation: Installation,
        root: psutil.Process,
        *,
        every: float,
        chance: random.Random,
    ) -> None:
        super().__init__(daemon=True)
        self._installation = installation
        self._root = root
        self._every = every
        self._chance = chance
        self._over = threading.Event()
        self.kills: Counter[str] = Counter()

    def run(self) -> None:
        while not self._over.wait(self._chance.expovariate(1 / self._every)):
            self._kill_one()

    def end(self) -> None:
        self._over.set()
        self.join()

    def _kill_one(self) -> None:
        found = self._victims()
        if not found:
            return
        kinds = sorted(found)
        (kind,) = self._chance.choices(kinds, [WEIGHTS[kind] for kind in kinds])
        try:
            self._chance.choice(found[kind]).kill()
        except psutil.NoSuchProcess:
            return
        self.kills[kind] += 1

    def _victims(self) -> dict[str, list[psutil.Process]]:
        found: dict[str, list[psutil.Process]] = {}
        # The launcher, supervisor, and then the programs with their processes.
        for program in [each for manager in self._root.children() for each in manager.children()]:
            with suppress(psutil.Error):
                found.setdefault(_kind(program), []).extend(family(program))
        postmaster = postmaster_of(Places(self._installation.data_dir))
        if postmaster is not None:
            backends = [each for each in family(postmaster)[1:] if _is_backend(each)]
            if backends:
                found["postgres"] = backends
        return found


def _kind(program: psutil.Process) -> str:
    words = " ".join(program.cmdline())
    return next((name for name in ("answer", "qcluster") if name in words), "web")


def _is_backend(process: psutil.Process) -> bool:
    """Whether it serves a client: its title names the database and where the client is."""
    try:
        return "[local]" in " ".join(process.cmdline())
    except psutil.Error:
        return False
