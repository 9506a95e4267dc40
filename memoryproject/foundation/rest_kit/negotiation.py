"""Choose the format of a response."""

from __future__ import annotations

from collections.abc import Iterable

from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer

from memoryproject.foundation.rest_kit.errors import refuse


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
