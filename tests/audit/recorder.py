"""One of several processes that record events, seal them, or die while sealing.

Run as ``python -m tests.audit.recorder record COUNT NAME…``, which forks a process for each name,
or ``… seal FILE``, which goes on until there is such a file; prints how many it recorded or sealed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import django

from tests.processes.forks import run_at_once


def record(name: str, count: int) -> int:
    from django.db import transaction  # noqa: PLC0415 after django.setup()

    from memoryproject.foundation.audit.audit_events import SYSTEM, audit_record  # noqa: PLC0415

    for number in range(count):
        # Ids are given in another order than commits come in.
        with transaction.atomic():
            audit_record("test.record", SYSTEM, name, number)
    return count


def seal(stop: Path) -> int:
    from memoryproject.foundation.audit.audit_events import audit_key, log_path  # noqa: PLC0415
    from memoryproject.foundation.audit.chain import audit_seal  # noqa: PLC0415

    sealed = 0
    while not stop.exists():
        sealed += audit_seal(key=audit_key(), log_path=log_path(), batch=7)
    return sealed


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryproject.settings")
    django.setup()
    if sys.argv[1] == "record":
        count = int(sys.argv[2])
        print(sum(run_at_once(lambda name: record(name, count), sys.argv[3:])))  # noqa: T201
    else:
        print(seal(Path(sys.argv[2])))  # noqa: T201
