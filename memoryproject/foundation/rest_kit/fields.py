"""Fields of answers, and what each field of the API means, for the schema: ``fields.yaml``."""

from functools import cache
from typing import Any

from rest_framework import serializers

from memoryproject.foundation.tables import read_table


def texts(**options: Any) -> serializers.ListField:
    return serializers.ListField(child=serializers.CharField(), **options)


def json_object(**options: Any) -> serializers.DictField:
    return serializers.DictField(child=serializers.JSONField(), **options)


def meaning_of(owner: Any, name: str) -> str:
    """Return what a field means. ``owner``: the class of its serializer or filters."""
    table, names = _meanings(), [each.__name__ for each in owner.__mro__]
    return next((table[each][name] for each in names if name in table.get(each, ())), "")


@cache
def _meanings() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = read_table(__file__, "fields.yaml")
    return found
