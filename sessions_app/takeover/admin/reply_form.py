"""Read the reply form, and say why a reply was refused."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from memoryproject.foundation.audit.staff import staff_actor
from memoryproject.foundation.integrations.configured import configured_providers
from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.models import Chat
from sessions_app.takeover.dependencies import default_number
from sessions_app.takeover.staff_reply import (
    MAX_LENGTH,
    EmptyReplyError,
    HandReply,
    KeyUsedError,
    QuoteGoneError,
    ReplyRefusedError,
    TooLongError,
    WindowClosedError,
    chat_reply,
)
from sessions_app.turns.dependencies import enqueue_chat


class BrokenFormError(ReplyRefusedError):
    """The form's key is missing, or there are characters that can't be stored."""


def text_posted(request: HttpRequest) -> str:
    """Return the typed text; browsers send CRLF line ends."""
    return request.POST.get("text", "").replace("\r\n", "\n")


def reply_posted(request: HttpRequest, chat: Chat) -> HandReply:
    """Send what the form holds. Raises ReplyRefusedError."""
    text = text_posted(request)
    try:
        key = UUID(request.POST.get("key", ""))
    except ValueError:
        raise BrokenFormError from None
    if "\x00" in text or any("\ud800" <= each <= "\udfff" for each in text):
        raise BrokenFormError
    return chat_reply(
        chat_id=chat.pk,
        text=text,
        quote=request.POST.get("quote", ""),
        key=key,
        author_id=request.user.pk or 0,
        actor=staff_actor(request),
        rules=build_intake_rules(),
        providers=configured_providers(),
        otherwise=default_number(),
        enqueue=enqueue_chat,
        now=timezone.now(),
    )


def refusal_text(refused: ReplyRefusedError) -> str:
    """Return the reason of a refusal, for the person who wrote the reply."""
    if isinstance(refused, EmptyReplyError):
        return _("The reply is empty.")
    if isinstance(refused, TooLongError):
        return ngettext(
            "The reply is too long: at most %(most)s character is sent.",
            "The reply is too long: at most %(most)s characters are sent.",
            MAX_LENGTH,
        ) % {"most": MAX_LENGTH}
    if isinstance(refused, WindowClosedError):
        return _("It wasn't sent: WhatsApp's window is closed until the person writes again.")
    if isinstance(refused, QuoteGoneError):
        return _("It wasn't sent: the message that you quote isn't there any more.")
    if isinstance(refused, KeyUsedError):
        return _("This form has sent another reply already. Send this one, too, if you mean it.")
    return _("The form was broken. Here is your text in a new one.")
