"""Background jobs of the audit log: its verification, and the changes of settings at each start."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from memoryproject.foundation.audit import chain, findings
from memoryproject.foundation.audit.audit_events import (
    SYSTEM,
    Actor,
    audit_key,
    audit_record,
    log_path,
)
from memoryproject.foundation.audit.audit_logfile import sign
from memoryproject.foundation.audit.models import (
    AuditCheckpoint,
    AuditHead,
    AuditSetting,
    AuditVerification,
)
from memoryproject.foundation.audit.verify import audit_verify
from memoryproject.foundation.leases import transaction_lock
from memoryproject.foundation.process.jobs import enqueue

logger = logging.getLogger(__name__)


def seal() -> int:
    """Seal the waiting events."""
    return _log_errors(lambda: chain.audit_seal(key=audit_key(), log_path=log_path()))


def prune() -> int:
    """Delete events older than AUDIT_RETENTION_DAYS."""
    return _log_errors(
        lambda: chain.audit_prune(
            key=audit_key(),
            log_path=log_path(),
            now=timezone.now(),
            keep=timedelta(days=chain.AUDIT_RETENTION_DAYS),
        )
    )


def verify(verification_id: int) -> None:
    """Verify the log at the request of staff, and store the result."""
    verification_run(
        verification_id=verification_id, key=audit_key(), log_path=log_path(), now=timezone.now
    )


def _log_errors(work: Callable[[], int]) -> int:
    """Run the work and log its errors. Events are kept and retried, and somebody must act."""
    try:
        return work()
    except chain.ChainError as error:
        logger.critical("%s", error)
    except OSError as error:
        logger.critical("The audit log file can't be written: %s. Its events wait.", error)
    return 0


# Changes of settings from one start to the next: their names, never their values.

# Advisory lock numbers that nothing else uses.
_SETTINGS_LOCK, _VERIFICATION_LOCK = 0xA0D1782, 0xA0D1783

# Its value is in no fingerprint: see settings_note.
KEY_ITSELF = "AUDIT_KEY"


def note_settings() -> list[str]:
    """Record the settings that changed since the last start."""
    return settings_note(key=audit_key(), values=tracked_values(settings))


def tracked_values(settings: Any) -> dict[str, str]:
    """Return the audited settings as texts, in a stable form; sets are sorted.

    Those that are stored were recorded when somebody changed them.
    """
    names = sorted(
        name
        for name, setting in settings.OWN_SETTINGS.items()
        if setting.audited and settings.CONFIG_ORIGINS[name] != "stored"
    )
    return {name: _form(getattr(settings, name)) for name in names}


def _form(value: object) -> str:
    return repr(sorted(value)) if isinstance(value, frozenset) else repr(value)


def settings_note(*, key: str, values: Mapping[str, str]) -> list[str]:
    """Compare the settings with the last noted ones, record changes, and return the changed names.

    All changes are one event; then the settings are noted. The very first time nothing has changed.

    Processes that start together note a change once. Under another key nothing can be compared:
    then AUDIT_KEY is the changed setting.
    """
    current = {name: sign(key, "setting", name, value) for name, value in values.items()}
    current[KEY_ITSELF] = sign(key, "setting", KEY_ITSELF)
    with transaction.atomic():
        if _noted() == current:
            return []
        transaction_lock(_SETTINGS_LOCK)
        noted = _noted()
        names = _changed(noted, current)
        if names or not noted:
            details: dict[str, Any] = {"names": names} if noted else {"first_start": True}
            audit_record("setting.change", SYSTEM, "settings", **details)
        _note(current)
    return names


def _noted() -> dict[str, str]:
    return dict(AuditSetting.objects.values_list("name", "fingerprint"))


def _changed(noted: Mapping[str, str], current: Mapping[str, str]) -> list[str]:
    """Return the names that were noted with another value. A new setting is no change."""
    if noted.get(KEY_ITSELF, current[KEY_ITSELF]) != current[KEY_ITSELF]:
        return [KEY_ITSELF]
    return [name for name in sorted(current) if noted.get(name, current[name]) != current[name]]


def _note(current: Mapping[str, str]) -> None:
    AuditSetting.objects.exclude(name__in=current).delete()
    AuditSetting.objects.bulk_create(
        [AuditSetting(name=name, fingerprint=mac) for name, mac in current.items()],
        update_conflicts=True,
        unique_fields=["name"],
        update_fields=["fingerprint"],
    )


# Verify the log in the background, show progress, and store the result.

TASK = "memoryproject.foundation.audit.tasks.verify"
State = AuditVerification.State
OPEN = (State.WAITING, State.RUNNING)
# A worker without a sign of life for so long is dead.
SILENT = timedelta(minutes=3)
PROGRESS_EVERY_SECONDS = 1.0
KEPT = 50


def chain_state(now: datetime) -> dict[str, Any]:
    """Return the chain's state for the pages, without counting the table.

    ``last``: the last finished verification; ``open``: the one in progress. ``sealed`` counts the
    sealed events that still exist, ``waiting`` counts the others.
    """
    head = AuditHead.objects.filter(pk=1).first()
    pruned = AuditCheckpoint.objects.order_by("-number").first()
    return {
        "last": AuditVerification.objects.filter(state=State.DONE).first(),
        "open": _under_way(now),
        "sealed": (head.seq if head else 0) - (pruned.seq if pruned else 0),
        "waiting": chain.waiting().count(),
    }


def _under_way(now: datetime) -> AuditVerification | None:
    return AuditVerification.objects.filter(state__in=OPEN, touched_at__gt=now - SILENT).first()


def verification_ask(*, asked_by: str, now: datetime) -> AuditVerification:
    """Enqueue a verification, or return the one that is in progress."""
    with transaction.atomic():
        transaction_lock(_VERIFICATION_LOCK)
        under_way = _under_way(now)
        if under_way is not None:
            return under_way
        AuditVerification.objects.filter(state__in=OPEN).update(state=State.FAILED, ended_at=now)
        verification = AuditVerification.objects.create(
            asked_by=asked_by, asked_at=now, touched_at=now
        )
        old = AuditVerification.objects.order_by("-id").values_list("pk", flat=True)[KEPT:]
        AuditVerification.objects.filter(pk__in=list(old)).delete()
        transaction.on_commit(
            lambda: enqueue(TASK, verification.pk, task_name="verify the audit log", save=False)
        )
    return verification


def verification_run(
    *, verification_id: int, key: str, log_path: Path, now: Callable[[], datetime]
) -> findings.AuditReport | None:
    """Verify the log and store the report. Call it outside of a transaction.

    Returns None if another worker has the verification, or it was given up.
    """
    claimed = AuditVerification.objects.filter(pk=verification_id, state=State.WAITING)
    if not claimed.update(state=State.RUNNING, touched_at=now()):
        return None
    verification = AuditVerification.objects.get(pk=verification_id)
    try:
        with _progress(verification_id, now) as progress:
            report = audit_verify(key=key, log_path=log_path, progress=progress)
    except Exception:
        _end(verification, State.FAILED, now())
        logger.exception("The audit log could not be verified.")
        return None
    with transaction.atomic():
        _end(verification, State.DONE, now(), report=report.as_dict(), checked=report.events)
        audit_record(
            "audit.verify",
            Actor("staff", verification.asked_by),
            "audit log",
            events=report.events,
            found=report.found,
        )
    return report


def verification_note(*, report: findings.AuditReport, now: datetime) -> None:
    """Store the report of the command."""
    AuditVerification.objects.create(
        asked_at=now,
        touched_at=now,
        ended_at=now,
        state=State.DONE,
        checked=report.events,
        total=report.events,
        report=report.as_dict(),
    )


def _end(verification: AuditVerification, state: str, at: datetime, **values: Any) -> None:
    AuditVerification.objects.filter(pk=verification.pk).update(
        state=state, ended_at=at, touched_at=at, **values
    )


@contextmanager
def _progress(pk: int, now: Callable[[], datetime]) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that writes the progress, through a connection of its own.

    The check reads in a transaction in which nothing can be written.
    """
    own: Any = connection.copy()
    due = 0.0

    def write(done: int, total: int) -> None:
        nonlocal due
        if time.monotonic() < due:
            return
        due = time.monotonic() + PROGRESS_EVERY_SECONDS
        with own.cursor() as cursor:
            cursor.execute(
                "UPDATE audit_auditverification SET checked = %s, total = %s, touched_at = %s"
                " WHERE id = %s",
                [done, total, now(), pk],
            )

    try:
        yield write
    finally:
        own.close()
