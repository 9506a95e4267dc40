"""Serve the readable export of a person: a page of its own, to print or to save as PDF."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, StreamingHttpResponse
from django.template.loader import render_to_string
from django.utils import timezone, translation
from django.views.decorators.http import require_GET

from memoryproject.foundation.audit.staff import staff_actor
from sessions_app.contacts.admin.contact_page import EXPORT
from sessions_app.contacts.admin.list_page import SEE
from sessions_app.contacts.readable_export import readable_export
from sessions_app.models import Chat
from sessions_app.presentation.chat_page import chat_or_404

TEMPLATES = "admin/contacts/export"


@require_GET
def export_page(request: HttpRequest, chat_id: UUID, site: dict[str, Any]) -> StreamingHttpResponse:
    """Return everything kept about the person as a page in their language."""
    if not request.user.has_perms((SEE, *EXPORT)):
        raise PermissionDenied
    chat = chat_or_404(chat_id)
    return StreamingHttpResponse(_pieces(request, chat), headers={"Cache-Control": "no-store"})


def _pieces(request: HttpRequest, chat: Chat) -> Iterator[str]:
    # Pages aren't in all the languages that people write in.
    is_known = chat.language in dict(settings.LANGUAGES)
    language = chat.language if is_known else translation.get_language()
    zone, made = timezone.get_current_timezone(), timezone.now()
    parts = readable_export(chat=chat, actor=staff_actor(request))

    def rendered() -> str | None:
        # The middleware that sets these has finished when this runs, and other pages are made
        # between two parts.
        with translation.override(language), timezone.override(zone):
            part = next(parts, None)
            if part is None:
                return None
            return render_to_string(f"{TEMPLATES}/{part.name}.html", {**part.values, "made": made})

    return iter(rendered, None)
