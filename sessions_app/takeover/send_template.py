"""Send a template that Meta has approved: the only message after WhatsApp's window has closed."""

import hashlib
import re
from dataclasses import asdict
from uuid import UUID

from django.core.cache import cache
from django.db import transaction

from memoryproject.foundation.integrations.whatsapp.base import (
    SendError,
    Template,
    TemplateLister,
    WhatsAppProvider,
)
from memoryproject.foundation.integrations.whatsapp.registry import PROVIDERS
from memoryproject.foundation.integrations.whatsapp.templates import (
    MARKETING,
    MEDIA,
    ApprovedTemplate,
    Slot,
)
from memoryproject.foundation.text.characters import shows_nothing
from sessions_app.models import Chat, ChatAccess
from sessions_app.models.turns import BROADCAST, TEMPLATE
from sessions_app.takeover import staff_reply
from sessions_app.takeover.attachment import ReplyRefusedError
from sessions_app.turns.facade import chat_locked

# Meta's limits for names, and for the words of a message.
NAME = re.compile(r"[a-z0-9_]{1,512}")
LANGUAGE = re.compile(r"[a-z]{2,3}(_[A-Z]{2})?")
MAX_PARAMETERS = 20
MAX_PARAMETER = 1024
# Meta refuses a value with a line's end, a tab or more than four blanks in a row.
_REFUSED = re.compile(r"[\n\t\r]| {5}")


def takes_templates(by: staff_reply.OwnNumber) -> bool:
    """Return whether the number's provider sends templates."""
    return by.provider in PROVIDERS and PROVIDERS[by.provider].sends_templates


def chat_template(
    *,
    chat_id: UUID,
    template: Template,
    key: UUID,
    otherwise: staff_reply.OwnNumber,
    writer: staff_reply.Writer,
    approved: ApprovedTemplate | None = None,
    broadcast: str = "",
) -> staff_reply.HandReply:
    """Store a template as an assistant message and hand it to the chat's provider.

    It may go out at any time, also to a person who never wrote, but no marketing to a person who
    stopped that. ``approved``: the template in Meta's list, if known. The same ``key`` sends once.
    It pauses the assistant, unless it is of a ``broadcast``. Raises ReplyRefusedError and
    Chat.DoesNotExist.
    """
    template_check(template)
    title, values = f"{template.name} ({template.language})", template.parameters
    shown = [approved.preview(values)] if approved is not None and template.slots else values
    text = "\n".join([title, *shown])
    about = {"name": template.name, "language": template.language}
    of = {BROADCAST: broadcast} if broadcast else {}
    with transaction.atomic():
        chat = chat_locked(chat_id)
        if earlier := staff_reply.sent_before(key=key, chat=chat, text=text):
            return earlier
        by = staff_reply.number_of(chat, otherwise)
        if not takes_templates(by):
            raise ReplyRefusedError("no_templates")
        if approved is not None and approved.category == MARKETING and marketing_stopped(chat):
            raise ReplyRefusedError("marketing_stopped")
        return staff_reply.reply_turn_store(
            action="template",
            chat=chat,
            by=by,
            key=key,
            # The values are in the part alone, which loses them once it is sent.
            written=staff_reply.Written(
                text=text,
                parts=["\n".join([title, *values])],
                asked_at=writer.now,
                kind="template",
                context={TEMPLATE: {**about, "slots": list(map(asdict, template.slots))}, **of},
                metadata={"template": about, **of},
                details={**about, **of},
                pauses=not broadcast,
            ),
            writer=writer,
        )


def marketing_stopped(chat: Chat) -> bool:
    """Return whether the person has stopped marketing messages of ours."""
    return ChatAccess.objects.filter(chat=chat, marketing_stopped=True).exists()


def template_check(template: Template) -> None:
    """Raise ReplyRefusedError for what Meta would refuse in any case."""
    if not NAME.fullmatch(template.name):
        raise ReplyRefusedError("template_name")
    if not LANGUAGE.fullmatch(template.language):
        raise ReplyRefusedError("template_language")
    values = template.parameters
    if template.slots:
        for slot, value in zip(template.slots, values, strict=True):
            _slot_check(slot, value)
    elif len(values) > MAX_PARAMETERS or not all(map(_is_value, values)):
        raise ReplyRefusedError("template_parameters")


def _slot_check(slot: Slot, value: str) -> None:
    name = slot.name or slot.kind
    if not value and slot.is_optional:
        return
    if slot.kind in MEDIA and not re.fullmatch(r"https://\S+|\d+", value):
        raise ReplyRefusedError("template_media", name=name)
    if not _is_value(value):
        raise ReplyRefusedError("template_value", name=name)


def _is_value(value: str) -> bool:
    is_fit = not shows_nothing(value) and len(value) <= MAX_PARAMETER
    return is_fit and not _REFUSED.search(value)


# Meta's list of templates. It is asked for at most every five minutes, by all processes together.

LIST_SECONDS = 300


def templates_listed(provider: WhatsAppProvider) -> list[ApprovedTemplate] | None:
    """Return the approved templates; None where no business account is set.

    Raises SendError where Meta doesn't say.
    """
    if not isinstance(provider, TemplateLister) or not provider.list_key:
        return None
    key = hashlib.sha256(f"templates {provider.list_key}".encode()).hexdigest()
    found: list[ApprovedTemplate] | None = cache.get(key)
    if found is None:
        found = provider.templates()
        cache.set(key, found, LIST_SECONDS)
    return found


def template_found(provider: WhatsAppProvider, name: str, language: str) -> ApprovedTemplate | None:
    """Return a template of Meta's list; None where it isn't there, or Meta doesn't say."""
    try:
        listed = templates_listed(provider) or []
    except SendError:
        return None
    return next((each for each in listed if (each.name, each.language) == (name, language)), None)
