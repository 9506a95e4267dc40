"""What OPTIONS answers."""

from __future__ import annotations

from typing import Any

from rest_framework.metadata import SimpleMetadata
from rest_framework.request import Request


class Forms(SimpleMetadata):
    """What an address takes and gives. Its fields are in the schema."""

    def determine_actions(self, request: Request, view: Any) -> Any:
        return {}
