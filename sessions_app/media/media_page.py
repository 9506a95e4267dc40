"""Show the file of a message to staff: whole, or the range that a player asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    StreamingHttpResponse,
)
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_safe

from memoryproject.foundation.audit.audit_events import audit_record
from memoryproject.foundation.audit.staff import staff_actor
from sessions_app.media.dependencies import media_folder
from sessions_app.media.file_types import is_shown
from sessions_app.media.media_store import media_place
from sessions_app.models import MediaFile
from sessions_app.models.stored_media import MediaState

_RANGE = re.compile(r"bytes=(\d{0,12})-(\d{0,12})")
BLOCK = 64 * 1024
# A file from a stranger may do nothing on our address but be looked at.
POLICY = "sandbox; default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'"


@require_safe
def media_page(request: HttpRequest, message_id: UUID) -> HttpResponseBase:
    """Return the file, with the type that its bytes have. Audited as a read."""
    if not request.user.has_perm("sessions_app.view_message"):
        raise PermissionDenied
    rows = MediaFile.objects.select_related("message__chat").defer("message__terms")
    row = rows.filter(message=message_id, state=MediaState.STORED).first()
    if row is None or row.message is None:
        raise Http404
    try:
        page = _whole_or_range(request, row)
    except FileNotFoundError:
        raise Http404 from None
    page["Content-Type"] = row.content_type
    name = str(row.message.media.get("filename") or row.pk)
    disposition = content_disposition_header(not is_shown(row.content_type), name)
    page["Content-Disposition"] = disposition or "attachment"
    page["Accept-Ranges"] = "bytes"
    page["X-Content-Type-Options"] = "nosniff"
    page["Content-Security-Policy"] = POLICY
    page["Cache-Control"] = "private, no-store"
    audit_record(
        action="conversation.read",
        actor=staff_actor(request),
        object_type="message",
        object_id=row.message.pk,
        chat_id=row.message.chat_id,
    )
    return page


def _whole_or_range(request: HttpRequest, row: MediaFile) -> HttpResponseBase:
    place = media_place(media_folder(), row.pk)
    span = _RANGE.fullmatch(request.headers.get("Range", ""))
    if span is None or span.groups() == ("", ""):
        if not place.is_file():
            raise FileNotFoundError(place)
        whole = StreamingHttpResponse(_blocks(place))
        whole["Content-Length"] = str(row.size)
        return whole
    first, last = _bounds(*span.groups(), size=row.size)
    if first > last:
        return HttpResponse(status=416, headers={"Content-Range": f"bytes */{row.size}"})
    with place.open("rb") as file:
        file.seek(first)
        part = HttpResponse(file.read(last - first + 1), status=206)
    part["Content-Range"] = f"bytes {first}-{last}/{row.size}"
    return part


def _blocks(place: Path) -> Iterator[bytes]:
    """Open the file only once it is read, so that a response that nobody reads leaves none open."""
    with place.open("rb") as file:
        while block := file.read(BLOCK):
            yield block


def _bounds(first: str, last: str, *, size: int) -> tuple[int, int]:
    """Return the first and the last byte; the last one before the first if there are none."""
    if not first:
        return max(0, size - int(last)), size - 1
    return int(first), min(int(last), size - 1) if last else size - 1
