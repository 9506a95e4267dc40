"""Receive files in forms (multipart/form-data)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.http.multipartparser import MultiPartParser, MultiPartParserError
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from memoryproject.foundation.rest_kit.bodies import (
    MEGABYTE,
    each_name_once,
    limited_blocks,
    refuse_unstorable,
)

# What a form has beside its file.
FORM_BYTES = MEGABYTE
_END_BYTES = 1024


@dataclass(frozen=True)
class Upload:
    """A file of a form.

    As a text it is its name and its hash, which are compared for calls with the same
    Idempotency-Key.
    """

    file: UploadedFile[bytes]

    def __str__(self) -> str:
        digest = hashlib.sha256()
        for block in self.file.chunks():
            digest.update(block)
        return f"{self.file.name} {digest.hexdigest()}"


@extend_schema_field(OpenApiTypes.BINARY)
class UploadField(serializers.Field[Upload, Any, Any, Any]):
    """A file; a text in its place is refused."""

    default_error_messages = {"invalid": "It must be a file, sent with its name."}

    def to_internal_value(self, data: Any) -> Upload:
        if not isinstance(data, Upload):
            self.fail("invalid")
        return data

    def to_representation(self, value: Upload) -> str:
        return str(value.file.name)


class UploadParser(BaseParser):
    """Return the texts of a form by name, and its files as ``Upload``.

    The view says in ``max_upload_bytes()`` how large a file may be. A form that is cut off is
    refused: part of a file would be stored as the whole.
    """

    media_type = "multipart/form-data"

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        context = parser_context or {}
        request = context["request"]._request
        most = context["view"].max_upload_bytes()
        body = _Body(stream, most)
        # A body in chunks has no length. With the largest one its file is kept out of memory.
        length = request.META.get("CONTENT_LENGTH") or most + FORM_BYTES
        meta = {**request.META, "CONTENT_LENGTH": length}
        handlers = request.upload_handlers
        try:
            form: Any = MultiPartParser(meta, cast(Any, body), handlers, settings.DEFAULT_CHARSET)
            texts, files = form.parse()
        except BaseException as error:
            # Django closes the files that came whole.
            for handler in handlers:
                handler.upload_interrupted()
            if isinstance(error, MultiPartParserError):
                raise ParseError(f"The body is no form with a file: {error}") from None
            raise
        # Django closes them when the response is sent.
        request._files = files
        body.require_end(form._boundary)
        given = [(name, text) for name, found in texts.lists() for text in found]
        uploads = [(name, Upload(file)) for name, found in files.lists() for file in found]
        fields = each_name_once([*given, *uploads])
        refuse_unstorable(fields)
        return fields


class _Body:
    """A form around a file of at most so many bytes, with its last bytes."""

    def __init__(self, stream: Any, most: int) -> None:
        self._blocks = limited_blocks(stream, most, spare=FORM_BYTES)
        self._waiting = b""
        self._end = b""

    def read(self, size: int) -> bytes:
        """Return the next bytes; none at the end. Raises BodyTooLarge."""
        if not self._waiting:
            self._waiting = next(self._blocks, b"")
        found, self._waiting = self._waiting[:size], self._waiting[size:]
        self._end = (self._end + found)[-_END_BYTES:]
        return found

    def require_end(self, boundary: bytes) -> None:
        """Read what the parser left, and check that the form is whole. Raises ParseError."""
        while self.read(MEGABYTE):
            pass
        if b"--" + boundary + b"--" not in self._end:
            raise ParseError("The body is cut off: the end of the form is missing.")
