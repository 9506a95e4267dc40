"""Background jobs of the audit log, and the changes of settings that each start records."""

import logging
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import SYSTEM, audit_key, audit_record, log_path
from memoryproject.foundation.audit.audit_logfile import sign
from memoryproject.foundation.audit.chain import ChainError, audit_seal
from memoryproject.foundation.audit.models import AuditSetting
from memoryproject.foundation.audit.pruning import AUDIT_RETENTION_DAYS, audit_prune
from memoryproject.foundation.audit.verification import verification_run

logger = logging.getLogger(__name__)


def seal() -> int:
    """Seal the waiting events."""
    return _log_errors(lambda: audit_seal(key=audit_key(), log_path=log_path()))


def prune() -> int:
    """Delete events older than AUDIT_RETENTION_DAYS."""
    return _log_errors(
        lambda: audit_prune(
            key=audit_key(),
            log_path=log_path(),
            now=timezone.now(),
            keep=timedelta(days=AUDIT_RETENTION_DAYS),
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
    except ChainError as error:
        logger.critical("%s", error)
    except OSError as error:
        logger.critical("The audit log file can't be written: %s. Its events wait.", error)
    return 0


# Changes of settings from one start to the next: their names, never their values.

# An advisory lock number that nothing else uses.
_LOCK = 0xA0D1782

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
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        noted = _noted()
        names = _changed(noted, current)
        if names or not noted:
            details: dict[str, Any] = {"names": names} if noted else {"first_start": True}
            audit_record(
                action="setting.change", actor=SYSTEM, object_type="settings", details=details
            )
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
