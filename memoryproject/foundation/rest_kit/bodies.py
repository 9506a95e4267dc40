"""Read request bodies, also forms with files, and write responses.

Bodies are limited in size, UTF-8, and without characters that no database stores.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest
from django.http.multipartparser import MultiPartParser, MultiPartParserError
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ParseError
from rest_framework.metadata import SimpleMetadata
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request

from memoryproject.foundation.rest_kit.errors import BodyTooLarge, refuse

MEGABYTE = 1024 * 1024
MAX_BODY_SIZE = 3 * MEGABYTE
DRAIN_BLOCKS = 64
# From this size on the front door passes a body on as it comes (deploy/Caddyfile).
PASSED_ON_BYTES = 4_000_000

# Escapes that may represent a NUL or a lone surrogate. Most bodies contain none.
SUSPECT = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
MAX_DIGITS = 4_000
INFINITE = (float("inf"), float("-inf"))


class TextBody(BaseParser):
    """The base of parsers of whole texts. By itself it returns the text of a JSON body."""

    media_type = "application/json"

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        return self.read(read_text(stream, parser_context or {}))

    def read(self, text: str) -> Any:
        """Return what the text says. Raises ParseError and ValidationError."""
        return text


class JsonParser(TextBody):
    def read(self, text: str) -> Any:
        try:
            return read_json(text)
        except RecursionError:
            raise ParseError("The body is nested too deeply.") from None
        except ValueError as error:
            raise ParseError(f"The body is not JSON: {error}.") from None


class RawJson(TextBody):
    """JSON that the view's own format reads, which is stricter."""


class TextParser(TextBody):
    """Plain text. The character set in its media type is ignored: the text is UTF-8."""

    media_type = "text/plain"

    def read(self, text: str) -> str:
        if "\x00" in text:
            raise refuse("The text holds a NUL character, which can't be stored.", code="nul")
        return text


def read_json(text: str, *place: str) -> Any:
    """Return what a text of JSON says, which stands at this place.

    Raises ValueError and RecursionError for what isn't JSON, and ValidationError for what can't be
    stored.
    """
    found = json.loads(
        text,
        parse_constant=_no_number,
        parse_float=_finite,
        parse_int=_readable,
        object_pairs_hook=each_name_once,
    )
    if SUSPECT.search(text):
        refuse_unstorable(found, *place)
    return found


def read_text(stream: Any, parser_context: Mapping[str, Any]) -> str:
    """Return the body as text.

    Raises BodyTooLarge above the view's limit, and ParseError for text that isn't UTF-8.
    """
    most = getattr(parser_context.get("view"), "max_body_bytes", MAX_BODY_SIZE)
    body: bytes = stream.read(most + 1)
    if len(body) > most:
        drain(stream)
        raise _too_large(most)
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ParseError(f"The body is not UTF-8: byte {error.start} can't be read.") from None


def limited_blocks(stream: Any, most: int, *, spare: int = 0) -> Iterator[bytes]:
    """Yield the body in blocks. Raises BodyTooLarge above so many bytes.

    ``spare``: as many more are taken, for what is around the ``most`` that callers are told.
    """
    size = 0
    while block := stream.read(MEGABYTE):
        size += len(block)
        if size > most + spare:
            drain(stream)
            raise _too_large(most)
        yield block


def _too_large(most: int) -> BodyTooLarge:
    return BodyTooLarge(f"The body is larger than {most // MEGABYTE} MB, the most taken here.")


def is_chunked(request: HttpRequest) -> bool:
    """Return whether the body comes in chunks, without a length."""
    coding = str(request.META.get("HTTP_TRANSFER_ENCODING", ""))
    return "chunked" in coding.lower() and not request.META.get("CONTENT_LENGTH")


def may_be_slow(request: HttpRequest) -> bool:
    """Return whether reading the body may wait for the client.

    Such a body is read for known callers only: strangers could hold all threads.
    """
    length = request.META.get("CONTENT_LENGTH") or "0"
    return is_chunked(request) or (length.isdecimal() and int(length) >= PASSED_ON_BYTES)


def drain(stream: Any) -> None:
    """Read and discard the rest of the body.

    If the server closed the connection while a client is still sending, the connection would be
    reset, and the client would never see the response.
    """
    for _ in range(DRAIN_BLOCKS):
        if not stream.read(MEGABYTE):
            return


def each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object. Refuses a name that it has twice: only one of the values would count."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        shown = ascii(twice)[1:-1][:100] if not twice.isprintable() else twice[:100]
        raise refuse(f"The body has the name {shown} twice.", code="repeated", attr=shown)
    return found


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number of JSON")


def _finite(word: str) -> float:
    number = float(word)
    if number in INFINITE:
        raise ValueError(f"the number {word[:20]} is out of range")
    return number


def _readable(word: str) -> int:
    # Of somewhat more digits Python's own error gives advice for whoever runs the server.
    if len(word) > MAX_DIGITS:
        raise ValueError(f"the number {word[:20]}… has more than {MAX_DIGITS:,} digits")
    return int(word)


def refuse_unstorable(found: Any, *place: str) -> None:
    """Refuse a NUL character or a lone surrogate in any text, and report its place."""
    for path, text in _texts(found):
        attr = ".".join([*place, *path]) or None
        if "\x00" in text:
            raise refuse("It holds a NUL character, which can't be stored.", code="nul", attr=attr)
        if any("\ud800" <= character <= "\udfff" for character in text):
            detail = "It holds half of a character (a lone surrogate), which can't be stored."
            raise refuse(detail, code="surrogate", attr=attr)


def _texts(found: Any) -> Iterator[tuple[list[str], str]]:
    """Yield every text of a document with its path, including the names of fields."""
    todo: list[tuple[list[str], Any]] = [([], found)]
    while todo:
        path, value = todo.pop()
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, list):
            todo += [([*path, str(place)], each) for place, each in enumerate(value)]
        elif isinstance(value, dict):
            for name, each in value.items():
                yield path, name
                todo.append(([*path, name], each))


# Write responses.


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


# Receive files in forms (multipart/form-data).


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
