"""Stores messages: numbers them, counts their tokens, moves the window."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memoryproject.lib.text.terms import index_text
from memoryproject.lib.tokens import estimate_tokens
from sessions_app.models import ChatSession, Message
from sessions_app.models.messages import Role
from sessions_app.services.window import KEEP_LAST

logger = logging.getLogger(__name__)

PRUNE_BATCH = 50


@dataclass(frozen=True)
class NewMessage:
    """What is to be stored, by the names of Message's fields; ``content`` is kept as it is."""

    role: str
    content: str
    timestamp: datetime
    sender: str = ""
    recipient: str = ""
    kind: str = "text"
    provider: str = ""
    number_id: str = ""
    provider_message_id: str | None = None
    answers: Message | None = None
    was_received: bool = True
    image_path: str | None = None
    media: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)


def message_add(
    *, session: ChatSession, new: NewMessage, token_limit: int, now: datetime
) -> Message:
    """Store a message as the session's next one and keep the window within ``token_limit``.

    ``session`` is locked by the caller's transaction and is saved. Raises ValueError for an
    unknown role (ERR-SESSION-004).
    """
    tokens = estimate_tokens(new.content)
    _check(session, new, tokens, token_limit)
    indexed = index_text(new.content)
    session.message_counter += 1
    session.total_tokens += tokens
    session.last_active = now
    message = Message.objects.create(
        session=session,
        chat_id=session.chat_id,
        order_num=session.message_counter,
        received_at=now,
        tokens=tokens,
        terms=indexed.terms,
        term_count=indexed.length,
        **vars(new),
    )
    window_prune(session=session, token_limit=token_limit)
    session.save(update_fields=["message_counter", "total_tokens", "last_active", "window_start"])
    return message


def _check(session: ChatSession, new: NewMessage, tokens: int, token_limit: int) -> None:
    """Refuse an unknown role; tell of what is accepted but unusual."""
    if new.role not in Role.values:
        raise ValueError(
            f"Unknown role {new.role!r}: a message's role is one of {', '.join(Role.values)}."
        )
    if not new.content.strip() and new.kind == "text":
        logger.warning("A message without text was stored in session %s.", session.session_id)
    if tokens > token_limit:
        logger.warning(
            "A message of %d tokens exceeds the limit of %d in session %s: it is kept whole.",
            tokens,
            token_limit,
            session.session_id,
        )


def window_prune(*, session: ChatSession, token_limit: int) -> None:
    """Move the window's start forward until it holds at most ``token_limit`` tokens, or only
    the last messages. Reads the messages that leave the window, not those before or after.
    The rows stay; ``session`` is changed, not saved.
    """
    if session.total_tokens <= token_limit:
        return
    latest = session.messages.order_by("-order_num").values_list("order_num", flat=True)
    kept = list(latest[:KEEP_LAST])
    limit_order = min(kept, default=1)
    while session.total_tokens > token_limit and session.window_start < limit_order:
        oldest = session.messages.filter(
            order_num__gte=session.window_start, order_num__lt=limit_order
        ).order_by("order_num")
        batch = list(oldest.values_list("order_num", "tokens")[:PRUNE_BATCH])
        if not batch:
            session.window_start = limit_order
        for order_num, tokens in batch:
            session.window_start = order_num + 1
            session.total_tokens -= tokens
            logger.debug("Message %d left the window of %s.", order_num, session.session_id)
            if session.total_tokens <= token_limit:
                break


def message_retext(*, message: Message, content: str, token_limit: int) -> None:
    """Give a stored message another text and keep its session's window right."""
    session = ChatSession.objects.select_for_update(no_key=True).get(pk=message.session_id)
    grown = estimate_tokens(content) - message.tokens
    indexed = index_text(content)
    message.content = content
    message.tokens += grown
    message.terms, message.term_count = indexed.terms, indexed.length
    # Stored before the window is pruned, which may take this very message out by its tokens.
    message.save(update_fields=["content", "tokens", "terms", "term_count"])
    message.embeddings.all().delete()
    if message.order_num >= session.window_start:
        session.total_tokens += grown
        window_prune(session=session, token_limit=token_limit)
        session.save(update_fields=["total_tokens", "window_start"])
