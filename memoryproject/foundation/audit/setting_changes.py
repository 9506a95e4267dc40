"""Record when settings change from one start to the next: their names, never their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import connection, transaction

from memoryproject.foundation.audit.audit_events import SYSTEM, audit_record
from memoryproject.foundation.audit.audit_logfile import sign
from memoryproject.foundation.audit.models import AuditSetting

# An advisory lock number that nothing else uses.
_LOCK = 0xA0D1782

# All settings of the product except those below.
TRACKED_SETTINGS = (
    "ALERT_EMAILS",
    "ALERT_FROM",
    "ALERT_WEBHOOK_URL",
    "ALLOWED_HOSTS",
    "ALLOW_LIST_ONLY",
    "ANSWER_DEADLINE_SECONDS",
    "API_RATE_BULK",
    "API_RATE_CHAT",
    "API_RATE_FORGET",
    "API_RATE_READ",
    "API_RATE_WRITE",
    "BACKUP_KEY",
    "BUSINESS_TIME_ZONE",
    "CARDS_IN_PROMPT",
    "CHAT_MEMORY_STRATEGY",
    "CHAT_MODEL",
    "CLIENTS_DAILY_BUDGET",
    "CLIENT_MAX_TOKENS",
    "CLIENT_MESSAGES_PER_HOUR",
    "CLIENT_MODEL_CALLS_PER_DAY",
    "CLIENT_TOKENS_PER_DAY",
    "COMPARISON_MODELS",
    "DATABASE_URL",
    "DEBUG",
    "DELETE_SUMMARIZED_MESSAGES",
    "DOCUMENT_MAX_MB",
    "DOCUMENT_MAX_PAGES",
    "EMAIL_URL",
    "EMBEDDER",
    "EMBEDDING_MODEL",
    "EMBEDDING_PASSAGE_PREFIX",
    "EMBEDDING_QUERY_PREFIX",
    "ENABLE_MEMORY_SYSTEM",
    "EXPIRED_RETENTION_DAYS",
    "EXTRACTION_MIN_CONFIDENCE",
    "EXTRACT_MEMORIES",
    "GODFATHER_MAX_TOKENS",
    "GODFATHER_PHONE",
    "GREEN_API_ID_INSTANCE",
    "GREEN_API_TOKEN",
    "GREEN_API_URL",
    "GREEN_API_WEBHOOK_TOKEN",
    "GROUP_POLICY",
    "HISTORY_MAX_MESSAGES",
    "HTTPS_ONLY",
    "LOGIN_FAILURES",
    "LOGIN_LOCK_MINUTES",
    "LOG_DIR",
    "LONGTERM_ENABLED",
    "MAX_ANSWER_AGE_HOURS",
    "MAX_CONTEXT_TOKENS",
    "MAX_REPLY_TOKENS",
    "MEDIA_MAX_MB",
    "MEDIA_MAX_MB_PER_CHAT",
    "MEDIA_MAX_MB_TOTAL",
    "MEDIA_RETENTION_DAYS",
    "MEDIA_S3_ACCESS_KEY_ID",
    "MEDIA_S3_ENDPOINT_URL",
    "MEDIA_S3_REGION",
    "MEDIA_S3_SECRET_ACCESS_KEY",
    "MEDIA_STORAGE",
    "MEMORY_DOCUMENTS_CONTEXT_DAYS",
    "MODEL_CURRENCY",
    "MODEL_PRICES",
    "MODEL_SEES_PICTURES",
    "MODEL_TIMEOUT_SECONDS",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_MODEL",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_SDK_DISABLED",
    "OTEL_SERVICE_NAME",
    "Q_BROKER",
    "RAW_RETENTION_DAYS",
    "RECALL_MIN_SIMILARITY",
    "RECALL_TOP_K",
    "SECRET_KEY",
    "SESSION_TIMEOUT_HOURS",
    "STAFF_SESSION_MINUTES",
    "STAFF_TWO_FACTOR",
    "START_WORDS",
    "STOP_WORDS",
    "SUMMARIZATION_SKILL",
    "SUMMARIZE_EVERY_N",
    "TRANSCRIPTION_MODEL",
    "TRANSCRIPT_BACKUP_DAYS",
    "TRUSTED_PROXIES",
    "TURN_DEBOUNCE_SECONDS",
    "UNCONFIRMED_AFTER_MINUTES",
    "WEBHOOKS_ALLOW_HTTP",
    "WEBHOOKS_DISABLE_AFTER_DAYS",
    "WEBHOOKS_LOG_DAYS",
    "WEBHOOKS_PRIVATE_NETWORKS",
    "WHATSAPP_CLOUD_ACCESS_TOKEN",
    "WHATSAPP_CLOUD_API_URL",
    "WHATSAPP_CLOUD_APP_SECRET",
    "WHATSAPP_CLOUD_PHONE_NUMBER_ID",
    "WHATSAPP_CLOUD_VERIFY_TOKEN",
    "WHATSAPP_PROVIDER",
)
# AUDIT_KEY is detected separately: see settings_note. ADMIN_PASSWORD is used once, by ensure_admin.
# A port and the log's form don't affect anybody's data; MEMORY_CONFIG's values are in the others.
UNTRACKED_SETTINGS = (
    "ADMIN_PASSWORD",
    "AUDIT_KEY",
    "DATA_DIR",
    "LOG_FORMAT",
    "MEMORY_CONFIG",
    "PORT",
)
KEY_ITSELF = "AUDIT_KEY"


def tracked_values(settings: Any) -> dict[str, str]:
    """Return the tracked settings as texts, in a stable form; sets are sorted."""
    return {name: _form(getattr(settings, name)) for name in TRACKED_SETTINGS}


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
