"""Columns that store the code of an ErrorText and return the ErrorText.

In migrations they are ordinary text and JSON columns.
"""

from __future__ import annotations

import json
from typing import Any

from django.db import models

from memoryproject.foundation.errors.stored_errors import (
    ErrorText,
    error_from_column,
    error_to_column,
)


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
