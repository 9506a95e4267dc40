"""Parse the values of old JSON documents, and describe the unusable ones."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
)
from typing_extensions import Self

from sessions_app.legacy_import.files.errors import LegacyError

MAX_DEPTH = 50
# The largest integer that every JSON reader keeps exactly.
MAX_COUNT = 2**53
EARLIEST = datetime(1970, 1, 1, tzinfo=timezone.utc)

MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?",
    re.ASCII | re.IGNORECASE,
)
SURROGATE = re.compile("[\ud800-\udfff]")

REASONS = {
    "missing": "missing",
    "value_error": "{error}",
    "string_type": "not a text",
    "string_too_short": "missing",
    "string_unicode": "holds half a character (a lone surrogate)",
    "string_too_long": "longer than {max_length} characters",
    "int_type": "not a whole number",
    "greater_than_equal": "less than {ge}",
    "less_than_equal": "not between 0 and {le}",
    "bool_type": "neither true nor false",
    "list_type": "not a list",
}


def storable(value: object, depth: int = 0) -> None:
    """Reject values that PostgreSQL can't hold, at any depth. Raises ValueError.

    These are NUL, lone surrogates, NaN and infinite numbers, and unlimited nesting.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} deep")
    if isinstance(value, str):
        _storable_text(value)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not a finite number")
    elif isinstance(value, list):
        for part in value:
            storable(part, depth + 1)
    elif isinstance(value, dict):
        for key, part in value.items():
            _storable_text(key)
            storable(part, depth + 1)


def _storable_text(text: str) -> str:
    if "\x00" in text:
        raise ValueError("holds a NUL character")
    if SURROGATE.search(text):
        raise ValueError("holds half a character (a lone surrogate)")
    return text


def _moment(text: object, info: ValidationInfo[datetime]) -> datetime:
    """Return a time in UTC; a time without a zone counts as UTC.

    No time is after the context's limit: it would keep a session open for ever.
    """
    if not isinstance(text, str):
        raise ValueError("not a text")
    found = MOMENT.fullmatch(text)
    if found is None:
        raise ValueError("not a time in ISO form, such as 2026-01-18T09:30:00Z")
    day, minutes, seconds, fraction, zone = found.groups()
    zone = "+00:00" if zone in (None, "Z", "z") else zone
    plain = f"{day}T{minutes}{seconds or ':00'}.{(fraction or '0')[:6]:0<6}"
    try:
        moment = datetime.fromisoformat(plain + zone[:3] + ":" + zone[-2:])
        moment = moment.astimezone(timezone.utc)
    except (ValueError, OverflowError) as error:
        raise ValueError("no such time") from error
    if not EARLIEST <= moment <= info.context:
        raise ValueError("before 1970 or in the future")
    return moment


STORABLE = AfterValidator(_storable_text)
Text = Annotated[str, STORABLE]
Name = Annotated[str, Field(max_length=255), STORABLE]
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Moment = Annotated[datetime, PlainValidator(_moment)]


def lacks_zone(text: object) -> bool:
    found = MOMENT.fullmatch(text) if isinstance(text, str) else None
    return found is not None and found[5] is None


class Document(BaseModel):
    """The known fields of a document; null counts as missing."""

    model_config = ConfigDict(strict=True, frozen=True)
    # By the new name: an older name counts only if the new one is missing.
    older: ClassVar[dict[str, str]] = {}

    @classmethod
    def read(cls, given: Mapping[str, Any], *, latest: datetime | None = None) -> Self:
        """Read the document. Raises LegacyError.

        ``latest``: the last permitted time.
        """
        there = {name: value for name, value in given.items() if value is not None}
        for name, older in cls.older.items():
            if there.get(name):
                there.pop(older, None)
        try:
            return cls.model_validate(there, context=latest)
        except ValidationError as error:
            first = error.errors(include_input=False)[0]
        reason = REASONS[first["type"]].format(**first.get("ctx", {}))
        raise LegacyError(f"{first['loc'][0]}: {reason}")
