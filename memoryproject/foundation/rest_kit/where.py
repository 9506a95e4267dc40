"""The filter grammar: a JSON object such as ``{"and": [{"metadata.price": {"gte": 10}}]}`` to a Q.

Each resource has a table of its fields. Every condition holds or doesn't, also of what is missing,
so that ``not`` and ``ne`` match exactly the other rows.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any, NoReturn, Protocol
from uuid import UUID

from django.db.models import BooleanField, Case, F, Func, JSONField, Q, Value, When
from django.db.models.lookups import Exact, In
from rest_framework.exceptions import ValidationError

from memoryproject.foundation.rest_kit.bodies import read_json
from memoryproject.foundation.rest_kit.errors import refuse
from memoryproject.foundation.rest_kit.serializers import OBJECT, StoredMoment, json_kind

MAX_DEPTH = 10
MAX_CONDITIONS = 200
MAX_ITEMS = 1_000
MAX_TEXT = 8_192
# PostgreSQL's integers. Numbers in JSON may be larger, up to what every client can read.
MAX_NUMBER = 2**31
MAX_JSON_NUMBER = sys.float_info.max

LOGIC = ("and", "or", "not")
SIGNS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
SAME = ("eq", "ne", "in", "nin", "exists")
PARTS = ("contains", "icontains")
OPERATORS = (*SAME, *SIGNS, *PARTS)
EXAMPLE = '{"metadata.price": {"gte": 10}}'

Path = tuple[str | int, ...]


class Target(Protocol):
    """What conditions are about: a row of a table of fields."""

    @property
    def operators(self) -> Collection[str]: ...

    def read(self, operator: str, value: Any) -> Any:
        """Return the value as it is compared. Raises ValueError, which says what it must be."""

    def null(self) -> Q:
        """Return the condition that there is no value."""

    def exists(self) -> Q: ...

    def among(self, values: Sequence[Any]) -> Q:
        """Return the condition of ``in``; a value may be None."""

    def holds(self, operator: str, value: Any) -> Q:
        """Return the condition of ``eq``, of an order, or of a part."""


@dataclass(frozen=True)
class Kind:
    """The values of a column. ``read`` raises ValueError or ValidationError for another value."""

    meaning: str
    read: Callable[[Any], Any]
    operators: Collection[str] = SAME


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise ValueError
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) >= MAX_NUMBER:
        raise ValueError
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


_moment = StoredMoment()
# For the warning about a time without a time zone.
_moment.field_name = "where"

TEXT = Kind(f"a text of at most {MAX_TEXT:,} characters", _text, OPERATORS)
NUMBER = Kind("a number within ±2,147,483,647", _number, (*SAME, *SIGNS))
TRUTH = Kind("true or false", _truth)
MOMENT = Kind("a time", _moment.run_validation, (*SAME, *SIGNS))
ID = Kind("an id, a UUID", lambda value: UUID(_text(value)))


@dataclass(frozen=True)
class Column:
    """A column of one value."""

    name: str
    kind: Kind

    @property
    def operators(self) -> Collection[str]:
        return self.kind.operators

    def read(self, operator: str, value: Any) -> Any:
        try:
            return self.kind.read(value)
        except ValidationError as error:
            details = error.detail.values() if isinstance(error.detail, dict) else [error.detail]
            raise ValueError(str(list(details)[0][0])) from error
        except ValueError:
            raise ValueError(f"It must be {self.kind.meaning}.") from None

    def null(self) -> Q:
        return negated(self.exists())

    def exists(self) -> Q:
        there = Q(**{f"{self.name}__isnull": False})
        # Texts are empty in place of null.
        return there & ~Q(**{self.name: ""}) if self.kind is TEXT else there

    def among(self, values: Sequence[Any]) -> Q:
        known = [value for value in values if value is not None]
        found = Q(**{f"{self.name}__in": known})
        return found | self.null() if len(known) < len(values) else found

    def holds(self, operator: str, value: Any) -> Q:
        return Q(**{f"{self.name}__{'exact' if operator == 'eq' else operator}": value})


@dataclass(frozen=True)
class Labels:
    """A column of several texts. A text stands for one of them, a list for the whole or a part."""

    name: str
    operators = (*SAME, "contains")

    def read(self, operator: str, value: Any) -> Any:
        texts = value if isinstance(value, list) and operator != "in" else [value]
        if len(texts) > MAX_ITEMS or not all(isinstance(text, str) for text in texts):
            raise ValueError("It must be a text" + (", or a list of them." * (operator != "in")))
        return value

    def null(self) -> Q:
        return negated(self.exists())

    def exists(self) -> Q:
        return ~Q(**{self.name: []})

    def among(self, values: Sequence[Any]) -> Q:
        found = Q(**{f"{self.name}__overlap": [text for text in values if text is not None]})
        return found | self.null() if None in values else found

    def holds(self, operator: str, value: Any) -> Q:
        if isinstance(value, str):
            return Q(**{f"{self.name}__contains": [value]})
        return Q(**{f"{self.name}__{'exact' if operator == 'eq' else operator}": value})


@dataclass(frozen=True)
class Json:
    """A column of JSON objects, or with ``names`` the value at this place within them.

    Values of different types are different, and in no order. Equality and containment are asked
    of the whole column, whose index then helps; the others by paths of SQL/JSON, in which texts
    are ordered by their code points.
    """

    column: str
    names: tuple[str, ...] = ()
    operators = OPERATORS

    def read(self, operator: str, value: Any) -> Any:
        is_ordered = isinstance(value, str | int | float) and not isinstance(value, bool)
        if operator in SIGNS and not is_ordered:
            raise ValueError("It must be a number or a text: only these have an order.")
        if operator == "icontains" and not isinstance(value, str):
            raise ValueError("It must be a text.")
        if not self.names and not isinstance(value, dict):
            raise ValueError(f"It must be {OBJECT}: name a value as {self.column}.name.")
        _check_json(value, MAX_DEPTH)
        return value

    def null(self) -> Q:
        return negated(self._at("? (@ != null)"))

    def exists(self) -> Q:
        return self._at()

    def among(self, values: Sequence[Any]) -> Q:
        found = Q()
        others = []
        for value in values:
            if value is None:
                found |= self.null()
            elif isinstance(value, bool):
                # Python, and so Django, takes true for 1.
                found |= self.holds("eq", value)
            else:
                others.append(value)
        return found | Q(In(self._value(), others))

    def holds(self, operator: str, value: Any) -> Q:
        if operator in SIGNS:
            return self._at(f"? (@ {SIGNS[operator]} {json.dumps(value)})")
        if operator == "icontains":
            return self._at(f'? (@ like_regex {json.dumps(value)} flag "iq")')
        if operator == "eq":
            found = self._contains(value)
            if isinstance(value, dict | list):
                found &= Q(Exact(self._value(), Value(value, JSONField())))
            return found
        if isinstance(value, list):
            return self._contains(value)
        found = self._contains([value])
        if isinstance(value, str):
            found |= self._at(f'? (@ like_regex {json.dumps(value)} flag "q")')
        return found | self._contains(value) if isinstance(value, dict) else found

    def _contains(self, value: Any) -> Q:
        for name in reversed(self.names):
            value = {name: value}
        return Q(**{f"{self.column}__contains": value})

    def _value(self) -> Any:
        names = map(Value, self.names)
        field = JSONField()
        return Func(F(self.column), *names, function="jsonb_extract_path", output_field=field)

    def _at(self, condition: str = "") -> Q:
        """Return the condition that there is a value at the place, for which this holds."""
        place = "".join(f".{json.dumps(name)}" for name in self.names)
        return Q(
            Func(
                F(self.column),
                Value(f"strict ${place} {condition}"),
                template="(%(expressions)s::jsonpath)",
                arg_joiner=" @? ",
                output_field=BooleanField(),
            )
        )


def _check_json(value: Any, deepest: int) -> None:
    """Raise ValueError for a value that is nested deeper, is too long, or is too large."""
    if isinstance(value, str) and len(value) > MAX_TEXT:
        raise ValueError(f"It has more than {MAX_TEXT:,} characters.")
    if isinstance(value, int) and abs(value) > MAX_JSON_NUMBER:
        raise ValueError("The number is out of range.")
    parts = list(value.values()) if isinstance(value, dict) else value
    if isinstance(parts, list):
        if deepest == 0 or len(parts) > MAX_ITEMS:
            raise ValueError(f"It is nested too deeply, or has more than {MAX_ITEMS:,} values.")
        for each in parts:
            _check_json(each, deepest - 1)


Fields = Mapping[str, Target]


def columns(kind: Kind, *names: str) -> dict[str, Target]:
    """Return the rows of columns that have their fields' names."""
    return {name: Column(name, kind) for name in names}


def negated(condition: Q) -> Q:
    """Return the condition that this one doesn't hold, also where SQL's answer is null."""
    holds = When(condition, then=Value(True))
    return ~Q(Case(holds, default=Value(False), output_field=BooleanField()))


def read_where(text: str, fields: Fields) -> Q:
    """Return the Q of an expression in a query parameter. Raises ValidationError."""
    try:
        return where(read_json(text), fields)
    except (ValueError, RecursionError):
        raise refuse(f"It is no JSON object such as {EXAMPLE}.", attr="where") from None


def where(expression: Any, fields: Fields) -> Q:
    """Return the Q of an expression; of an empty one, one that always holds.

    Raises ValidationError, which names the place within the expression.
    """
    return Q() if expression == {} else _Reader(fields).expression(expression, ("where",), 0)


def _refuse(detail: str, path: Path, *, code: str = "invalid") -> NoReturn:
    attr = ".".join(str(part)[:50] for part in path)
    parts = [f"[{part}]" if isinstance(part, int) else f".{part[:50]}" for part in path]
    raise refuse(f"{''.join(parts)[1:]}: {detail}", code=code, attr=attr)


def _spelt(name: str) -> str:
    """Return the name of an operator that others spell $gt or AND."""
    return name.removeprefix("$").lower()


class _Reader:
    """Reads one expression, and counts its conditions."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._conditions = 0

    def expression(self, given: Any, path: Path, depth: int) -> Q:
        if not isinstance(given, dict):
            _refuse(f"It must be {OBJECT} such as {EXAMPLE}, not {json_kind(given)}.", path)
        if not given:
            _refuse("It is empty.", path)
        if depth > MAX_DEPTH:
            _refuse(f"It is nested deeper than {MAX_DEPTH} levels.", path)
        found = (self._named(name, each, (*path, name), depth) for name, each in given.items())
        return reduce(and_, found)

    def _named(self, name: str, given: Any, path: Path, depth: int) -> Q:
        logic = _spelt(name)
        if logic in LOGIC:
            return self._joined(logic, given, path, depth)
        if name in self._fields:
            return self._condition(self._fields[name], given, path, depth)
        first, *names = name.split(".")
        column = self._fields.get(first)
        if not isinstance(column, Json) or not all(names):
            known = ", ".join(self._fields)
            within = ", and metadata.name" if "metadata" in self._fields else ""
            detail = f"There is no such field here. Fields are: {known}{within}."
            _refuse(detail, path, code="unknown_field")
        return self._condition(Json(column.column, tuple(names)), given, path, depth)

    def _joined(self, logic: str, given: Any, path: Path, depth: int) -> Q:
        """Return what all or one of the expressions say; ``not`` denies each of them."""
        if logic == "not" and isinstance(given, dict):
            return negated(self.expression(given, path, depth + 1))
        if not isinstance(given, list) or not given:
            _refuse("It must be a list of one or more objects.", path)
        items = enumerate(given)
        parts = [self.expression(each, (*path, place), depth + 1) for place, each in items]
        found = reduce(and_ if logic == "and" else or_, parts)
        return negated(found) if logic == "not" else found

    def _condition(self, target: Target, given: Any, path: Path, depth: int) -> Q:
        """Return the condition on one field: its operators, or a value that it equals."""
        if not isinstance(given, dict):
            return self._compared(target, "eq", given, path)
        if not given:
            _refuse("It is empty.", path)
        if depth > MAX_DEPTH:
            _refuse(f"It is nested deeper than {MAX_DEPTH} levels.", path)
        known = [name for name in given if _spelt(name) in (*OPERATORS, "not")]
        if isinstance(target, Json) and not target.names and not known:
            parts = (
                self._condition(Json(target.column, (name,)), each, (*path, name), depth + 1)
                for name, each in given.items()
            )
            return reduce(and_, parts)
        unknown = next((name for name in given if name not in known), None)
        if unknown is not None:
            detail = f"There is no such operator. There are: {', '.join(target.operators)}, not."
            _refuse(detail, (*path, unknown), code="unknown_operator")
        return reduce(
            and_,
            (
                negated(self._condition(target, each, (*path, name), depth + 1))
                if _spelt(name) == "not"
                else self._compared(target, _spelt(name), each, (*path, name))
                for name, each in given.items()
            ),
        )

    def _compared(self, target: Target, operator: str, value: Any, path: Path) -> Q:
        self._conditions += 1
        if self._conditions > MAX_CONDITIONS:
            _refuse(f"There are more than {MAX_CONDITIONS} conditions.", path)
        if operator not in target.operators:
            detail = f"This field has no such operator. It has: {', '.join(target.operators)}."
            _refuse(detail, path, code="unknown_operator")
        if operator in ("ne", "nin"):
            return negated(self._holds(target, {"ne": "eq", "nin": "in"}[operator], value, path))
        return self._holds(target, operator, value, path)

    def _holds(self, target: Target, operator: str, value: Any, path: Path) -> Q:
        if operator == "exists":
            if not isinstance(value, bool):
                _refuse("It must be true or false.", path)
            return target.exists() if value else negated(target.exists())
        if operator == "in":
            if not isinstance(value, list) or len(value) > MAX_ITEMS:
                _refuse(f"It must be a list of at most {MAX_ITEMS:,} values.", path)
            items = enumerate(value)
            read = [self._read(target, operator, each, (*path, place)) for place, each in items]
            return target.among(read)
        if value is None and operator == "eq":
            return target.null()
        return target.holds(operator, self._read(target, operator, value, path))

    def _read(self, target: Target, operator: str, value: Any, path: Path) -> Any:
        if value is None and operator == "in":
            return None
        try:
            return target.read(operator, value)
        except ValueError as error:
            _refuse(str(error), path)
