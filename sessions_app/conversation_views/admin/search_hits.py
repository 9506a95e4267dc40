"""Find words in one conversation, with links from hit to hit."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.conversations.facade import FOUND, messages_found
from sessions_app.inbox.presentation import MAX_QUERY_LENGTH, Hit
from sessions_app.models import Chat
from sessions_app.presentation.links import conversation_address
from sessions_app.recall.facade import snippet_of


def found_in(request: HttpRequest, chat: Chat) -> dict[str, Any]:
    """Return the hits of the search.

    ``hit_before`` and ``hit_after`` lead to the next older and newer hit from the current one;
    without a current hit, they lead to the newest.
    """
    text = request.GET.get("q", "").replace("\x00", "").strip()[:MAX_QUERY_LENGTH]
    found = messages_found(chat, text) if text else []
    hits = [
        Hit(
            message,
            conversation_address(chat.pk, message.pk, query=text),
            snippet_of(message.content, text),
        )
        for message in found
    ]
    place = _place(hits, request.GET.get("at", ""))
    return {
        "query": text,
        "hits": hits,
        "most_hits": FOUND,
        "hit_number": None if place is None else place + 1,
        # The newest are first.
        "hit_before": _address(hits, 0 if place is None else place + 1),
        "hit_after": "" if place is None else _address(hits, place - 1),
    }


def _place(hits: list[Hit], at: str) -> int | None:
    key = uuid_or_none(at)
    keys = [hit.message.pk for hit in hits]
    return keys.index(key) if key in keys else None


def _address(hits: list[Hit], place: int) -> str:
    return hits[place].address if 0 <= place < len(hits) else ""
