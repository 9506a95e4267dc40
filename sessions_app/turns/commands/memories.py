"""/memories [page]: list what is remembered."""

from __future__ import annotations

import re

from django.db.models import QuerySet

from memories_app.models import Memory
from memories_app.search.facade import memories_in_order, memories_visible
from sessions_app.conversations.facade import text_for
from sessions_app.models import Turn
from sessions_app.turns.commands.replies import is_owners, lines_of, list_of, say, system_text
from sessions_app.turns.reply_store import Draft

A_PAGE = 10
PAGE = re.compile(r"[1-9]\d{0,5}")


def visible_to(turn: Turn) -> QuerySet[Memory]:
    """Return the memories that the author of the message may see."""
    return memories_visible(is_owner=is_owners(turn), is_staff=False, chat_id=turn.chat_id)


def memories_reply(*, turn: Turn, page: str) -> Draft:
    """Return a page of what is remembered; the first page where no number is given."""
    language = turn.chat.language
    memories = memories_in_order(visible_to(turn)).defer("terms")
    count = memories.count()
    if not count:
        return say("memories_none", language)
    pages = -(-count // A_PAGE)
    wanted = int(page) if PAGE.fullmatch(page) else 0 if page else 1
    if not 1 <= wanted <= pages:
        return say("memories_no_page", language, pages=pages)
    start = (wanted - 1) * A_PAGE
    listed = list(memories[start : start + A_PAGE])
    lines = lines_of(listed, turn, first=start + 1)
    text = text_for("memories", language, count=str(count), lines=lines)
    if pages > 1:
        text += "\n\n" + text_for("memories_page", language, page=str(wanted), pages=str(pages))
        if wanted < pages:
            text += text_for("memories_next", language, next=str(wanted + 1))
    return system_text(text, listed=list_of(listed, first=start + 1))
