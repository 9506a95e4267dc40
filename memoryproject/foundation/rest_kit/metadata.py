"""The response to OPTIONS."""

from __future__ import annotations

from typing import Any

from rest_framework.metadata import SimpleMetadata
from rest_framework.request import Request


class Forms(SimpleMetadata):
    """The formats that an address accepts and returns. Its fields are in the schema."""

    def determine_actions(self, request: Request, view: Any) -> Any:
        return {}
