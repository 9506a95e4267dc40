"""Show the file of a message to staff: whole, or the range that a player asks for."""

import errno
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from memoryproject.foundation.admin_kit.staff_pages import rights_required
from memoryproject.foundation.audit.audit_events import staff_read_record
from memoryproject.foundation.errors.stored_errors import ErrorText, translate_error
from memoryproject.foundation.integrations.media_storage import storage_choice
from memoryproject.foundation.integrations.media_storage.base import MediaStorage, MediaStorageError
from sessions_app.limits.intake import REASONS
from sessions_app.media import fetch, outgoing_types
from sessions_app.models import MediaFile, MediaState

logger = logging.getLogger(__name__)

_RANGE = re.compile(r"bytes=(\d{0,12})-(\d{0,12})")
BLOCK = 64 * 1024
# A file from a stranger may do nothing on our address but be looked at.
POLICY = "sandbox; default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'"


@require_safe
def media_page(request: HttpRequest, message_id: UUID) -> HttpResponseBase:
    """Return the file, with the type that its bytes have. Audited as a read."""
    rights_required(request, "sessions_app.view_message")
    rows = MediaFile.objects.select_related("message__chat").defer("message__terms")
    row = rows.filter(message=message_id, state=MediaState.STORED).first()
    if row is None or row.message is None:
        raise Http404
    try:
        page = _whole_or_range(request, row)
    except FileNotFoundError:
        raise Http404 from None
    except MediaStorageError as error:
        logger.warning("The file %s can't be shown: %s", row.pk, error)
        return render(request, "503_media.html", status=503)
    page["Content-Type"] = row.content_type
    name = str(row.message.media.get("filename") or row.pk)
    disposition = content_disposition_header(not outgoing_types.is_shown(row.content_type), name)
    page["Content-Disposition"] = disposition or "attachment"
    page["Accept-Ranges"] = "bytes"
    page["X-Content-Type-Options"] = "nosniff"
    page["Content-Security-Policy"] = POLICY
    page["Cache-Control"] = "private, no-store"
    staff_read_record(request, "message", row.message.pk, chat_id=row.message.chat_id)
    return page


def _whole_or_range(request: HttpRequest, row: MediaFile) -> HttpResponseBase:
    """Raises FileNotFoundError and MediaStorageError."""
    span = _RANGE.fullmatch(request.headers.get("Range", ""))
    is_whole = span is None or span.groups() == ("", "")
    first, last = (0, row.size - 1) if is_whole or span is None else _bounds(span, row.size)
    if first > last and not is_whole:
        return HttpResponse(status=416, headers={"Content-Range": f"bytes */{row.size}"})
    storage, name = storage_choice.configured_media_storage(), fetch.media_name(row.pk)
    if not storage.has(name):
        raise FileNotFoundError(name)
    page = StreamingHttpResponse(
        _blocks(storage, name, first, last), status=200 if is_whole else 206
    )
    page["Content-Length"] = str(last - first + 1)
    if not is_whole:
        page["Content-Range"] = f"bytes {first}-{last}/{row.size}"
    return page


def _blocks(storage: MediaStorage, name: str, first: int, last: int) -> Iterator[bytes]:
    """Open the file only once it is read, so that a response that nobody reads leaves none open."""
    left = last - first + 1
    try:
        with storage.open(name) as file:
            file.seek(first)
            while left and (block := file.read(min(left, BLOCK))):
                left -= len(block)
                yield block
    except (MediaStorageError, FileNotFoundError) as error:
        logger.warning("The file %s was shown in part: %s", name, error)
        # The browser has been promised more: only a connection that breaks tells it.
        raise ConnectionResetError(errno.ECONNRESET, "the file can't be read to its end") from None


def _bounds(span: re.Match[str], size: int) -> tuple[int, int]:
    """Return the first and the last byte; the last one before the first if there are none."""
    first, last = span.groups()
    if not first:
        return max(0, size - int(last)), size - 1
    return int(first), min(int(last), size - 1) if last else size - 1


# Functions of media for pages of other packages.


@dataclass(frozen=True)
class ShownMedia:
    """``way``: image, audio, video or file; "" where there is nothing but ``words``."""

    way: str
    address: str = ""
    words: str = ""


def shown_media_of(row: MediaFile) -> ShownMedia:
    """Return how the file of a message is shown, or in words why it isn't."""
    if row.state == MediaState.STORED:
        way = row.content_type.partition("/")[0]
        address = reverse("admin:sessions_app_message_media", args=[row.message_id])
        return ShownMedia(way if way in ("image", "audio", "video") else "file", address)
    if row.state == MediaState.PENDING:
        return ShownMedia("", words=_("The file is being fetched."))
    if row.state == MediaState.REMOVED:
        return ShownMedia("", words=_("The file was removed after its retention."))
    if row.error_code in REASONS:
        why = translate_error(ErrorText(row.error_code))
        return ShownMedia("", words=_("The file was not kept: %(why)s") % {"why": why})
    words = {
        "too_large": _("The file is too large to be kept."),
        "type": _("Files of this type aren't kept."),
        "gone": _("WhatsApp no longer has the file."),
        "too_old": _("The file was not kept: the message came too late to be answered."),
        fetch.CHAT_FULL: _("The file was not kept: the storage limit of this chat is reached."),
        fetch.TOTAL_FULL: _("The file was not kept: the storage limit of all files is reached."),
    }
    return ShownMedia("", words=words.get(row.error_code) or _("The file could not be fetched."))
