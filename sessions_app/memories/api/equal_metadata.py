"""Metadata by which memories are found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rest_framework import serializers

from sessions_app.memories.api.serializers import Metadata

OPERATORS = frozenset(
    ("eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "not", "and", "or", "contains", "icontains")
)


class EqualMetadata(Metadata):
    """Names with values that are compared for equality.

    The operators of other products are refused: as names they would match nothing.
    """

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        found = super().to_internal_value(data)
        operator = next(_operators(found), None)
        if operator is not None:
            raise serializers.ValidationError(
                f"Values are compared for equality: there is no operator {operator[:50]}."
            )
        return found


def _operators(value: Any, *, is_nested: bool = False) -> Iterator[str]:
    """Yield the names that other products take for operators."""
    if isinstance(value, list):
        for each in value:
            yield from _operators(each, is_nested=True)
    elif isinstance(value, dict):
        for name, each in value.items():
            if (
                name.startswith("$")
                or (is_nested and name.lower() in OPERATORS)
                or (name in ("AND", "OR", "NOT"))
            ):
                yield name
            yield from _operators(each, is_nested=True)
