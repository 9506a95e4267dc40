"""Write responses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rest_framework.metadata import SimpleMetadata
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request

from memoryproject.foundation.rest_kit.errors import refuse


class Json(JSONRenderer):
    """UTF-8, regardless of the character sets that the client accepts.

    A subclass names another form that its view writes itself: errors are still JSON.
    """

    charset = "utf-8"


class EventStream(Json):
    """Server-sent events."""

    media_type = "text/event-stream"
    format = "sse"


# Choose the format of a response.


class Negotiation(DefaultContentNegotiation):
    """Refuse a ``format`` that the address doesn't have, as any other wrong parameter.

    Django REST framework returns 404, which says that the object is not there.
    """

    def filter_renderers(
        self, renderers: Iterable[BaseRenderer], format: str
    ) -> list[BaseRenderer]:
        offered = list(renderers)
        found = [each for each in offered if each.format == format]
        if not found:
            listed = ", ".join(sorted({str(each.format) for each in offered}))
            raise refuse(
                f"There is no such format here. There are: {listed}.",
                code="invalid_choice",
                attr="format",
            )
        return found


class Forms(SimpleMetadata):
    """The response to OPTIONS: the formats of an address. Its fields are in the schema."""

    def determine_actions(self, request: Request, view: Any) -> Any:
        return {}
