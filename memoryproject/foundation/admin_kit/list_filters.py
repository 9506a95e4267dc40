"""Filters of lists, declared: choices with their conditions, values of a column, typed values,
periods."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone as zones, tzinfo
from typing import Any, ClassVar, TypeAlias

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.db import connection
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy

from memoryproject.foundation.admin_kit.display import moment_shown
from memoryproject.foundation.replica import read_connection

DAYS = {"today": 1, "7": 7, "30": 30}
TODAY = "today"
NAMES = {TODAY: gettext_lazy("Today"), "7": gettext_lazy("7 days"), "30": gettext_lazy("30 days")}
PAST_NAMES = {
    TODAY: gettext_lazy("Today"),
    "7": gettext_lazy("Past 7 days"),
    "30": gettext_lazy("Past 30 days"),
}
# In the address of a list that shows what was counted in a period.
PARAMETER = "when"


class UnknownSpanError(ValueError):
    """The name is not a known time span."""


@dataclass(frozen=True)
class Period:
    """A period from the first border up to the last.

    The slots between the borders are the points of a chart. ``key`` is its name in a URL.
    """

    key: str
    borders: tuple[datetime, ...]

    @property
    def start(self) -> datetime:
        return self.borders[0]

    @property
    def end(self) -> datetime:
        return self.borders[-1]

    @property
    def is_hourly(self) -> bool:
        return self.key == TODAY


def period_named(key: str, *, now: datetime) -> Period:
    """Return today by hours, or the last 7 or 30 days by days, including today.

    Raises KeyError for another name.
    """
    zone = timezone.get_current_timezone()
    today = now.astimezone(zone).date()
    first = today - timedelta(days=DAYS[key] - 1)
    if key == TODAY:
        return Period(key, tuple(_hours(today, zone)))
    days = [first + timedelta(days=number) for number in range(DAYS[key] + 1)]
    return Period(key, tuple(midnight(day, zone) for day in days))


def span_key(start: datetime, end: datetime) -> str:
    """Return the name of a time span, for ``span_of``."""
    return f"{_written(start)}--{_written(end)}"


def span_of(key: str, *, now: datetime) -> tuple[datetime, datetime]:
    """Return the beginning and the end of a named period or time span.

    Raises UnknownSpanError for any other name.
    """
    if key in DAYS:
        period = period_named(key, now=now)
        return period.start, period.end
    first, _, last = key.partition("--")
    try:
        start, end = (datetime.strptime(text, "%Y%m%dT%H%M%z") for text in (first, last))
    except ValueError:
        raise UnknownSpanError(key) from None
    # A time that can't be converted to another zone can't be used in a query either.
    if not (1 < start.year < 9999 and 1 < end.year < 9999):
        raise UnknownSpanError(key)
    return start, end


def _written(moment: datetime) -> str:
    return moment.astimezone(zones.utc).strftime("%Y%m%dT%H%MZ")


def midnight(day: date, zone: tzinfo) -> datetime:
    """Return the time at which the day begins.

    If the clock jumps over midnight, it is the time of the jump.
    """
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(zones.utc)


def _hours(day: date, zone: tzinfo) -> Iterator[datetime]:
    """Yield the beginnings of a day's hours and its end. A day has 23 to 25 hours."""
    moment, end = midnight(day, zone), midnight(day + timedelta(days=1), zone)
    while moment < end:
        yield moment
        moment += timedelta(hours=1)
    yield end


# Filters of lists, declared: choices with their conditions, values of a column, typed values,
# periods.


Filter: TypeAlias = type[admin.SimpleListFilter]
Rows: TypeAlias = QuerySet[Any]
# What a choice finds: a condition, or what narrows the rows where a condition isn't enough.
Condition: TypeAlias = Q | Callable[[Rows], Rows]
Choices: TypeAlias = Mapping[str, tuple[Any, Condition]]
Offered: TypeAlias = Iterable[tuple[str, Any]]


class _Declared(admin.SimpleListFilter):
    """The base of the filters that are declared by the functions below."""

    declared: Callable[[HttpRequest], Any]

    def __init__(self, request: HttpRequest, *args: Any) -> None:
        self.offered = type(self).declared(request)
        super().__init__(request, *args)


class _ByChoice(_Declared):
    offered: Choices

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(key, label) for key, (label, _condition) in self.offered.items() if key]

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Name the first choice, which has no value, where it isn't everything."""
        first, *others = super().choices(changelist)
        yield {**first, "display": self.offered[""][0]} if "" in self.offered else first
        yield from others

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        known = self.offered.get(self.value() or "") or self.offered.get("")
        if known is None:
            return queryset
        condition = known[1]
        return queryset.filter(condition) if isinstance(condition, Q) else condition(queryset)


class _ByValue(_Declared):
    lookup = ""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return list(self.offered)

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        value = self.value()
        return queryset.filter(**{self.lookup: value}) if value else queryset


def choice_filter(
    name: str, title: Any, choices: Choices | Callable[[HttpRequest], Choices]
) -> Filter:
    """Return a filter by choices: the label and the condition of each value of the parameter.

    The choice of an empty value holds while nothing, or nothing known, is chosen. Without it the
    list shows everything then.
    """
    declared = choices if callable(choices) else lambda _request: choices
    values = {"title": title, "parameter_name": name, "declared": staticmethod(declared)}
    return type("ChoiceFilter", (_ByChoice,), values)


def value_filter(
    name: str, title: Any, offered: Offered | Callable[[HttpRequest], Offered], *, lookup: str = ""
) -> Filter:
    """Return a filter by the values of a column, each offered with its label.

    ``lookup``: what a value is compared with, if not the column of the parameter's name.
    """
    declared = offered if callable(offered) else lambda _request: offered
    values = {"title": title, "parameter_name": name, "lookup": lookup or name}
    return type("ValueFilter", (_ByValue,), {**values, "declared": staticmethod(declared)})


def used_value_filter(
    model: type[Model], name: str, title: Any, label: Callable[[str], str] = str, *, most: int = 50
) -> Filter:
    """Return a filter by the first distinct values that an indexed column of texts has.

    They are found by one step through the index for each, whatever the number of rows.
    """
    column, table = map(connection.ops.quote_name, (name, model._meta.db_table))
    first = f"SELECT min({column}) FROM {table}"  # noqa: S608 names of our own
    statement = f"""
        WITH RECURSIVE found (value) AS (
            {first} UNION ALL SELECT ({first} WHERE {column} > found.value) FROM found
            WHERE found.value IS NOT NULL
        )
        SELECT value FROM found WHERE value <> '' LIMIT %s
        """  # noqa: S608 names of our own

    def offered(_request: HttpRequest) -> Offered:
        with read_connection().cursor() as cursor:
            cursor.execute(statement, [most])
            return [(value, label(value)) for (value,) in cursor.fetchall()]

    return value_filter(name, title, offered)


class TypedFilter(admin.ListFilter):
    """A filter with a small form for typed values. ``typed`` holds those that were typed.

    ``labels``: of each parameter. ``kind``: that of the form's inputs.
    """

    labels: ClassVar[Mapping[str, Any]] = {}
    kind = "text"
    template = "admin/audit/typed_filter.html"

    def __init__(
        self, request: HttpRequest, params: dict[str, Any], model: Any, model_admin: Any
    ) -> None:
        super().__init__(request, params, model, model_admin)
        self.model_admin = model_admin
        given = {name: params.pop(name) for name in self.labels if name in params}
        self.typed = {
            name: str(value[-1] if isinstance(value, list) else value).strip()
            for name, value in given.items()
        }
        self.used_parameters.update({name: text for name, text in self.typed.items() if text})
        self.others = request.GET.copy()
        # The parameters of the other filters, without the page number.
        for name in (*self.labels, "p"):
            self.others.pop(name, None)

    def has_output(self) -> bool:
        return True

    def expected_parameters(self) -> list[str | None]:
        return list(self.labels)

    def shown(self, name: str) -> str:
        """Return what the input of a parameter holds."""
        return self.typed.get(name, "")[: 10 if self.kind == "date" else 255]

    def problem(self) -> str:
        """Return a message about what is wrong with the typed values."""
        return ""

    def quick(self, changelist: Any) -> list[dict[str, Any]]:
        """Return links to values that are often wanted."""
        return []

    def choices(self, changelist: Any) -> Iterator[Any]:
        yield {
            "fields": [
                {"name": name, "label": label, "type": self.kind, "value": self.shown(name)}
                for name, label in self.labels.items()
            ],
            "problem": self.problem(),
            "others": [(name, value) for name, values in self.others.lists() for value in values],
            "clear": changelist.get_query_string(remove=[*self.labels]),
            "is_used": any(self.typed.values()),
            "quick": self.quick(changelist),
        }


# Filters by time, with the same periods as the dashboard.


class PeriodFilter(admin.SimpleListFilter):
    """Filters by today, 7 or 30 days, or a time span named by ``periods.span_key``.

    With the same ``when`` the list shows the rows that the dashboard counted in the period.
    """

    title = gettext_lazy("time")
    parameter_name = PARAMETER
    field = "created_at"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return list(PAST_NAMES.items())

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Yield the choices, including the active time span if it is a custom one."""
        yield from super().choices(changelist)
        key = self.value()
        if key and key not in DAYS:
            start, end = self._span(key)
            yield {
                "selected": True,
                "query_string": changelist.get_query_string({PARAMETER: key}),
                "display": _("%(start)s to %(end)s")
                % {"start": moment_shown(start), "end": moment_shown(end)},
            }

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        key = self.value()
        return self.within(queryset, *self._span(key)) if key else queryset

    def within(self, queryset: QuerySet[Any], start: datetime, end: datetime) -> QuerySet[Any]:
        """Return the rows from ``start`` up to ``end``."""
        return queryset.filter(**{f"{self.field}__gte": start, f"{self.field}__lt": end})

    def _span(self, key: str) -> tuple[datetime, datetime]:
        try:
            return span_of(key, now=timezone.now())
        except UnknownSpanError:
            raise IncorrectLookupParameters from None


def period_filter(field: str) -> type[PeriodFilter]:
    """Return the filter for a model's time field."""
    return type("FieldPeriodFilter", (PeriodFilter,), {"field": field})
