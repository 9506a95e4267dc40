"""Find the chat that an address of the admin names."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404
from django.utils.translation import gettext as _

from sessions_app.models import Chat


def chat_gone_text() -> str:
    """Return what staff are told whose text could not be stored for a client."""
    return _("The client was erased meanwhile, or merged with another contact. Nothing was stored.")


def chat_or_404(chat_id: UUID) -> Chat:
    """Return the chat. Raises Http404."""
    chat = Chat.objects.filter(pk=chat_id).first()
    if chat is None:
        raise Http404(_("There is no such chat, or not any more."))
    return chat
