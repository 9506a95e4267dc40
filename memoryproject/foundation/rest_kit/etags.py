"""ETags: read again only what changed, and edit only a version that the caller has seen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from django.utils.http import parse_etags, quote_etag
from rest_framework.request import Request
from rest_framework.response import Response

from memoryproject.foundation.rest_kit.errors import PreconditionFailed


def etag_of(*parts: object) -> str:
    """Return a strong ETag of a version's parts, such as an id and the time of the last change."""
    text = "\0".join(map(str, parts))
    return quote_etag(hashlib.sha256(text.encode()).hexdigest()[:32])


def etag_of_document(document: Mapping[str, Any]) -> str:
    """Return the ETag of an object as the API shows it."""
    return etag_of(json.dumps(document, sort_keys=True, default=str))


def etagged(request: Request, document: Mapping[str, Any], *, etag: str = "") -> Response:
    """Return the object with its ETag, or 304 where the caller has this version.

    ``etag``: that of the version, if it isn't the document's.
    """
    headers = {"ETag": etag or etag_of_document(document)}
    if is_known(request, headers["ETag"]):
        return Response(status=304, headers=headers)
    return Response(document, headers=headers)


def is_known(request: Request, etag: str) -> bool:
    """Return whether the caller already has this version (If-None-Match): answer 304."""
    known = parse_etags(request.headers.get("If-None-Match", ""))
    return "*" in known or etag in [tag.removeprefix("W/") for tag in known]


def require_match(request: Request, etag: str) -> None:
    """Check If-Match. Raises PreconditionFailed where it names another version.

    Call it with the row locked, before the row is changed. Without If-Match the last write wins.
    """
    header = request.headers.get("If-Match")
    if header is None:
        return
    wanted = parse_etags(header)
    if "*" in wanted or etag in wanted:
        return
    raise PreconditionFailed(
        "It was changed since you read it. Read it again, and send the new ETag as If-Match."
    )
