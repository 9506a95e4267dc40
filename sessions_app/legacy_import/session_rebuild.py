"""Compute a session's derived values again from its messages (RECOVERY-001)."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from django.db import transaction

from sessions_app.conversations.facade import (
    cards_request,
    indexed_of,
    stored_tokens,
    window_recompute,
)
from sessions_app.inbound.facade import IntakeRules
from sessions_app.legacy_import.import_session import chat_of_session, token_limit
from sessions_app.models import ChatSession, Message, SummarizationMetadata
from sessions_app.models.messages import Role
from sessions_app.models.sessions import SessionStatus

logger = logging.getLogger(__name__)

BATCH = 500
INDEXED = ["tokens", "terms", "term_count"]


class SessionNotFoundError(Exception):
    """There is no session with this id."""


@dataclass(frozen=True)
class SessionState:
    """The values of a session's row; ``last_active`` in ISO form."""

    messages: int
    message_counter: int
    total_tokens: int
    window_start: int
    summarized_until: int
    last_active: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Rebuilt:
    """The session before and after, and how many messages had wrong tokens or terms."""

    before: SessionState
    after: SessionState
    messages_changed: int


def session_rebuild(*, session_id: UUID, rules: IntakeRules) -> Rebuilt:
    """Set a session's derived values from its stored messages.

    These are its counter, window, tokens, last_active and the end of its summaries, and the
    tokens and terms of each message. The card of an ended session is made again. Raises
    SessionNotFoundError.
    """
    with transaction.atomic():
        chat = chat_of_session(session_id)
        sessions = ChatSession.objects.select_for_update(no_key=True)
        session = sessions.filter(pk=session_id).first()
        if chat is None or session is None:
            raise SessionNotFoundError
        before = session_state(session)
        changed = _index_again(session)
        window_recompute(session=session, token_limit=token_limit(chat=chat, rules=rules))
        newest = SummarizationMetadata.objects.filter(session=session).order_by("-number")
        summarized = newest.values_list("last_order", flat=True).first()
        session.summarized_until = summarized or 0
        messages = session.messages.exclude(role=Role.SUMMARY)
        last = messages.order_by("-order_num").first()
        session.last_active = last.received_at if last else session.last_active
        session.save(
            update_fields=[
                "message_counter",
                "total_tokens",
                "window_start",
                "summarized_until",
                "last_active",
            ]
        )
        if session.status != SessionStatus.ACTIVE:
            cards_request(session_ids=[session.pk])
    after = session_state(session)
    if changed or before != after:
        logger.info("Session %s was rebuilt from its messages.", session_id)
    return Rebuilt(before, after, changed)


def session_state(session: ChatSession) -> SessionState:
    return SessionState(
        messages=session.messages.count(),
        message_counter=session.message_counter,
        total_tokens=session.total_tokens,
        window_start=session.window_start,
        summarized_until=session.summarized_until,
        last_active=session.last_active.isoformat(),
    )


def _index_again(session: ChatSession) -> int:
    """Correct the tokens and terms of the texts; return how many messages were wrong."""
    wrong = last = 0
    ordered = session.messages.order_by("order_num")
    while batch := list(ordered.filter(order_num__gt=last)[:BATCH]):
        last = batch[-1].order_num
        changed = [message for message in batch if _corrected(message)]
        Message.objects.bulk_update(changed, INDEXED)
        wrong += len(changed)
    return wrong


def _corrected(message: Message) -> bool:
    """Set the values derived from the text; return whether they changed."""
    old = [getattr(message, name) for name in INDEXED]
    indexed = indexed_of(message.content, message.metadata)
    message.tokens = stored_tokens(message.content, message.metadata)
    message.terms, message.term_count = indexed.terms, indexed.length
    return old != [getattr(message, name) for name in INDEXED]
