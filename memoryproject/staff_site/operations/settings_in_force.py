"""All settings with their active value, its origin, and the problems found with it."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage
from django.core.checks.registry import registry
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _, ngettext

from memoryproject.environment import Url
from memoryproject.foundation.errors.stored_errors import ErrorText, translate_error
from memoryproject.foundation.integrations.configured import configured_context_limit
from memoryproject.foundation.integrations.context_limit import KEPT_FOR
from memoryproject.settings_table import CHANGEABLE, GROUPS, OWN_SETTINGS
from sessions_app.models import StoredSetting
from sessions_app.stored_settings import is_set_elsewhere, stored_problems, stored_text

SERIOUS = 40  # checks.ERROR: such a problem stops the next start
# The embedder's checks may query another server, and no page waits for that.
CHECKED_HERE = ("memoryproject.checks",)

# The end of a text that repeats the wrong value.
WRONG_VALUE = re.compile(r"; it is .*", re.DOTALL)


@dataclass(frozen=True)
class Problem:
    """A problem that a system check found. ``serious``: it stops the next start."""

    text: str
    hint: str
    serious: bool


def settings_in_force() -> dict[str, Any]:
    """Return the settings as this process uses them, for the pages.

    ``groups``: all settings, by the titles of their groups. ``general``: the problems that name no
    setting. ``count``: the number of distinct problems.
    """
    problems = problems_found()
    stored = StoredSetting.objects.in_bulk()
    groups = [
        (str(group.title), [_setting(name, problems, stored.get(name)) for name in group.settings])
        for group in GROUPS.values()
    ]
    general = [each for each in problems if not _names_in(each) & set(OWN_SETTINGS)]
    beside = {each for _title, rows in groups for row in rows for each in row["problems"]}
    return {"groups": groups, "general": general, "count": len(beside) + len(general)}


def problems_found() -> list[Problem]:
    """Return the current results of our own checks of the settings, in the reader's language.

    Secrets that the texts may repeat are removed.
    """
    secrets = [_text(getattr(settings, name)) for name in OWN_SETTINGS if _may_be_secret(name)]
    found = [_problem(message, secrets) for check in _checks() for message in check()]
    notes = [note for note in settings.CONFIG_NOTES if note.level == "ERROR"]
    texts = [without_secrets(translate_error(note.text), secrets) for note in notes]
    texts += map(translate_error, stored_problems().values())
    return found + [Problem(text, "", False) for text in texts] + _model_limit()


def _model_limit() -> list[Problem]:
    """Return the limit that the model's server reported, if prompts would be longer without it."""
    known = configured_context_limit().learned() if settings.CHAT_MODEL == "openai" else None
    if known is None or (settings.MAX_CONTEXT_TOKENS or known.tokens + 1) <= known.tokens:
        return []
    text = _(
        "MAX_CONTEXT_TOKENS doesn't fit the model: the server of %(model)s refused a prompt, and "
        "prompts are kept within %(tokens)s tokens until %(until)s."
    )
    hint = _("Set MAX_CONTEXT_TOKENS to %(tokens)s, or give the server a larger context window.")
    until = localtime(known.learned_at + KEPT_FOR).strftime("%Y-%m-%d %H:%M")
    values = {"model": settings.OPENAI_MODEL, "tokens": known.tokens, "until": until}
    return [Problem(text % values, hint % values, serious=False)]


def _checks() -> list[Callable[[], Iterable[CheckMessage]]]:
    return [
        cast("Callable[[], Iterable[CheckMessage]]", check)
        for check in registry.get_checks()
        if check.__module__ in CHECKED_HERE
    ]


def _problem(message: CheckMessage, secrets: list[str]) -> Problem:
    text = translate_error(message.msg)
    if _may_be_secret(message.msg.partition(" ")[0]):
        text = _without_value(message.msg)
    return Problem(
        text=without_secrets(text, secrets),
        hint=without_secrets(translate_error(message.hint or ""), secrets),
        serious=message.level >= SERIOUS,
    )


def _without_value(text: str) -> str:
    problem = text.params.get("problem") if isinstance(text, ErrorText) else None
    if problem is not None:
        return f"{translate_error(problem)}."
    return WRONG_VALUE.sub(".", translate_error(text))


def _setting(name: str, problems: list[Problem], stored: StoredSetting | None) -> dict[str, Any]:
    """Return a setting. ``value`` and ``origin``: texts to display, without any part of a secret.

    ``changeable``: here, while the server runs; ``stored``: who stored a value, and when.
    """
    value = getattr(settings, name)
    return {
        "name": name,
        "value": value_shown(name, value),
        "origin": origin_shown(name),
        "meaning": str(OWN_SETTINGS[name].meaning),
        "is_set": value not in (None, "", frozenset(), []),
        "is_default": settings.CONFIG_ORIGINS[name] == "default",
        "changeable": name in CHANGEABLE and not is_set_elsewhere(name),
        "stored": stored_shown(stored) if stored else "",
        "problems": [problem for problem in problems if name in _names_in(problem)],
    }


def stored_shown(stored: StoredSetting) -> str:
    """Return who stored a value, and when; of a long secret its end, by which it is known again."""
    words = {
        "time": date_format(localtime(stored.changed_at), "SHORT_DATETIME_FORMAT"),
        "who": stored.changed_by,
    }
    text = _("stored by %(who)s, %(time)s") % words
    secret = OWN_SETTINGS[stored.name].secret and stored_text(stored.name, stored.value)
    if secret and len(secret) >= MIN_LENGTH_WITH_END:
        return _("set, ends in …%(end)s, %(text)s") % {"end": secret[-4:], "text": text}
    return text


def value_shown(name: str, value: object) -> str:
    """Return the value as text; for a secret only its length."""
    text = _text(value)
    if OWN_SETTINGS[name].secret:
        return secret_shown(text)
    if isinstance(OWN_SETTINGS[name], Url):
        return address_shown(text)
    return text or _("not set")


def _may_be_secret(name: str) -> bool:
    setting = OWN_SETTINGS.get(name)
    return isinstance(setting, Url) or (setting is not None and setting.secret)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, frozenset | list | tuple | set):
        return ", ".join(sorted(map(str, value)))
    return str(value)


def origin_shown(name: str) -> str:
    """Return where a setting's value comes from."""
    origin = settings.CONFIG_ORIGINS[name]
    if any(error.startswith(f"{name} ") for error in settings.CONFIG_ERRORS):
        return _("default: what was given is wrong")
    if origin == "default" and OWN_SETTINGS[name].file:
        return _("made by itself, in DATA_DIR")
    words = {"environment": _("environment"), "default": _("default"), "stored": _("stored")}
    return words.get(origin, origin)


def _names_in(problem: Problem) -> set[str]:
    """Return the settings that a problem names in its text. A hint names alternatives."""
    return set(re.findall(r"\b[A-Z][A-Z_]{2,}\b", problem.text))


# Show that a secret is set without showing any of it.

HIDDEN = "•••"
# Of shorter ones too much would be told.
MIN_LENGTH_WITH_END = 16
# Shorter secrets would also match parts of common words.
MIN_REPLACED = 6


def secret_shown(value: str) -> str:
    """Return the length of the secret: enough to see that it was pasted completely."""
    if not value:
        return _("not set")
    return ngettext("set, %(count)d character", "set, %(count)d characters", len(value)) % {
        "count": len(value)
    }


def address_shown(value: str) -> str:
    """Return an address without the parts that may hold credentials.

    These are the user information and everything after the path. An address that can't be parsed is
    hidden completely.
    """
    if not value:
        return _("not set")
    try:
        parts = urlsplit(value)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return secret_shown(value)
    if not parts.scheme or not host or "@" in parts.path:
        return secret_shown(value)
    user = f"{HIDDEN}@" if "@" in parts.netloc else ""
    place = f"[{host}]" if ":" in host else host
    rest = f"?{HIDDEN}" if parts.query or parts.fragment else ""
    return f"{parts.scheme}://{user}{place}{f':{port}' if port else ''}{parts.path}{rest}"


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """Return a system check's text without the secret values that it may repeat."""
    long = {each for each in secrets if len(each) >= MIN_REPLACED}
    for secret in sorted(long, key=len, reverse=True):
        text = text.replace(secret, HIDDEN).replace(repr(secret)[1:-1], HIDDEN)
    return text
