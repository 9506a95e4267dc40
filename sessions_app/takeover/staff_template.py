"""Send a template that Meta has approved: the only message that goes out after the window closed.

Meta holds a template's words; we know its name, its language and the values of its variables.
"""

from __future__ import annotations

import re
from datetime import datetime
from uuid import UUID

from django.db import transaction

from memoryproject.foundation.integrations.whatsapp.base import Template
from memoryproject.foundation.integrations.whatsapp.registry import PROVIDERS
from sessions_app.models.turns import TEMPLATE
from sessions_app.takeover.attachment import BadTemplateError, NoTemplatesError
from sessions_app.takeover.staff_reply import (
    HandReply,
    OwnNumber,
    Writer,
    Written,
    number_of,
    reply_turn_store,
    sent_before,
)
from sessions_app.turns.facade import chat_locked

# Meta's limits for names, and for the words of a message.
NAME = re.compile(r"[a-z0-9_]{1,512}")
LANGUAGE = re.compile(r"[a-z]{2,3}(_[A-Z]{2})?")
MAX_PARAMETERS = 20
MAX_PARAMETER = 1024
# Meta refuses a value with a line's end, a tab or more than four blanks in a row.
_REFUSED = re.compile(r"[\n\t\r]| {5}")


def takes_templates(by: OwnNumber) -> bool:
    """Return whether the number's provider sends templates."""
    return by.provider in PROVIDERS and PROVIDERS[by.provider].sends_templates


def chat_template(
    *, chat_id: UUID, template: Template, key: UUID, otherwise: OwnNumber, writer: Writer
) -> HandReply:
    """Store a template as an assistant message and hand it to the chat's provider.

    It may go out at any time, also to a person who never wrote. The same ``key`` sends once. Where
    the assistant isn't paused, it is paused for OWN_PAUSE. Raises ReplyRefusedError and
    Chat.DoesNotExist.
    """
    template_check(template)
    text = template_text(template)
    with transaction.atomic():
        chat = chat_locked(chat_id)
        earlier = sent_before(key=key, chat=chat, text=text)
        if earlier is not None:
            return earlier
        by = number_of(chat, otherwise)
        if not takes_templates(by):
            raise NoTemplatesError
        return reply_turn_store(
            action="takeover.template",
            chat=chat,
            by=by,
            key=key,
            written=_written(template, text, writer.now),
            writer=writer,
        )


def template_check(template: Template) -> None:
    """Raise BadTemplateError for what Meta would refuse in any case."""
    if not NAME.fullmatch(template.name):
        raise BadTemplateError("name")
    if not LANGUAGE.fullmatch(template.language):
        raise BadTemplateError("language")
    values = template.parameters
    if len(values) > MAX_PARAMETERS or any(
        not value.strip() or len(value) > MAX_PARAMETER or _REFUSED.search(value)
        for value in values
    ):
        raise BadTemplateError("parameters")


def template_text(template: Template) -> str:
    """Return what stands in the conversation for a template."""
    return "\n".join([f"{template.name} ({template.language})", *template.parameters])


def _written(template: Template, text: str, now: datetime) -> Written:
    about = {"name": template.name, "language": template.language}
    return Written(
        text=text,
        # The values are in the part alone, which loses them once it is sent.
        parts=[text],
        asked_at=now,
        kind="template",
        context={TEMPLATE: about},
        metadata={"template": about},
        details=about,
    )
