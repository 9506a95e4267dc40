"""Reads bodies that are kept as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework.parsers import BaseParser

from memoryproject.foundation.rest_kit.bodies import read_text
from memoryproject.foundation.rest_kit.renderers import Json


class RawJson(BaseParser):
    """The text of a JSON body: the format's own reader looks at it, which is stricter."""

    media_type = "application/json"
    renderer_class = Json

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        return read_text(stream, parser_context or {})
