"""Pages by cursor: no row is repeated or missed while others write.

A cursor is the position of a row in an order that never changes, not a count of rows. So rows that
are added or deleted meanwhile move nothing. Each page costs one query, wherever it is.

REST framework's CursorPagination isn't suitable as a base. Its cursor holds the first field of the
order and a count of the rows that share its value: rows are missed or repeated when such rows are
deleted or added, and a walk never ends where more than 1,000 rows share one value. It ignores an
invalid limit, and a cursor whose value doesn't fit the field is a server error.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param

from memoryproject.foundation.process.own_address import absolute_url
from memoryproject.foundation.rest_kit.errors import refuse

DEFAULT_LIMIT = 100
MAX_LIMIT = 1_000


@dataclass(frozen=True)
class Cursor:
    """``position``: the row next to the page; ``backwards``: the page is before that row."""

    position: tuple[Any, ...]
    backwards: bool


class CursorPages(BasePagination):
    """Paginate by the view's ``page_ordering()`` and its optional ``default_limit``.

    The ordering has one or two fields. Together they are unique, and both are ascending or both are
    descending (each with "-"). A row whose first field changes meanwhile moves. A cursor belongs to
    the filters and the order of its page.
    """

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        self._url = absolute_url(request.get_full_path(), request._request)
        self._ordering: Sequence[str] = view.page_ordering()
        self._list: str = queryset.model._meta.label_lower
        self._filters = _filters_of(request, view)
        limit = limit_of(request, default=getattr(view, "default_limit", DEFAULT_LIMIT))
        cursor = self._decode(request.query_params.get("cursor"), queryset)
        rows = queryset.order_by(*self._ordering)
        if cursor is not None:
            rows = rows.filter(self._beyond(cursor))
            if cursor.backwards:
                rows = rows.reverse()
        found = list(rows[: limit + 1])
        more = len(found) > limit
        page = found[:limit]
        if cursor is not None and cursor.backwards:
            page.reverse()
            self._next, self._previous = True, more
        else:
            self._next, self._previous = more, cursor is not None
        self._page = page
        return page

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"results": data, **self.links()})

    def links(self) -> dict[str, str | None]:
        """Return the URLs and cursors of the next and the previous page; None where there is none.

        A URL is for clients that follow it. A cursor is for those whose operations take no
        addresses, such as generated ones.
        """
        following = before = None
        if self._page and self._next:
            following = self._cursor(self._page[-1], backwards=False)
        if self._page and self._previous:
            before = self._cursor(self._page[0], backwards=True)
        return {
            "next": self._link(following),
            "previous": self._link(before),
            "next_cursor": following,
            "previous_cursor": before,
        }

    def _beyond(self, cursor: Cursor) -> Q:
        """Return the condition for the rows after the cursor's position, or before it."""
        falling = self._ordering[0].startswith("-")
        way = "lt" if falling != cursor.backwards else "gt"
        first, *others = (name.lstrip("-") for name in self._ordering)
        start, *rest = cursor.position
        if not others:
            return Q(**{f"{first}__{way}": start})
        # The first condition alone lets the index be used. The second is exact.
        tie = Q(**{first: start, f"{others[0]}__{way}": rest[0]})
        return Q(**{f"{first}__{way}e": start}) & (Q(**{f"{first}__{way}": start}) | tie)

    def _cursor(self, row: Any, *, backwards: bool) -> str:
        values = [_plain(getattr(row, name.lstrip("-"))) for name in self._ordering]
        text = json.dumps([self._list, self._filters, values, backwards], separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    def _link(self, cursor: str | None) -> str | None:
        if cursor is None:
            return None
        return str(replace_query_param(remove_query_param(self._url, "cursor"), "cursor", cursor))

    def _decode(self, text: str | None, queryset: QuerySet[Any]) -> Cursor | None:
        if text is None:
            return None
        try:
            padded = text.encode("ascii") + b"=" * (-len(text) % 4)
            of_list, filters, values, backwards = json.loads(base64.urlsafe_b64decode(padded))
            if of_list != self._list:
                raise ValueError(text)
            if filters != self._filters:
                detail = "It belongs to a page with other filters or another order: repeat those."
                raise refuse(detail, code="invalid_cursor", attr="cursor")
            names = [name.lstrip("-") for name in self._ordering]
            fields = [queryset.model._meta.get_field(_own(queryset, name)) for name in names]
            pairs = zip(fields, values, strict=True)
            position = tuple(field.to_python(value) for field, value in pairs)
            if any(value is None for value in position):
                raise ValueError(text)
        except (ValueError, TypeError, ValidationError, RecursionError):
            detail = "It is no cursor of this list: give one that it returned, as it is."
            raise refuse(detail, code="invalid_cursor", attr="cursor") from None
        return Cursor(position, bool(backwards))

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        rows = schema
        # For examples the generator passes a mark in place of a schema.
        if isinstance(schema, dict):
            rows = {**schema, "description": "The rows of this page; it may be empty."}
        text = {"type": "string", "nullable": True, "example": None}
        link = {**text, "format": "uri"}
        pages = {
            "next": (link, "The address of the next page; null on the last one."),
            "previous": (link, "The address of the page before; null where there is none."),
            "next_cursor": (text, "The `cursor` of the next page; null on the last one."),
            "previous_cursor": (text, "The `cursor` of the page before; null where there is none."),
        }
        return {
            "type": "object",
            "required": ["results", *pages],
            "properties": {
                "results": rows,
                **{name: {**kind, "description": what} for name, (kind, what) in pages.items()},
            },
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        default = getattr(view, "default_limit", DEFAULT_LIMIT)
        number = {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": default}
        place = {"type": "string", "minLength": 1}
        return [
            _parameter("cursor", "`next_cursor` or `previous_cursor` of a page.", place),
            _parameter("limit", "How many a page holds at most.", number),
        ]


def limit_of(request: Request, *, default: int) -> int:
    """Return ``?limit=``; raise a 400 unless it is a number from 1 to MAX_LIMIT."""
    word = request.query_params.get("limit")
    if word is None:
        return default
    if word.isascii() and word.isdigit() and len(word) < 9 and 1 <= int(word) <= MAX_LIMIT:
        return int(word)
    detail = f"It must be a whole number from 1 to {MAX_LIMIT}."
    raise refuse(detail, attr="limit")


# Parameters that may differ between the pages of a list.
FREE = ("cursor", "limit", "format", "fields")


def _filters_of(request: Request, view: Any) -> str:
    """Return a short hash of what decides which rows a list has, in which order."""
    given = sorted((name, sorted(texts)) for name, texts in request.query_params.lists())
    parts = [sorted(view.kwargs.items()), [each for each in given if each[0] not in FREE]]
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:16]


def _own(queryset: QuerySet[Any], name: str) -> str:
    pk = queryset.model._meta.pk
    return str(pk.name) if name == "pk" and pk is not None else name


def _plain(value: Any) -> Any:
    return value if isinstance(value, int) else str(value)


def _parameter(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "in": "query",
        "required": False,
        "description": description,
        "schema": schema,
    }
