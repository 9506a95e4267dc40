"""Settings that administrators change while the server runs.

What the environment, ``.env`` or an old config.json sets wins over what is stored, which wins over
the default. Each process looks for changes about once a second: when it takes a request, begins a
job, or looks for turns to answer. The checks at the start don't see what is stored, so that a
server whose stored settings are wrong starts, and can be corrected in the browser.
"""

import base64
import logging
import time
from collections.abc import Callable, Collection, Mapping
from types import SimpleNamespace
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed
from django.db import Error, connection, transaction
from django.utils import timezone
from django.utils.crypto import salted_hmac

from memoryproject.checks import ERROR, cross_checks
from memoryproject.environment import Environment
from memoryproject.foundation.audit.audit_events import Actor, audit_record
from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.outside_services.models import ServiceName, services_try_again
from memoryproject.settings_table import CHANGEABLE, GROUPS, OWN_SETTINGS
from sessions_app.models import StoredSetting

logger = logging.getLogger(__name__)

# The origins of values that nothing stored replaces.
NOT_SET, STORED = "default", "stored"
MAX_CHARACTERS = 4_000
# An advisory lock number that nothing else uses.
_LOCK = 0x5E771465


class _Applied:
    """What this process uses: the rows as they were read, and their values by name."""

    rows: tuple[tuple[str, str], ...] = ()
    values: Mapping[str, Any] = {}
    problems: Mapping[str, ErrorText] = {}
    next_look = 0.0


def is_set_elsewhere(name: str) -> bool:
    """Return whether the environment, .env or config.json sets it, which wins."""
    return settings.CONFIG_ORIGINS[name] not in (NOT_SET, STORED)


def stored_problems() -> Mapping[str, ErrorText]:
    """Return what is wrong with stored values, by the names of their settings."""
    return _Applied.problems


def stored_settings_look(*, at_once: bool = False) -> None:
    """Use the settings that are stored now. Without a database those of before stay in use.

    ``at_once``: also where this process has looked a moment ago.
    """
    every = settings.STORED_SETTINGS_SECONDS
    if not at_once and (every is None or time.monotonic() < _Applied.next_look):
        return
    _Applied.next_look = time.monotonic() + (every or 0)
    try:
        rows = tuple(StoredSetting.objects.order_by("name").values_list("name", "value"))
    except Error:
        # The database is down, or not prepared yet; whoever needs it says so.
        return
    if rows != _Applied.rows:
        values, _Applied.problems = _read(dict(rows))
        for problem in _Applied.problems.values():
            logger.error("%s", problem)
        _use(values)
        _Applied.rows = rows
    elif rows:
        # Django caches a setting at its first use: one that was read while it changed.
        vars(settings).update(_Applied.values)


def with_stored_settings(handle: Callable[..., Any]) -> Callable[..., Any]:
    """Return what a command does, with the stored settings in use."""

    def handled(*args: Any, **options: Any) -> Any:
        stored_settings_look(at_once=True)
        return handle(*args, **options)

    return handled


def _read(texts: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, ErrorText]]:
    """Return the values of stored texts that count, and the problems with the others."""
    values: dict[str, Any] = {}
    problems: dict[str, ErrorText] = {}
    for name, stored in texts.items():
        if name not in CHANGEABLE or is_set_elsewhere(name):
            continue
        text = stored_text(name, stored)
        env = Environment(values={name: text or ""})
        value = env.read(name, OWN_SETTINGS[name])
        if text is None:
            problems[name] = ErrorText("stored_unreadable", name=name)
        elif env.errors:
            # A rule of a newer version.
            problems[name] = ErrorText("stored_unusable", name=name)
        else:
            values[name] = value
    return values, problems


def _use(values: Mapping[str, Any]) -> None:
    """Let this process use these values, and those of the start for what is stored no more.

    All at once: no thread is to call a new server with an old key. That is why they are put where
    Django caches settings, not set one by one.
    """
    origins = {
        name: STORED if name in values else NOT_SET if origin == STORED else origin
        for name, origin in settings.CONFIG_ORIGINS.items()
    }
    changed = {*values, *_Applied.values}
    for name in _Applied.values.keys() - values:
        vars(settings).pop(name, None)
    _Applied.values = {**values, "CONFIG_ORIGINS": origins}
    vars(settings).update(_Applied.values)
    for name in changed:
        setting_changed.send(None, setting=name, value=getattr(settings, name), enter=True)


class InvalidSettingsError(Exception):
    """Settings can't be stored. ``errors``: why, by name; "": the settings together."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__("; ".join(errors.values()))
        self.errors = errors


class ChangedMeanwhileError(Exception):
    """Somebody else changed these settings since they were read."""


def settings_seen(names: Collection[str]) -> str:
    """Return a mark of the stored state of these settings: it differs after any change."""
    rows = StoredSetting.objects.filter(name__in=names).order_by("name")
    return ",".join(f"{row.name}@{row.changed_at.timestamp()}" for row in rows)


def settings_store(
    *, texts: Mapping[str, str], actor: Actor, seen: tuple[Collection[str], str] = ((), "")
) -> list[str]:
    """Store these settings as one change; "" removes what is stored. Return the changed names.

    ``seen``: the settings that the person saw, and their mark then. Raises InvalidSettingsError and
    ChangedMeanwhileError; then nothing is stored.
    """
    _refuse_wrong(texts)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        stored = dict(StoredSetting.objects.values_list("name", "value"))
        _refuse_unfit({**stored, **{name: _encrypted(name, texts[name]) for name in texts}})
        changed = [name for name, text in texts.items() if text != _text_or_none(name, stored)]
        # Who sends the same form twice has what they want.
        if changed and seen[1] != settings_seen(seen[0]):
            raise ChangedMeanwhileError
        for name in changed:
            if texts[name]:
                StoredSetting.objects.update_or_create(
                    name=name,
                    defaults={
                        "value": _encrypted(name, texts[name]),
                        "changed_by": actor.name,
                        "changed_at": timezone.now(),
                    },
                )
        StoredSetting.objects.filter(name__in=[n for n in changed if not texts[n]]).delete()
        if changed:
            audit_record("setting.change", actor, "settings", names=sorted(changed))
    stored_settings_look(at_once=True)
    if not {*GROUPS["models"].settings, *GROUPS["whatsapp"].settings}.isdisjoint(changed):
        # A server that failed with other settings isn't left alone any longer.
        services_try_again([str(name) for name in ServiceName.values])
    return changed


def _refuse_wrong(texts: Mapping[str, str]) -> None:
    """Raise InvalidSettingsError for values that aren't what their settings take."""
    errors: dict[str, str] = {}
    for name, text in texts.items():
        env = Environment(values={name: text})
        env.read(name, OWN_SETTINGS[name])
        if name not in CHANGEABLE:
            errors[name] = ErrorText("setting_fixed", name=name)
        elif len(text) > MAX_CHARACTERS or any(ord(letter) < ord(" ") for letter in text):
            errors[name] = ErrorText("setting_one_line", name=name, most=MAX_CHARACTERS)
        elif env.errors:
            errors[name] = env.errors[0]
    if errors:
        raise InvalidSettingsError(errors)


def _refuse_unfit(stored: Mapping[str, str]) -> None:
    """Raise InvalidSettingsError where the settings would have an error that they don't have now.

    ``stored``: all that would be stored.
    """
    now = {name: getattr(settings, name) for name in OWN_SETTINGS}
    starting = {name: getattr(settings._wrapped, name) for name in OWN_SETTINGS}
    wanted = {**starting, **_read(stored)[0]}
    known = {message.msg for message in cross_checks(SimpleNamespace(**now))}
    found = cross_checks(SimpleNamespace(**wanted))
    new = [each for each in found if each.level >= ERROR and each.msg not in known]
    if new:
        raise InvalidSettingsError({"": new[0].msg})


def stored_text(name: str, stored: str) -> str | None:
    """Return a stored value as one writes it; None for a secret of another SECRET_KEY."""
    if not OWN_SETTINGS[name].secret:
        return stored
    from cryptography.fernet import InvalidToken  # noqa: PLC0415 slow

    try:
        return str(_cipher().decrypt(stored.encode()).decode())
    except InvalidToken:
        return None


def _text_or_none(name: str, stored: Mapping[str, str]) -> str | None:
    """Return what is stored, "" for nothing, None for what can't be read."""
    return stored_text(name, stored[name]) if name in stored else ""


def _encrypted(name: str, text: str) -> str:
    if not text or not OWN_SETTINGS[name].secret:
        return text
    return str(_cipher().encrypt(text.encode()).decode())


def _cipher() -> Any:
    from cryptography.fernet import Fernet  # noqa: PLC0415 slow

    key = salted_hmac("stored settings", "key", settings.SECRET_KEY, algorithm="sha256").digest()
    return Fernet(base64.urlsafe_b64encode(key))
