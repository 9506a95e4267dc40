"""Filters of lists that refuse every value without a defined meaning."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import django_filters
from django import forms
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework.exceptions import ValidationError

from memoryproject.foundation.rest_kit.serializers import Moment


class MomentFormField(forms.CharField):
    """A time, in the same form as in the API's bodies."""

    def clean(self, value: Any) -> datetime | None:
        if value is None:
            return None
        try:
            field = Moment()
            field.field_name = "The time"
            return field.run_validation(value)
        except ValidationError as error:
            # With the code that times have in bodies.
            detail = list(error.detail)[0]
            raise forms.ValidationError(str(detail), getattr(detail, "code", None)) from error


class TruthFormField(forms.Field):
    """A boolean that accepts only true or false; Django's own field accepts any word."""

    def clean(self, value: Any) -> bool | None:
        if value in (None, "true", "false"):
            return None if value is None else value == "true"
        raise forms.ValidationError("It is true or false.", "invalid")


def listing(choices: Sequence[tuple[str, Any]]) -> dict[str, str]:
    """Return the error for another value, which lists the choices."""
    known = ", ".join(name for name, _ in choices)
    return {"invalid_choice": f'"%(value)s" is not one of {known}.'}


class ChoiceFilter(django_filters.ChoiceFilter):  # type: ignore[misc]
    """A parameter with one of some values."""

    def __init__(self, *, choices: Sequence[tuple[str, Any]], **kwargs: Any) -> None:
        super().__init__(choices=choices, error_messages=listing(choices), **kwargs)


class ChoicesFilter(django_filters.MultipleChoiceFilter):  # type: ignore[misc]
    """A parameter that may be given several times: rows with one of its values.

    The view names it in ``repeatable``.
    """

    def __init__(self, *, choices: Sequence[tuple[str, Any]], **kwargs: Any) -> None:
        super().__init__(choices=choices, error_messages=listing(choices), distinct=False, **kwargs)


@extend_schema_field(OpenApiTypes.DATETIME)
class MomentFilter(django_filters.Filter):  # type: ignore[misc]
    field_class = MomentFormField


@extend_schema_field(OpenApiTypes.BOOL)
class TruthFilter(django_filters.Filter):  # type: ignore[misc]
    field_class = TruthFormField
