"""Functions of media for pages of other packages."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _

from memoryproject.foundation.errors.stored_errors import ErrorText, translate_error
from sessions_app.limits.facade import REASONS
from sessions_app.media.fetch import CHAT_FULL, TOTAL_FULL
from sessions_app.media.media_page import media_page
from sessions_app.models import MediaFile
from sessions_app.models.stored_media import MediaState


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
        CHAT_FULL: _("The file was not kept: the storage limit of this chat is reached."),
        TOTAL_FULL: _("The file was not kept: the storage limit of all files is reached."),
    }
    return ShownMedia("", words=words.get(row.error_code) or _("The file could not be fetched."))
