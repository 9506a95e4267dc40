"""System checks that stop a start that would fail, and name the setting to correct."""

import errno
import importlib
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.checks import ERROR as ERROR, CheckMessage, Critical, Error, Warning, register
from django.core.exceptions import ValidationError

from memoryproject.folders import FILES
from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.configured import model_server
from memoryproject.foundation.integrations.llm.base import model_tokens
from memoryproject.foundation.integrations.whatsapp.registry import PROVIDERS

logger = logging.getLogger(__name__)

MIN_PYTHON = (3, 10)
MAX_PYTHON = (3, 13)
ENOUGH_SPACE = 1024**3
# The length of an HMAC-SHA-256: a shorter key is easier to guess than what it signs.
MIN_KEY_BYTES = 32
# Names that only a local network resolves.
LOCAL_NAMES = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".test")

# The tag of the checks that every command needs; others check the addresses and the admin, too.
SETTINGS = "settings"


@register(SETTINGS)
def settings_are_valid(**_: Any) -> list[CheckMessage]:
    """Report the environment variables that have a wrong value."""
    return [Error(text, id="memory.E001") for text in settings.CONFIG_ERRORS]


@register(SETTINGS)
def names_are_known(**_: Any) -> list[CheckMessage]:
    """Warn of names that nothing reads, and that were surely meant as settings."""
    hint = ErrorText("setting_unknown_hint", path=FILES / ".env.example")
    return [
        Warning(ErrorText("setting_unknown", name=name, known=known), hint=hint, id="memory.W025")
        for name, known in settings.CONFIG_UNKNOWN.items()
    ]


@register(SETTINGS)
def admin_password_is_strong(**_: Any) -> list[CheckMessage]:
    """Check ADMIN_PASSWORD as other passwords. It may be weak where only this network logs in."""
    try:
        if settings.ADMIN_PASSWORD:
            validate_password(settings.ADMIN_PASSWORD)
    except ValidationError as error:
        text = ErrorText("password_weak", why=" ".join(error.messages))
        is_served = any(map(is_public, settings.ALLOWED_HOSTS))
        kind, number = (Error, "memory.E011") if is_served else (Warning, "memory.W026")
        return [kind(text, hint=ErrorText("password_hint"), id=number)]
    return []


@register(SETTINGS)
def python_is_supported(**_: Any) -> list[CheckMessage]:
    """Check the Python version (DEP-001)."""
    return python_problems(sys.version_info[:2])


def python_problems(version: Sequence[int]) -> list[CheckMessage]:
    """Return the problems of a Python version. ``version``: (major, minor)."""
    shown = ".".join(str(number) for number in version)
    if tuple(version) < MIN_PYTHON:
        text = f"FATAL: Python 3.10 or newer is required; this is Python {shown}."
        return [Critical(text, hint="Install Python 3.10 to 3.13.", id="memory.C001")]
    if tuple(version) > MAX_PYTHON:
        return [Warning(ErrorText("python_untested", version=shown), id="memory.W001")]
    return []


@register(SETTINGS)
def folders_are_usable(**_: Any) -> list[CheckMessage]:
    """Check that the folders can be used (EDGE-007 and DEP-004)."""
    found = folder_problems("DATA_DIR", settings.DATA_DIR, "data")
    found += folder_problems("LOG_DIR", settings.LOG_DIR, "log")
    return found or space_problems(settings.DATA_DIR)


def folder_problems(name: str, path: Path, word: str) -> list[CheckMessage]:
    """Return an error unless the folder can be created and written to. Set its mode to 700."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chmod(path, 0o700)
        with tempfile.NamedTemporaryFile(dir=path) as file:
            file.write(b"probe")
            file.flush()
    except OSError as error:
        if error.errno == errno.ENOSPC:
            return _fatal(ErrorText("folder_disk_full", word=word), name, path)
        return _fatal(ErrorText("folder_no_access", word=word), name, path, str(error))
    return []


def _fatal(text: str, name: str, path: Path, detail: str = "") -> list[CheckMessage]:
    hint = ErrorText("folder_path", name=name, path=path)
    if detail:
        hint = ErrorText("with_detail", reason=hint, detail=detail)
    logger.critical("%s %s", text, hint)
    return [Critical(text, hint=hint, id="memory.C002")]


def space_problems(
    path: Path, free: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free
) -> list[CheckMessage]:
    """Warn if less than 1 GB is free."""
    left = free(path)
    if left >= ENOUGH_SPACE:
        return []
    text = ErrorText("little_space", megabytes=left // 1024**2)
    hint = ErrorText("folder_path", name="DATA_DIR", path=path)
    return [Warning(text, hint=hint, id="memory.W002")]


@register(SETTINGS)
def providers_are_whole(values: Any = settings, **_: Any) -> list[CheckMessage]:
    """Check that a chosen provider has all of its settings."""
    record = PROVIDERS.get(values.WHATSAPP_PROVIDER)
    missing = [name for name in record.needed if not getattr(values, name)] if record else []
    if not missing:
        return []
    names = ", ".join(missing)
    text = ErrorText("provider_incomplete", provider=values.WHATSAPP_PROVIDER, names=names)
    return [Error(text, hint=ErrorText("provider_hint"), id="memory.E002")]


@register(SETTINGS)
def models_are_reachable_by_settings(values: Any = settings, **_: Any) -> list[CheckMessage]:
    """Check the API keys. OpenAI itself needs one; a compatible server may not."""
    servers = {"CHAT_MODEL": "", "EMBEDDER": "EMBEDDING"}
    uses = [
        name
        for name, server in servers.items()
        if getattr(values, name) == "openai" and model_server(server, values).needs_key
    ]
    speech = bool(values.TRANSCRIPTION_MODEL) and model_server("TRANSCRIPTION", values).needs_key
    if not uses and not speech:
        return []
    names = ErrorText("two_models") if len(uses) == 2 else "".join(uses)
    ending = "" if not speech else "_both" if uses else "_speech"
    text = ErrorText(f"openai_key_missing{ending}", names=names)
    return [Error(text, hint=ErrorText("openai_hint"), id="memory.E003")]


@register(SETTINGS)
def budget_can_be_counted(values: Any = settings, **_: Any) -> list[CheckMessage]:
    """Check that each model has a price if there is a budget: without one it would never end."""
    if not values.CLIENTS_DAILY_BUDGET or values.CHAT_MODEL == "offline":
        return []
    models = (values.OPENAI_MODEL, values.OPENAI_FALLBACK_MODEL, *values.COMPARISON_MODELS)
    return [
        Error(
            ErrorText("budget_without_price", model=model),
            hint=ErrorText("budget_hint", model=model),
            id="memory.E006",
        )
        for model in filter(None, models)
        if model_tokens(model, 1, 1, values.MODEL_PRICES).cost is None
    ]


def cross_checks(values: Any) -> list[CheckMessage]:
    """Return what is wrong with settings beside each other. ``values`` has them by name."""
    checks = (providers_are_whole, models_are_reachable_by_settings, budget_can_be_counted)
    return [message for check in checks for message in check(values)]


@register(SETTINGS)
def extraction_has_a_model(**_: Any) -> list[CheckMessage]:
    """Check that extraction has a chat model. Without one nothing is learned from messages."""
    if not settings.EXTRACT_MEMORIES or settings.CHAT_MODEL != "offline":
        return []
    hint = ErrorText("extraction_hint")
    return [Warning(ErrorText("extraction_offline"), hint=hint, id="memory.W008")]


@register(SETTINGS)
def traces_have_their_packages(**_: Any) -> list[CheckMessage]:
    """Check the packages that are needed only where traces are on."""
    if not settings.TRACES_ENDPOINT:
        return []
    try:
        importlib.import_module("memoryproject.foundation.process.otel_tracer")
    except ImportError as error:
        text = ErrorText("tracing_missing", name=error.name or "opentelemetry")
        return [Error(text, hint=ErrorText("tracing_hint"), id="memory.E007")]
    return []


@register(SETTINGS)
def buckets_have_their_packages(**_: Any) -> list[CheckMessage]:
    """Check the packages that are needed only where files lie in a bucket, and its keys."""
    if not settings.MEDIA_STORAGE:
        return []
    if bool(settings.MEDIA_S3_ACCESS_KEY_ID) != bool(settings.MEDIA_S3_SECRET_ACCESS_KEY):
        return [Error(ErrorText("s3_half_a_key"), id="memory.E009")]
    # They aren't imported here: it takes long, and few commands need them.
    missing = [name for name in ("storages", "boto3") if find_spec(name) is None]
    if missing:
        text = ErrorText("s3_missing", name=", ".join(missing))
        return [Error(text, hint=ErrorText("s3_hint"), id="memory.E008")]
    return []


@register(SETTINGS)
def keys_are_long_enough(**_: Any) -> list[CheckMessage]:
    """Check the keys that are set. SECRET_KEY may be short where only this network logs in."""
    is_served = any(map(is_public, settings.ALLOWED_HOSTS))
    found: list[CheckMessage] = []
    for name in ("SECRET_KEY", "AUDIT_KEY", "BACKUP_KEY"):
        length = len(getattr(settings, name).encode())
        if length < MIN_KEY_BYTES:
            text = ErrorText("key_short", name=name, length=length, least=MIN_KEY_BYTES)
            hint = ErrorText("key_hint", name=name)
            is_error = is_served or name != "SECRET_KEY"
            kind, number = (Error, "memory.E010") if is_error else (Warning, "memory.W021")
            found.append(kind(text, hint=hint, id=number))
    return found


@register(SETTINGS)
def groups_are_no_godfathers(**_: Any) -> list[CheckMessage]:
    groups = [name for name in settings.GODFATHER_PHONE if name.endswith("@g.us")]
    if not groups:
        return []
    return [Warning(ErrorText("godfather_group", groups=", ".join(groups)), id="memory.W003")]


@register(SETTINGS)
def address_fits_https(**_: Any) -> list[CheckMessage]:
    """Warn if others can reach the server without TLS, or if BASE_URL and HTTPS_ONLY differ."""
    public = [host for host in settings.ALLOWED_HOSTS if is_public(host)]
    scheme = settings.BASE_URL.partition("://")[0]
    if scheme == "http" and settings.HTTPS_ONLY:
        return [Warning(ErrorText("https_only_without_https"), id="memory.W024")]
    if scheme == "https" and not settings.HTTPS_ONLY:
        return [Warning(ErrorText("https_without_https_only"), id="memory.W024")]
    if settings.HTTPS_ONLY or not public:
        return []
    text = ErrorText("no_https", hosts=", ".join(public))
    return [Warning(text, hint=ErrorText("no_https_hint"), id="memory.W020")]


@register(SETTINGS, deploy=True)
def base_url_is_https(**_: Any) -> list[CheckMessage]:
    """Warn, where a deployment is checked, unless the server's address is known and has TLS."""
    if settings.BASE_URL.startswith("https://"):
        return []
    text = "base_url_http" if settings.BASE_URL else "base_url_unset"
    return [Warning(ErrorText(text), hint=ErrorText("base_url_hint"), id="memory.W023")]


def is_public(host: str) -> bool:
    """Return whether a name of ALLOWED_HOSTS may be reached from outside the local network."""
    name = host.strip("[].").lower()
    try:
        return ip_address(name).is_global
    except ValueError:
        return "*" in name or ("." in name and not name.endswith(LOCAL_NAMES))
