"""Find the chat that an address of the admin names; name chats in lists; date the admin's forms."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.core import signing
from django.core.exceptions import ValidationError
from django.db.models import CharField, OuterRef, Subquery, Value
from django.db.models.functions import Coalesce, NullIf
from django.http import Http404
from django.utils.translation import gettext as _

from sessions_app.conversations.facade import contacts_named
from sessions_app.models import Chat

# Copying a number can copy marks of direction with it.
_MARKS = dict.fromkeys(
    map(ord, "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
)


def chat_name_query(column: str) -> Subquery:
    """Return the query for ``Chat.shown_name`` of the chat whose id a row has in this column."""
    name = Coalesce(
        NullIf("staff_name", Value("")), NullIf("client_name", Value("")), "whatsapp_chat"
    )
    of_it = Chat.objects.filter(pk=OuterRef(column)).annotate(name=name).values("name")
    return Subquery(of_it, output_field=CharField())


def chat_gone_text() -> str:
    """Return what staff are told whose text could not be stored for a client."""
    return _("The client was erased meanwhile, or merged with another contact. Nothing was stored.")


def contact_typed(text: str) -> Chat | None:
    """Return the contact that somebody typed in a form, None for an empty field.

    It may be the whole name, number or id, also copied from a page. Raises ValidationError.
    """
    typed = text.translate(_MARKS).strip()
    if not typed:
        return None
    found = contacts_named(typed)
    if len(found) > 1:
        raise ValidationError(_("Several contacts have this name or number: write it in full."))
    if not found:
        raise ValidationError(_("No contact has this name or number."))
    return found[0]


def chat_or_404(chat_id: UUID) -> Chat:
    """Return the chat. Raises Http404."""
    chat = Chat.objects.filter(pk=chat_id).first()
    if chat is None:
        raise Http404(_("There is no such chat, or not any more."))
    return chat


# Forms post the time when their page was made: later changes weren't visible on it.
SALT = "page made"


def made_stamp(when: datetime) -> str:
    """Return the value of a hidden input. Take the time before the page reads anything."""
    return signing.dumps(when.isoformat(), salt=SALT)


def made_at(posted: str) -> datetime | None:
    """Return the posted time; None if it is missing or invalid."""
    try:
        return datetime.fromisoformat(signing.loads(posted, salt=SALT))
    except signing.BadSignature:
        return None
