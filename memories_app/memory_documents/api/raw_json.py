"""Read request bodies that are stored unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework.parsers import BaseParser

from memoryproject.foundation.rest_kit.bodies import read_text
from memoryproject.foundation.rest_kit.renderers import Json


class RawJson(BaseParser):
    """Return the text of a JSON body unparsed: the format's own reader is stricter."""

    media_type = "application/json"
    renderer_class = Json

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        return read_text(stream, parser_context or {})
