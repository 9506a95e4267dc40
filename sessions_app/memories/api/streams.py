"""Lines of JSON in requests and responses; only a few are in memory at once."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

from django.http import StreamingHttpResponse
from rest_framework.parsers import BaseParser

from memoryproject.foundation.rest_kit.bodies import MEGABYTE, limited_blocks
from memoryproject.foundation.rest_kit.errors import BodyTooLarge
from memoryproject.foundation.rest_kit.renderers import Json, StreamRenderer

NDJSON = "application/x-ndjson"
MAX_IMPORT_SIZE = 1024 * MEGABYTE
# A memory with vectors of several models is a tenth of this size.
MAX_LINE_CHARACTERS = 8 * MEGABYTE
SPOOL_BYTES = 8 * MEGABYTE


class Lines:
    """A received body, line by line.

    As a text it is its own hash, which is compared for calls with the same Idempotency-Key.
    """

    def __init__(self, file: IO[bytes], sha256: str) -> None:
        self._file = file
        self._sha256 = sha256

    def __str__(self) -> str:
        return self._sha256

    def close(self) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[bytes]:
        """Yield the lines; of an overlong one only its start, which is refused as no JSON."""
        self._file.seek(0)
        while line := self._file.readline(MAX_LINE_CHARACTERS):
            rest = line
            while len(rest) == MAX_LINE_CHARACTERS and not rest.endswith(b"\n"):
                rest = self._file.readline(MAX_LINE_CHARACTERS)
            yield line


class LinesParser(BaseParser):
    """Receive the whole body before processing it.

    So an interrupted upload has no effect. The view gets the body as ``taken_in``, and closes it.
    """

    media_type = "*/*"
    largest = MAX_IMPORT_SIZE

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        file = tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES)  # noqa: SIM115 read later
        digest = hashlib.sha256()
        try:
            for block in limited_blocks(stream, self.largest):
                digest.update(block)
                file.write(block)
        except BodyTooLarge:
            file.close()
            raise
        lines = Lines(file, digest.hexdigest())
        (parser_context or {})["view"].taken_in = lines
        return lines


class NdJson(StreamRenderer):
    """Lines of JSON."""

    media_type = NDJSON
    format = "ndjson"


class JsonErrors(Json):
    """Write errors as JSON. The lines have no other format, so none can be chosen."""

    format = NdJson.format


def lines_answer(lines: Iterable[str], *, name: str) -> StreamingHttpResponse:
    """Stream each line as soon as it exists."""
    return StreamingHttpResponse(
        (line.encode() + b"\n" for line in lines),
        content_type=f"{NDJSON}; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
