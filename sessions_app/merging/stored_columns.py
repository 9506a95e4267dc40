"""Keep columns of a row as JSON, and put them back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.db.models import Model

Columns = dict[str, str | None]


def columns_of(row: Model | None, names: Collection[str]) -> Columns | None:
    """Return these columns as texts; None for no row."""
    if row is None:
        return None
    fields: list[Any] = [row._meta.get_field(name) for name in names]
    return {
        field.name: None if field.value_from_object(row) is None else field.value_to_string(row)
        for field in fields
    }


def columns_set(row: Model, columns: Mapping[str, str | None]) -> None:
    """Set these columns of a row, without saving it."""
    for name, value in columns.items():
        field: Any = row._meta.get_field(name)
        setattr(row, field.attname, None if value is None else field.to_python(value))
