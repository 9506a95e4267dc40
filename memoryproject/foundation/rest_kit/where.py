"""The filter grammar: a JSON object such as ``{"and": [{"metadata.price": {"gte": 10}}]}`` to a Q.

Each resource has a table of its fields. Every condition holds or doesn't, also of what is missing,
so that ``not`` and ``ne`` match exactly the other rows.
"""

import json
import sys
from collections.abc import Collection, Mapping
from functools import reduce
from operator import and_, or_
from typing import Any, NamedTuple, NoReturn

from django.db.models import BooleanField, Case, F, Func, JSONField, Q, Value, When
from django.db.models.lookups import Exact, In
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from drf_standardized_errors.formatter import flatten_errors
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from memoryproject.foundation.rest_kit import bodies, errors
from memoryproject.foundation.rest_kit.serializers import (
    OBJECT,
    Number,
    StoredMoment,
    Text,
    Truth,
    Whole,
    json_kind,
)

# A name and a place in a list are a step each.
MAX_STEPS = 24
MAX_CONDITIONS = 200
MAX_ITEMS = 1_000
MAX_TEXT = 8_192
MAX_JSON_DEPTH = 10

SIGNS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
SAME = ("eq", "ne", "in", "nin", "exists")
OPERATORS = (*SAME, *SIGNS, "contains", "icontains")
# Those that deny another one.
DENYING = {"ne": "eq", "nin": "in"}
EXAMPLE = '{"metadata.price": {"gte": 10}}'

Path = tuple[str | int, ...]


def negated(condition: Q) -> Q:
    """Return the condition that this one doesn't hold, also where SQL's answer is null."""
    holds = When(condition, then=Value(True))
    return ~Q(Case(holds, default=Value(False), output_field=BooleanField()))


class Kind(NamedTuple):
    """The values of a column: ``field`` checks them."""

    field: serializers.Field[Any, Any, Any, Any]
    operators: Collection[str]


_moment = StoredMoment()
# For the warning about a time without a time zone.
_moment.field_name = "where"
TEXT = Kind(Text(max_length=MAX_TEXT, allow_blank=True), OPERATORS)
NUMBER = Kind(Number(), (*SAME, *SIGNS))
WHOLE = Kind(Whole(min_value=-(2**31), max_value=2**31 - 1), (*SAME, *SIGNS))
TRUTH = Kind(Truth(), SAME)
MOMENT = Kind(_moment, (*SAME, *SIGNS))
ID = Kind(serializers.UUIDField(), SAME)


class Column:
    """What conditions are about, a row of a table of fields: here a column of one value."""

    lookups = {"eq": "exact"}

    def __init__(self, name: str, kind: Kind) -> None:
        self.name = name
        self._kind = kind
        self.operators = kind.operators

    def read(self, operator: str, value: Any) -> Any:
        """Return a value, which isn't null, as it is compared. Raises ValidationError."""
        return self._kind.field.run_validation(value)

    def exists(self) -> Q:
        there = Q(**{f"{self.name}__isnull": False})
        # Texts are empty in place of null.
        return there & ~Q(**{self.name: ""}) if self._kind is TEXT else there

    def null(self) -> Q:
        return negated(self.exists())

    def holds(self, operator: str, value: Any) -> Q:
        """Return the condition of ``eq``, of ``in`` with a list, of an order, or of a part."""
        return Q(**{f"{self.name}__{self.lookups.get(operator, operator)}": value})


class Labels(Column):
    """A column of several texts. A text stands for one of them, a list for the whole or a part."""

    lookups = {"eq": "exact", "in": "overlap"}

    def __init__(self, name: str) -> None:
        super().__init__(name, Kind(TEXT.field, (*SAME, "contains")))

    def read(self, operator: str, value: Any) -> Any:
        for text in value if isinstance(value, list) and operator != "in" else [value]:
            super().read(operator, text)
        return value

    def exists(self) -> Q:
        return ~Q(**{self.name: []})

    def holds(self, operator: str, value: Any) -> Q:
        is_one = isinstance(value, str)
        return super().holds("contains", [value]) if is_one else super().holds(operator, value)


class Json(Column):
    """A column of JSON objects, or with ``names`` the value at this place within them.

    Values of different types are different, and in no order. Equality and containment are asked
    of the whole column, whose index then helps; the others by paths of SQL/JSON, in which texts
    are ordered by their code points.
    """

    def __init__(self, name: str, *names: str) -> None:
        super().__init__(name, Kind(serializers.JSONField(), OPERATORS))
        self.names = names

    def read(self, operator: str, value: Any) -> Any:
        is_ordered = isinstance(value, str | int | float) and not isinstance(value, bool)
        if operator in SIGNS and not is_ordered:
            raise ValidationError("It must be a number or a text: only these have an order.")
        if operator == "icontains" and not isinstance(value, str):
            raise ValidationError("It must be a text.")
        if not self.names and not isinstance(value, dict):
            raise ValidationError(f"It must be {OBJECT}: name a value as {self.name}.name.")
        _check_json(value, MAX_JSON_DEPTH)
        return value

    def null(self) -> Q:
        return negated(self._at("? (@ != null)"))

    def exists(self) -> Q:
        return self._at()

    def holds(self, operator: str, value: Any) -> Q:
        if operator == "in":
            # Python, and so Django, takes true for 1.
            others = [each for each in value if not isinstance(each, bool)]
            truths = (self._contains(each) for each in value if isinstance(each, bool))
            return reduce(or_, truths, Q(In(self._value(), others)))
        text = json.dumps(value)
        if operator in SIGNS:
            return self._at(f"? (@ {SIGNS[operator]} {text})")
        if operator == "icontains":
            return self._at(f'? (@ like_regex {text} flag "iq")')
        found = self._contains(value)
        if operator == "eq" and isinstance(value, dict | list):
            return found & Q(Exact(self._value(), Value(value, JSONField())))
        if operator == "eq" or isinstance(value, list):
            return found
        item = self._contains([value])
        if isinstance(value, str):
            return item | self._at(f'? (@ like_regex {text} flag "q")')
        return item | found if isinstance(value, dict) else item

    def _contains(self, value: Any) -> Q:
        for name in reversed(self.names):
            value = {name: value}
        return Q(**{f"{self.name}__contains": value})

    def _value(self) -> Any:
        names = map(Value, self.names)
        field = JSONField()
        return Func(F(self.name), *names, function="jsonb_extract_path", output_field=field)

    def _at(self, condition: str = "") -> Q:
        """Return the condition that there is a value at the place, for which this holds."""
        place = "".join(f".{json.dumps(name)}" for name in self.names)
        path = Value(f"strict ${place} {condition}")
        return Q(_PathExists(F(self.name), path, output_field=BooleanField()))


class _PathExists(Func):
    template = "(%(expressions)s::jsonpath)"
    arg_joiner = " @? "


def _check_json(value: Any, deepest: int) -> None:
    """Raise ValidationError for a value that is nested deeper, is too long, or is too large."""
    if isinstance(value, str) and len(value) > MAX_TEXT:
        raise ValidationError(f"It has more than {MAX_TEXT:,} characters.")
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        raise ValidationError("The number is out of range.")
    parts = list(value.values()) if isinstance(value, dict) else value
    if isinstance(parts, list):
        if deepest == 0 or len(parts) > MAX_ITEMS:
            raise ValidationError(
                f"It is nested too deeply, or has more than {MAX_ITEMS:,} values."
            )
        for each in parts:
            _check_json(each, deepest - 1)


Fields = Mapping[str, Column]


@extend_schema_field(OpenApiTypes.OBJECT)
class Condition(serializers.Field[Any, Any, Any, Any]):
    """An expression in a body: ``where`` reads and checks it."""

    def __init__(self) -> None:
        super().__init__(default=dict, help_text=f"A condition such as `{EXAMPLE}`.")

    def to_internal_value(self, data: Any) -> Any:
        return data


def columns(kind: Kind, *names: str) -> dict[str, Column]:
    """Return the rows of columns that have their fields' names."""
    return {name: Column(name, kind) for name in names}


def read_where(text: str, fields: Fields) -> Q:
    """Return the Q of an expression in a query parameter. Raises ValidationError."""
    try:
        return where(bodies.read_json(text, "where"), fields)
    except (ValueError, RecursionError):
        raise errors.refuse(f"It is no JSON object such as {EXAMPLE}.", attr="where") from None


def where(expression: Any, fields: Fields) -> Q:
    """Return the Q of an expression; of an empty one, one that always holds.

    Raises ValidationError, which names the place within the expression.
    """
    return Q() if expression == {} else _Reader(fields).expression(expression, ("where",))


def _refuse(detail: str, path: Path, *, code: str = "invalid") -> NoReturn:
    attr = ".".join(str(part)[:50] for part in path)
    parts = [f"[{part}]" if isinstance(part, int) else f".{part[:50]}" for part in path]
    raise errors.refuse(f"{''.join(parts)[1:]}: {detail}", code=code, attr=attr)


def _spelt(name: str) -> str:
    """Return the name of an operator that others spell $gt or AND."""
    return name.removeprefix("$").lower()


class _Reader:
    """Reads one expression, and counts its conditions."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._conditions = 0

    def expression(self, given: Any, path: Path) -> Q:
        if not isinstance(given, dict) or not given:
            what = "an empty one" if given == {} else json_kind(given)
            _refuse(f"It must be {OBJECT} such as {EXAMPLE}, not {what}.", path)
        return reduce(and_, [self._named(name, each, path) for name, each in given.items()])

    def _named(self, name: str, given: Any, path: Path) -> Q:
        path = (*path, name)
        if len(path) > MAX_STEPS:
            _refuse("It is nested too deeply.", path)
        logic = _spelt(name)
        if logic == "not" and isinstance(given, dict):
            return negated(self.expression(given, path))
        if logic in ("and", "or", "not"):
            if not isinstance(given, list) or not given:
                _refuse("It must be a list of one or more objects.", path)
            parts = [self.expression(each, (*path, place)) for place, each in enumerate(given)]
            found = reduce(and_ if logic == "and" else or_, parts)
            return negated(found) if logic == "not" else found
        return self._condition(self._target(name, path), given, path)

    def _target(self, name: str, path: Path) -> Column:
        if name in self._fields:
            return self._fields[name]
        first, *names = name.split(".")
        column = self._fields.get(first)
        if isinstance(column, Json) and all(names) and len(names) < MAX_STEPS:
            return Json(column.name, *names)
        within = [f"{name}.name" for name, each in self._fields.items() if isinstance(each, Json)]
        known = ", ".join([*self._fields, *within])
        _refuse(f"There is no such field here. There are: {known}.", path, code="unknown_field")

    def _condition(self, target: Column, given: Any, path: Path) -> Q:
        """Return the condition on one field: its operators, or a value that it equals."""
        if not isinstance(given, dict):
            return self._compared(target, "eq", given, path)
        if not given or len(path) > MAX_STEPS:
            _refuse("It is empty, or nested too deeply.", path)
        operators = (*target.operators, "not")
        is_whole = isinstance(target, Json) and not target.names
        if is_whole and not any(_spelt(name) in operators for name in given):
            parts = [
                self._condition(Json(target.name, name), each, (*path, name))
                for name, each in given.items()
            ]
            return reduce(and_, parts)
        found = Q()
        for name, each in given.items():
            operator, place = _spelt(name), (*path, name)
            if operator not in operators:
                detail = f"There is no such operator here. There are: {', '.join(operators)}."
                _refuse(detail, place, code="unknown_operator")
            found &= self._compared(target, operator, each, place)
        return found

    def _compared(self, target: Column, operator: str, value: Any, path: Path) -> Q:
        if operator == "not":
            return negated(self._condition(target, value, path))
        if operator in DENYING:
            return negated(self._compared(target, DENYING[operator], value, path))
        self._conditions += 1
        if self._conditions > MAX_CONDITIONS:
            _refuse(f"There are more than {MAX_CONDITIONS} conditions.", path)
        if operator == "exists":
            if not isinstance(value, bool):
                _refuse("It must be true or false.", path)
            return target.exists() if value else negated(target.exists())
        if operator == "in":
            if not isinstance(value, list) or len(value) > MAX_ITEMS:
                _refuse(f"It must be a list of at most {MAX_ITEMS:,} values.", path)
            known = [
                _read(target, operator, each, (*path, place))
                for place, each in enumerate(value)
                if each is not None
            ]
            found = target.holds(operator, known)
            return found | target.null() if len(known) < len(value) else found
        if value is None and operator == "eq":
            return target.null()
        return target.holds(operator, _read(target, operator, value, path))


def _read(target: Column, operator: str, value: Any, path: Path) -> Any:
    try:
        return target.read(operator, value)
    except ValidationError as error:
        _refuse(flatten_errors(error.detail)[0].detail, path)
