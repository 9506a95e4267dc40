"""Read typed settings from the environment and from a ``config.json`` of the old form.

A wrong value in the environment never raises here. It is reported in ``errors`` with the variable's
name, the default replaces it, and a system check stops the start with that text. A broken config
file is an ERROR in ``notes``, and the defaults apply (ERR-INTEGRATION-003).

``environ.Env`` can't be the base of this: it reads an unknown word as false, reads a value that
begins with "$" as the name of another variable, and raises for other wrong values. It has no number
limits and no second source.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import secrets
from collections.abc import Collection, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import environ

from memoryproject.foundation.errors.stored_errors import ErrorText

CONFIG_KEYS: dict[str, tuple[str, ...]] = {
    "ENABLE_MEMORY_SYSTEM": ("feature_flags", "enable_memory_system"),
    "GODFATHER_PHONE": ("godfather_phone",),
    "CLIENT_MAX_TOKENS": ("memory", "session", "max_tokens_by_role", "client"),
    "GODFATHER_MAX_TOKENS": ("memory", "session", "max_tokens_by_role", "godfather"),
    "SESSION_TIMEOUT_HOURS": ("memory", "session", "session_timeout_hours"),
    "CHAT_MEMORY_STRATEGY": ("memory", "chat", "strategy", "type"),
    "SUMMARIZE_EVERY_N": ("memory", "chat", "strategy", "summarizeEveryN"),
    "SUMMARIZATION_SKILL": ("memory", "chat", "strategy", "skillId"),
    "DELETE_SUMMARIZED_MESSAGES": ("memory", "chat", "strategy", "deleteSummarizedMessages"),
    "LONGTERM_ENABLED": ("memory", "longterm", "enabled"),
    "EMBEDDING_MODEL": ("memory", "longterm", "embedding_model"),
    "RECALL_TOP_K": ("memory", "longterm", "top_k_results"),
    "RECALL_MIN_SIMILARITY": ("memory", "longterm", "min_similarity"),
}
"""The keys of config.json (seeds 002 and 003), by the settings that they stand for."""

TRUE_WORDS = {"1", "true", "yes", "on"}
FALSE_WORDS = {"0", "false", "no", "off"}
WHATSAPP_ID = re.compile(r"[0-9]{5,20}@c\.us|[A-Za-z0-9_-]+@g\.us|[A-Za-z0-9._-]+@bsuid")

_PRICE = r"[0-9]{1,9}(\.[0-9]{1,9})?"
CURRENCY = re.compile(r"[A-Z]{3}")
# A name, also of all hosts of a domain (.example.com), or an address; Django leaves out the port.
EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
HOST = re.compile(r"\*|\.?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\]")
MODEL_PRICE = re.compile(
    rf"(?P<model>[^=\s][^=]*)=\s*(?P<tokens_in>{_PRICE})\s*/\s*(?P<tokens_out>{_PRICE})"
)

# As environ.Env reads them.
ENV_LINE = re.compile(r"(?:export )?[A-Za-z_0-9]+=")


@dataclass(frozen=True)
class Note:
    """Something to log at start; ``level`` is a logging level's name."""

    level: str
    text: str


@dataclass
class Environment:
    """The settings: the environment first, then a config file, then defaults.

    values: the environment; an empty value counts as unset.

    config: settings found in the config file, by setting name, in JSON types.

    requested: the names that were read, in that order.

    refused: the names whose value in the config file is wrong, so that the default applies.
    """

    values: Mapping[str, str]
    config: dict[str, Any] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    requested: dict[str, None] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)

    def origins(self, before: Collection[str]) -> dict[str, str]:
        """Return the origin of each setting that was read.

        An origin is environment, .env, config.json or default. ``before``: the names that the
        environment had before .env was read.
        """
        return {name: self._origin(name, before) for name in self.requested}

    def _origin(self, name: str, before: Collection[str]) -> str:
        if self.values.get(name, "").strip():
            return "environment" if name in before else ".env"
        is_used = name in self.config and name not in self.refused
        return "config.json" if is_used else "default"

    def is_set(self, name: str) -> bool:
        self.requested[name] = None
        return bool(self.values.get(name, "").strip()) or name in self.config

    def text(self, name: str, default: str = "") -> str:
        return str(self._found(name, default)).strip()

    def boolean(self, name: str, default: bool) -> bool:
        word = str(self._found(name, default)).strip().lower()
        if word in TRUE_WORDS | FALSE_WORDS:
            return word in TRUE_WORDS
        self._refuse(name, word, "setting_boolean")
        return default

    def integer(self, name: str, default: int, *, minimum: int = 0, maximum: int = 10**9) -> int:
        found = self.optional_integer(name, minimum=minimum, maximum=maximum)
        return default if found is None else found

    def optional_integer(self, name: str, *, minimum: int = 0, maximum: int = 10**9) -> int | None:
        """Return the number, or None if the setting is unset or wrong."""
        if not self.is_set(name):
            return None
        word = str(self._found(name, "")).strip()
        if re.fullmatch(r"-?[0-9]{1,12}", word) and minimum <= int(word) <= maximum:
            return int(word)
        self._refuse(name, word, "setting_integer", least=minimum, most=maximum)
        return None

    def fraction(self, name: str, default: float) -> float:
        word = str(self._found(name, default)).strip()
        try:
            number = float(word)
        except ValueError:
            number = -1.0
        if 0.0 <= number <= 1.0:
            return number
        self._refuse(name, word, "setting_fraction")
        return default

    def amount(self, name: str) -> Decimal | None:
        """Return the amount of money, or None if the setting is unset or wrong."""
        if not self.is_set(name):
            return None
        word = str(self._found(name, "")).strip()
        if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", word):
            return Decimal(word)
        self._refuse(name, word, "setting_amount")
        return None

    def choice(self, name: str, default: str, choices: Sequence[str]) -> str:
        word = self.text(name, default)
        if word in choices:
            return word
        self._refuse(name, word, "setting_choice", choices=", ".join(choices))
        return default

    def url(self, name: str, default: str = "", schemes: Sequence[str] = ("http", "https")) -> str:
        word = self.text(name, default)
        # The error is printed and logged: without name and password.
        login, at, address = word.rpartition("@")
        scheme, colon, _ = login.partition("://")
        shown = f"{scheme + colon if colon else ''}…@{address}" if at else word
        if word and not re.match(rf"({'|'.join(map(re.escape, schemes))})://\S+", word):
            self._refuse(name, shown, "setting_url", schemes=f"{' or '.join(schemes)}://")
            return default
        if not _has_address(word):
            self._refuse(name, shown, "setting_url_address")
            return default
        return word.rstrip("/")

    def time_zone(self, name: str, default: str) -> str:
        word = self.text(name, default)
        try:
            ZoneInfo(word)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            self._refuse(name, word, "setting_time_zone")
            return default
        return word

    def whatsapp_ids(self, name: str) -> frozenset[str]:
        """Read a comma-separated list of ids such as 972501234567@c.us."""
        words = [word.strip() for word in self.text(name).split(",") if word.strip()]
        wrong = [word for word in words if not WHATSAPP_ID.fullmatch(word)]
        if wrong:
            self._refuse(name, ", ".join(wrong), "setting_ids")
        found = frozenset(word for word in words if word not in wrong)
        if found:
            # The config file's other ids are in use.
            self.refused.discard(name)
        return found

    def emails(self, name: str) -> list[str]:
        """Read a comma-separated list of e-mail addresses."""
        words = self.names(name, [])
        wrong = [word for word in words if not EMAIL.fullmatch(word)]
        if wrong:
            self._refuse(name, ", ".join(wrong), "setting_emails")
        return [word for word in words if word not in wrong]

    def networks(self, name: str) -> list[str]:
        """Read a comma-separated list of networks such as 10.0.0.0/8 and fd00::/8."""
        words = self.names(name, [])
        wrong = [word for word in words if not _is_network(word)]
        if wrong:
            self._refuse(name, ", ".join(wrong), "setting_networks")
        return [word for word in words if word not in wrong]

    def hosts(self, name: str, default: Sequence[str]) -> list[str]:
        """Read a comma-separated list of host names such as example.com and [::1]."""
        words = self.names(name, default)
        wrong = [word for word in words if not HOST.fullmatch(word)]
        if wrong:
            self._refuse(name, ", ".join(wrong), "setting_hosts")
        return [word for word in words if word not in wrong] or list(default)

    def currency(self, name: str, default: str) -> str:
        """Read the code of a currency by ISO 4217, such as USD."""
        word = self.text(name, default)
        if CURRENCY.fullmatch(word):
            return word
        self._refuse(name, word, "setting_currency")
        return default

    def prices(self, name: str) -> dict[str, tuple[float, float]]:
        """Read a comma-separated list of prices such as gpt-4o-mini=0.15/0.60.

        The two numbers are the prices of a million input tokens and a million output tokens.
        """
        found: dict[str, tuple[float, float]] = {}
        for word in self.names(name, []):
            match = MODEL_PRICE.fullmatch(word)
            if match is None:
                self._refuse(name, word, "setting_prices")
            else:
                prices = float(match["tokens_in"]), float(match["tokens_out"])
                found[match["model"].rstrip()] = prices
        return found

    def names(self, name: str, default: Sequence[str]) -> list[str]:
        words = [word.strip() for word in self.text(name).split(",") if word.strip()]
        return words or list(default)

    def _found(self, name: str, default: Any) -> Any:
        self.requested[name] = None
        from_environment = self.values.get(name, "").strip()
        return from_environment if from_environment else self.config.get(name, default)

    def _refuse(self, name: str, word: str, code: str, **params: object) -> None:
        if self.values.get(name, "").strip():
            problem = ErrorText(code, name=name, **params)
            self.errors.append(ErrorText("setting_wrong", problem=problem, word=repr(word)))
        else:
            self.refused.add(name)
            key = ".".join(CONFIG_KEYS.get(name, (name,)))
            problem = ErrorText(code, name=f"MEMORY_CONFIG: {key}", **params)
            text = ErrorText("setting_wrong_default", problem=problem, word=repr(word))
            self.notes.append(Note("ERROR", text))


def _has_address(url: str) -> bool:
    """Return whether host and port can be read; a bare # in a password, say, hides them."""
    try:
        urlsplit(url).port  # noqa: B018 raises
    except ValueError:
        return False
    return True


def _is_network(word: str) -> bool:
    try:
        ipaddress.ip_network(word)
    except ValueError:
        return False
    return True


def read_env_file(path: Path, errors: list[str]) -> None:
    """Put the settings of an .env file into the environment, which wins over them.

    A file that can't be used and lines that are no settings are added to ``errors``: whoever wrote
    them relies on them. Their text may be a secret, and is not repeated.
    """
    try:
        # Windows' Notepad begins a file with a byte order mark.
        content = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        errors.append(ErrorText("env_file_unusable", path=path, why=error))
        return
    lines = [line if line.strip() else "" for line in content.splitlines()]
    for number, line in enumerate(lines, start=1):
        if line and not line.lstrip().startswith("#") and not ENV_LINE.match(line):
            errors.append(ErrorText("env_file_line", path=path, number=number))
    environ.Env.read_env(StringIO("\n".join(filter(ENV_LINE.match, lines))))


def read_config_file(path: Path, notes: list[Note]) -> dict[str, Any]:
    """Return the settings in a config.json of seed 002's form.

    Returns {} and adds an ERROR note if the file is broken.
    """
    try:
        # Windows' Notepad begins a file with a byte order mark.
        document = json.loads(path.read_text(encoding="utf-8-sig"))
        _check_objects(document)
    except (OSError, ValueError, RecursionError) as error:
        why = ErrorText("config_unusable", path=path, why=error)
        notes.append(Note("ERROR", ErrorText("of_kind", kind="MEMORY_CONFIG", why=why)))
        return {}
    found: dict[str, Any] = {}
    for name, keys in CONFIG_KEYS.items():
        value: Any = document
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            found[name] = value
    return found


def _check_objects(document: Any) -> None:
    """Raise ValueError if the document, or a part that holds settings, is no object."""
    if not isinstance(document, dict):
        raise ValueError("the file must hold a JSON object")
    for keys in CONFIG_KEYS.values():
        value: Any = document
        for place, key in enumerate(keys[:-1], start=1):
            value = value.get(key)
            if value is None:
                break
            if not isinstance(value, dict):
                raise ValueError(f"{'.'.join(keys[:place])} must be an object")


def config_wins_over_env_file(
    values: MutableMapping[str, str], config: Collection[str], *, kept: Collection[str]
) -> None:
    """Let an explicitly named config.json override the demo values that `make run` wrote into .env.

    It applies only if the environment names the config.json. With a broken file the defaults
    apply instead.

    values: the environment, including what .env added; kept: the environment before that.
    """
    for name in config or CONFIG_KEYS:
        if name not in kept:
            values.pop(name, None)


def secret_from_file(path: Path) -> str:
    """Return the secret kept in a file of mode 600, which is created on first use.

    If the folder can't be written, the secret lives for this process only. The check of the data
    folder stops the start in that case.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(48))
        try:
            # link() fails if another process was first. Then its secret is used.
            os.link(fresh, path)
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
        return path.read_text(encoding="utf-8")
    except OSError:
        return secrets.token_urlsafe(48)
