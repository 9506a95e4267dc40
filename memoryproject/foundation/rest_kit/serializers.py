"""Parts of serializers (strict objects, unchanged texts, times in UTC) and filters of lists."""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import django_filters
from django import forms
from django.utils.dateparse import parse_datetime
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from memoryproject.foundation.text.uuids import EARLIEST, LATEST, is_storable, iso_utc

logger = logging.getLogger(__name__)


OBJECT = "a JSON object"
# What whole objects are told of: the shape of errors has null for it.
WHOLE = "non_field_errors"


def json_kind(value: Any) -> str:
    """Return what JSON calls a value."""
    if value is None:
        return "null"
    kinds = ((bool, "true or false"), (str, "a text"), (int | float, "a number"), (list, "a list"))
    return next((name for kind, name in kinds if isinstance(value, kind)), OBJECT)


class Strict(serializers.Serializer[Any]):
    """An object whose fields are all known: a misspelt field is refused, not ignored."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            unknown = [name for name in data if name not in self.fields]
            if unknown:
                known = ", ".join(self.fields) or "none"
                detail = f"There is no such field here. Fields are: {known}."
                raise serializers.ValidationError(
                    {str(name)[:100]: [detail] for name in unknown[:20]}, code="unknown_field"
                )
        else:
            detail = f"It must be {OBJECT}, not {json_kind(data)}."
            raise serializers.ValidationError({WHOLE: [detail]}, code="invalid")
        return super().to_internal_value(data)


def checked_data(
    serializer_class: type[serializers.Serializer[Any]], data: Any, *, partial: bool = False
) -> dict[str, Any]:
    """Return the checked data; ``partial``: no field is required. Raises ValidationError."""
    serializer = serializer_class(data=data, partial=partial)
    serializer.is_valid(raise_exception=True)
    checked: dict[str, Any] = serializer.validated_data
    return checked


class Nothing(Strict):
    """The body of a call that needs none: any content is refused."""


class Object(serializers.DictField):
    """A JSON object of any names and values. Errors speak of JSON, not of Python."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("child", serializers.JSONField(allow_null=True))
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise serializers.ValidationError(
                f"It must be {OBJECT}, not {json_kind(data)}.", code="not_a_dict"
            )
        return dict(super().to_internal_value(data))


class Text(serializers.CharField):
    """A text, stored byte for byte: nothing is trimmed, and a number isn't accepted."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("trim_whitespace", False)
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class Choice(serializers.ChoiceField):
    """One of some texts; the error lists them."""

    def __init__(self, choices: Any, **kwargs: Any) -> None:
        super().__init__(choices, **kwargs)
        known = ", ".join(map(str, self.choices))
        self.error_messages["invalid_choice"] = f'"{{input}}" is not one of {known}.'


class Items(serializers.ListField):
    """A JSON list. Errors speak of JSON, not of Python."""

    def to_internal_value(self, data: Any) -> list[Any]:
        if not isinstance(data, list):
            raise serializers.ValidationError(
                f"It must be a JSON list, not {json_kind(data)}.", code="not_a_list"
            )
        return list(super().to_internal_value(data))


class Number(serializers.FloatField):
    """A JSON number; a text that looks like a number isn't accepted."""

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("invalid")
        return float(super().to_internal_value(data))


class Whole(serializers.IntegerField):
    """A JSON whole number."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, float) and data.is_integer():
            data = int(data)
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return data


class Truth(serializers.BooleanField):
    """A JSON true or false; words for them aren't accepted."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


@extend_schema_field(OpenApiTypes.DATETIME)
class Moment(serializers.DateTimeField):
    """An ISO 8601 time, shown in UTC with Z.

    A time without a time zone is read as UTC, with a WARNING (ERR-INTEGRATION-004).
    """

    default_error_messages = {
        "moment": "It must be an ISO 8601 time, such as 2026-01-31T09:30:00Z.",
        "range": "The time is out of range.",
    }

    def to_internal_value(self, value: Any) -> datetime:
        found = None
        if isinstance(value, str):
            try:
                # In a query string a plus sign arrives as a space.
                found = parse_datetime(value.replace(" ", "+") if "T" in value else value)
            except ValueError:
                found = None
        if found is None:
            self.fail("moment")
        if found.tzinfo is None:
            logger.warning("%s has no time zone: it counts as UTC.", self.field_name)
            return found.replace(tzinfo=timezone.utc)
        try:
            return found.astimezone(timezone.utc)
        except OverflowError:
            self.fail("range")


class StoredMoment(Moment):
    """A time that is stored, so that it must be showable in every time zone."""

    default_error_messages = {
        "range": (
            "The time is out of range: it must lie between "
            f"{iso_utc(EARLIEST)} and {iso_utc(LATEST)}."
        )
    }

    def to_internal_value(self, value: Any) -> datetime:
        found = super().to_internal_value(value)
        if not is_storable(found):
            self.fail("range")
        return found


class ApiErrorSerializer(serializers.Serializer[Any]):
    """One error in the request or its processing."""

    code = serializers.CharField()
    detail = serializers.CharField()
    attr = serializers.CharField(allow_null=True)


class ErrorResponseSerializer(serializers.Serializer[Any]):
    """The shape of all error responses."""

    type = serializers.ChoiceField(["validation_error", "client_error", "server_error"])
    errors = ApiErrorSerializer(many=True)  # type: ignore[assignment]


# Filters of lists that refuse every value without a defined meaning.


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
