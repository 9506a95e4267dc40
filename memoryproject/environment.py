"""Kinds of settings, and how their values are read from the environment and an old ``config.json``.

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
from dataclasses import KW_ONLY, dataclass, field
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import environ

from memoryproject.foundation.errors.stored_errors import ErrorText

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

CONFIG_KEYS = {
    "ENABLE_MEMORY_SYSTEM": "feature_flags.enable_memory_system",
    "GODFATHER_PHONE": "godfather_phone",
    "CLIENT_MAX_TOKENS": "memory.session.max_tokens_by_role.client",
    "GODFATHER_MAX_TOKENS": "memory.session.max_tokens_by_role.godfather",
    "SESSION_TIMEOUT_HOURS": "memory.session.session_timeout_hours",
    "CHAT_MEMORY_STRATEGY": "memory.chat.strategy.type",
    "SUMMARIZE_EVERY_N": "memory.chat.strategy.summarizeEveryN",
    "SUMMARIZATION_SKILL": "memory.chat.strategy.skillId",
    "DELETE_SUMMARIZED_MESSAGES": "memory.chat.strategy.deleteSummarizedMessages",
    "LONGTERM_ENABLED": "memory.longterm.enabled",
    "EMBEDDING_MODEL": "memory.longterm.embedding_model",
    "RECALL_TOP_K": "memory.longterm.top_k_results",
    "RECALL_MIN_SIMILARITY": "memory.longterm.min_similarity",
}
"""The keys of config.json (seeds 002 and 003), by the settings that they stand for."""

TRUE_WORDS = {"1", "true", "yes", "on"}
FALSE_WORDS = {"0", "false", "no", "off"}
PHONE_NUMBER = re.compile(r"(?:\+|00)?([1-9](?:[ ().-]*[0-9]){7,14})")
WHATSAPP_ID = re.compile(r"[0-9]{5,20}@c\.us|[A-Za-z0-9_-]+@g\.us|[A-Za-z0-9._-]+@bsuid")
ORIGIN = re.compile(
    r"\*|[A-Za-z][A-Za-z0-9+.-]*://(?:[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?/?"
)
EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
# A name, also of all hosts of a domain (.example.com), or an address; Django leaves out the port.
HOST = re.compile(r"\*|\.?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\]")
_PRICE = r"[0-9]{1,9}(\.[0-9]{1,9})?"
MODEL_PRICE = re.compile(
    rf"(?P<model>[^=\s][^=]*)=\s*(?P<tokens_in>{_PRICE})\s*/\s*(?P<tokens_out>{_PRICE})"
)

# As environ.Env reads them.
ENV_LINE = re.compile(r"(?:export )?[A-Za-z_0-9]+=")
# A comment behind a value. JSON may hold the sign: nothing is cut off what has bare quotes.
# A run of blanks is tried from its first one only.
COMMENTED = re.compile(r"""^(\w[\w ]*=(?:'[^']*'|"(?:[^"\\]|\\.)*"|[^'"]*?))(?<!\s)\s+(?:#.*)?$""")


class InvalidSetting(Exception):
    """A value can't be used. The text has the name of the setting before it.

    word: the value as the text shows it; kept: what is used of a list of which some are wrong.
    """

    def __init__(self, code: str, word: str, kept: Any = None, **params: object) -> None:
        super().__init__(code)
        self.code, self.word, self.kept, self.params = code, word, kept, params


@dataclass(frozen=True)
class Setting:
    """A setting that is a text; the other kinds derive from it. See settings_table.yaml.

    meaning: for staff; secret: staff see only its length; audited: the audit log records a change.

    file: where the value lies in DATA_DIR if the environment doesn't set it; changeable: an
    administrator may change it in the browser.
    """

    meaning: _StrPromise | str
    default: Any = ""
    _: KW_ONLY
    secret: bool = False
    audited: bool = True
    file: str = ""
    changeable: bool = False

    def parse(self, text: str) -> Any:
        """Return the value, or raise InvalidSetting."""
        return text


@dataclass(frozen=True)
class Boolean(Setting):
    default: bool | None = False

    def parse(self, text: str) -> bool:
        word = text.lower()
        if word in TRUE_WORDS | FALSE_WORDS:
            return word in TRUE_WORDS
        raise InvalidSetting("setting_boolean", word)


@dataclass(frozen=True)
class Integer(Setting):
    minimum: int = 0
    maximum: int = 10**9

    def parse(self, text: str) -> int:
        if re.fullmatch(r"-?[0-9]{1,12}", text) and self.minimum <= int(text) <= self.maximum:
            return int(text)
        raise InvalidSetting("setting_integer", text, least=self.minimum, most=self.maximum)


class Fraction(Setting):
    def parse(self, text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if 0.0 <= number <= 1.0:
            return number
        raise InvalidSetting("setting_fraction", text)


class Amount(Setting):
    """An amount of money."""

    def parse(self, text: str) -> Decimal:
        if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", text):
            return Decimal(text)
        raise InvalidSetting("setting_amount", text)


class Currency(Setting):
    """The code of a currency by ISO 4217, such as USD."""

    def parse(self, text: str) -> str:
        if re.fullmatch("[A-Z]{3}", text):
            return text
        raise InvalidSetting("setting_currency", text)


class TimeZone(Setting):
    def parse(self, text: str) -> str:
        try:
            ZoneInfo(text)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise InvalidSetting("setting_time_zone", text) from None
        return text


@dataclass(frozen=True)
class Choice(Setting):
    choices: Sequence[str] = ()

    def parse(self, text: str) -> str:
        if text in self.choices:
            return text
        raise InvalidSetting("setting_choice", text, choices=", ".join(self.choices))


@dataclass(frozen=True)
class Url(Setting):
    """An address, which may contain a password."""

    schemes: Sequence[str] = ("http", "https")

    def parse(self, text: str) -> str:
        # The error is printed and logged: without name and password.
        login, at, address = text.rpartition("@")
        scheme, colon, _ = login.partition("://")
        shown = f"{scheme + colon if colon else ''}…@{address}" if at else text
        if not re.match(rf"({'|'.join(map(re.escape, self.schemes))})://\S+", text):
            raise InvalidSetting("setting_url", shown, schemes=f"{' or '.join(self.schemes)}://")
        try:
            # A bare # in a password, say, hides host and port.
            urlsplit(text).port  # noqa: B018 raises
        except ValueError:
            raise InvalidSetting("setting_url_address", shown) from None
        return text.rstrip("/")


class Words(Setting):
    """A list, separated by commas. ``matches`` checks the form of a word."""

    code = ""
    matches: ClassVar[Any] = str

    def parse(self, text: str) -> Any:
        words = [word.strip() for word in text.split(",") if word.strip()]
        wrong = [word for word in words if not self.is_valid(word)]
        found = self.collect([word for word in words if word not in wrong])
        if wrong:
            raise InvalidSetting(self.code, ", ".join(wrong), kept=found)
        return found

    def is_valid(self, word: str) -> bool:
        return bool(self.matches(word))

    def collect(self, words: list[str]) -> Any:
        return words


class Hosts(Words):
    """Host names such as example.com and [::1]."""

    code = "setting_hosts"
    matches = HOST.fullmatch


class Origins(Words):
    """Origins of web pages, such as https://app.example.com; * for all."""

    code = "setting_origins"
    matches = ORIGIN.fullmatch

    def collect(self, words: list[str]) -> list[str]:
        # As browsers write them: without the port that the scheme has anyway.
        origins = (word.lower().rstrip("/") for word in words)
        return [re.sub(r"^(http://.+):80$|^(https://.+):443$", r"\1\2", each) for each in origins]


class Emails(Words):
    code = "setting_emails"
    matches = EMAIL.fullmatch


class Networks(Words):
    """Networks such as 10.0.0.0/8 and fd00::/8."""

    code = "setting_networks"

    def is_valid(self, word: str) -> bool:
        try:
            ipaddress.ip_network(word)
        except ValueError:
            return False
        return True


def _id_of_number(text: str) -> str:
    """Return the id of a number with its country code; anything else as it is."""
    number = PHONE_NUMBER.fullmatch(text.strip())
    return "".join(re.findall("[0-9]", number[1])) + "@c.us" if number else text


@dataclass(frozen=True)
class WhatsAppIds(Words):
    """A set of ids such as 972501234567@c.us, or of numbers such as +972 50-123-4567."""

    default: Any = frozenset()
    code = "setting_ids"
    matches = WHATSAPP_ID.fullmatch

    def parse(self, text: str) -> Any:
        return super().parse(",".join(map(_id_of_number, text.split(","))))

    def collect(self, words: list[str]) -> frozenset[str]:
        return frozenset(words)


class JsonObject(Setting):
    """An object in JSON, such as {"temperature": 0.3}."""

    def parse(self, text: str) -> dict[str, Any]:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            return found
        raise InvalidSetting("setting_json", "…" if self.secret else text)


class HttpHeaders(JsonObject):
    """HTTP headers as an object in JSON, such as {"X-Title": "Our shop"}."""

    def parse(self, text: str) -> dict[str, Any]:
        found = super().parse(text)
        for name, value in found.items():
            is_name = re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) is not None
            if not is_name or not isinstance(value, str) or not re.fullmatch(r"[ -~]*", value):
                raise InvalidSetting("setting_headers", name)
        return found


class Prices(Words):
    """Prices such as gpt-4o-mini=0.15/0.60: of a million input and output tokens, by model."""

    code = "setting_prices"
    matches = MODEL_PRICE.fullmatch

    def collect(self, words: list[str]) -> dict[str, tuple[float, float]]:
        found = filter(None, map(MODEL_PRICE.fullmatch, words))
        return {
            each["model"].rstrip(): (float(each["tokens_in"]), float(each["tokens_out"]))
            for each in found
        }


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

    refused: the names whose value in the config file is wrong, so that the default applies.
    """

    values: Mapping[str, str]
    config: dict[str, Any] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)

    def read(self, name: str, setting: Setting) -> Any:
        """Return the value of a setting: its default if it is unset or wrong."""
        text = self._text(name)
        if text is None:
            return setting.default
        try:
            value = setting.parse(text)
        except InvalidSetting as error:
            self._refuse(name, error)
            value = error.kept
        return setting.default if value in (None, [], {}, frozenset()) else value

    def is_set(self, name: str) -> bool:
        return self._text(name) is not None

    def origin(self, name: str, before: Collection[str]) -> str:
        """Return the origin of a setting: environment, .env, config.json or default.

        before: the names that the environment had before .env was read.
        """
        if self.values.get(name, "").strip():
            return "environment" if name in before else ".env"
        return "config.json" if name in self.config and name not in self.refused else "default"

    def _text(self, name: str) -> str | None:
        text = self.values.get(name, "").strip()
        return text or (str(self.config[name]).strip() if name in self.config else None)

    def _refuse(self, name: str, error: InvalidSetting) -> None:
        word = repr(error.word)
        if self.values.get(name, "").strip():
            problem = ErrorText(error.code, name=name, **error.params)
            self.errors.append(ErrorText("setting_wrong", problem=problem, word=word))
            return
        if not error.kept:
            self.refused.add(name)
        key = CONFIG_KEYS.get(name, name)
        problem = ErrorText(error.code, name=f"MEMORY_CONFIG: {key}", **error.params)
        text = ErrorText("setting_wrong_default", problem=problem, word=word)
        self.notes.append(Note("ERROR", text))


# A run tells its programs by this variable which others are from .env.
OF_ENV_FILE = "MEMORY_OF_ENV_FILE"


def read_env_file(path: Path, errors: list[str]) -> list[str]:
    """Put the settings of an .env file into the environment, which wins over them.

    Return their names.

    A file that can't be used and lines that are no settings are added to ``errors``: whoever wrote
    them relies on them. Their text may be a secret, and is not repeated.
    """
    try:
        # Windows' Notepad begins a file with a byte order mark.
        content = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        errors.append(ErrorText("env_file_unusable", path=path, why=error))
        return []
    lines = [line if line.strip() else "" for line in content.splitlines()]
    for number, line in enumerate(lines, start=1):
        if line and not line.lstrip().startswith("#") and not ENV_LINE.match(line):
            errors.append(ErrorText("env_file_line", path=path, number=number))
    given = [COMMENTED.sub(r"\1", line) for line in filter(ENV_LINE.match, lines)]
    environ.Env.read_env(StringIO("\n".join(given)))
    return [line.removeprefix("export ").partition("=")[0] for line in given]


def read_config_file(path: Path, notes: list[Note]) -> dict[str, Any]:
    """Return the settings in a config.json of seed 002's form.

    Returns {} and adds an ERROR note if the file is broken.
    """
    try:
        # Windows' Notepad begins a file with a byte order mark.
        document = json.loads(path.read_text(encoding="utf-8-sig"))
        found = {name: _value_at(document, keys.split(".")) for name, keys in CONFIG_KEYS.items()}
    except (OSError, ValueError, RecursionError) as error:
        why = ErrorText("config_unusable", path=path, why=error)
        notes.append(Note("ERROR", ErrorText("of_kind", kind="MEMORY_CONFIG", why=why)))
        return {}
    return {name: value for name, value in found.items() if value is not None}


def _value_at(document: Any, keys: Sequence[str]) -> Any:
    """Return the value, or None. Raise ValueError if a part that would hold it is no object."""
    value = document
    for place, key in enumerate(keys):
        if not isinstance(value, dict):
            part = ".".join(keys[:place])
            raise ValueError(
                f"{part} must be an object" if part else "the file must hold a JSON object"
            )
        value = value.get(key)
        if value is None:
            return None
    return value


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
