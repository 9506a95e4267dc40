"""Errors that are stored by code and parameters, and the field that stores them."""

import json
from collections.abc import Mapping
from typing import Any

from django import template
from django.db import models
from django.utils.translation import gettext

from memoryproject.foundation.tables import read_table
from memoryproject.foundation.text.characters import storable

# The English text of each code.
CATALOGUE: dict[str, str] = read_table(__file__, "catalogue.yaml", text=str)
_BEGINNING = '{"code": '


class ErrorText(str):
    """The English text of an error, with its code and its parameters.

    A parameter may be an ErrorText itself. ``str()``, slices and f-strings lose the code.
    """

    __slots__ = ("code", "params")

    code: str
    params: dict[str, Any]

    def __new__(cls, code: str, /, **params: object) -> "ErrorText":
        """Create the text. Raises KeyError for an unknown code or a missing parameter."""
        kept = {
            name: value if isinstance(value, (int, ErrorText)) else str(value)
            for name, value in params.items()
        }
        made = super().__new__(cls, CATALOGUE[code] % kept)
        made.code = code
        made.params = kept
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (self.code, self.params)

    def as_dict(self) -> dict[str, Any]:
        """Return the code and the parameters, in JSON types."""
        params = {
            name: value.as_dict() if isinstance(value, ErrorText) else value
            for name, value in self.params.items()
        }
        return {"code": self.code, "params": params}


def error_text(error: BaseException) -> str:
    """Return the text of an error, with its code if it has one."""
    first = error.args[0] if error.args else None
    return first if isinstance(first, ErrorText) else str(error)


def named_error_text(error: BaseException) -> ErrorText:
    """Return the text of an error after the error's class: "DataError: …"."""
    return ErrorText("of_kind", kind=type(error).__name__, why=error_text(error))


def error_to_column(text: str) -> str:
    """Return the value to store: JSON with the code, or the text if it has none."""
    if isinstance(text, ErrorText):
        text = json.dumps(text.as_dict(), ensure_ascii=False)
    # It may repeat the words of a server.
    return storable(text)


def error_from_column(stored: str) -> str:
    """Return the ErrorText that was stored, or the text unchanged."""
    if not stored.startswith(_BEGINNING):
        return stored
    try:
        return _from_dict(json.loads(stored))
    except (ValueError, LookupError, TypeError, AttributeError):
        # A text of another server that looks like ours, or a code that was removed.
        return stored


def _from_dict(found: Mapping[str, Any]) -> ErrorText:
    params = {
        name: _from_dict(value) if isinstance(value, dict) else value
        for name, value in found["params"].items()
    }
    return _made(found["code"], params)


def _made(code: str, params: Mapping[str, Any]) -> ErrorText:
    return ErrorText(code, **params)


class ErrorField(models.TextField):  # type: ignore[type-arg]
    """A column with one error, or none."""

    def from_db_value(self, value: str | None, _expression: object, _connection: object) -> Any:
        return value if value is None else error_from_column(value)

    def get_prep_value(self, value: Any) -> Any:
        return error_to_column(value) if isinstance(value, str) else super().get_prep_value(value)

    def deconstruct(self) -> Any:
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.TextField", args, kwargs


class ErrorsField(models.JSONField):
    """A JSON column that contains errors, such as a list of them."""

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        return _with_errors(super().from_db_value(value, expression, connection))

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        return super().get_db_prep_value(_with_dicts(value), connection, prepared)

    def deconstruct(self) -> Any:
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.JSONField", args, kwargs


def _with_dicts(value: Any) -> Any:
    if isinstance(value, ErrorText):
        return value.as_dict()
    if isinstance(value, dict):
        return {name: _with_dicts(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_dicts(each) for each in value]
    return value


def _with_errors(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_errors(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"code", "params"}:
        return error_from_column(json.dumps(value, ensure_ascii=False))
    return {name: _with_errors(each) for name, each in value.items()}


# Translate stored errors: ``{{ text|translate_error }}`` in templates.

register = template.Library()


@register.filter
def translate_error(text: str) -> str:
    """Return the text in the active language; a text without a code is returned unchanged."""
    if not isinstance(text, ErrorText):
        return text
    params = {
        name: translate_error(value) if isinstance(value, str) else value
        for name, value in text.params.items()
    }
    return gettext(CATALOGUE[text.code]) % params
