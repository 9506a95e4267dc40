"""Opens and ends sessions."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from sessions_app.models import Chat, ChatSession
from sessions_app.models.sessions import SessionStatus

logger = logging.getLogger(__name__)


def session_open(*, chat: Chat, now: datetime, timeout: timedelta) -> ChatSession:
    """The chat's active session, locked until the transaction ends; a new one if there is
    none or if it has been idle for ``timeout`` (to the second, EDGE-004).

    The caller holds the lock of the chat's row, so that two openers can't race.
    """
    session = (
        ChatSession.objects.select_for_update(no_key=True)
        .filter(chat=chat, status=SessionStatus.ACTIVE)
        .first()
    )
    if session and session.last_active.replace(microsecond=0) + timeout > now:
        return session
    if session:
        session_end(session=session, now=now)
    return session_start(chat=chat, now=now)


def session_start(*, chat: Chat, now: datetime) -> ChatSession:
    session = ChatSession.objects.create(chat=chat, created_at=now, last_active=now)
    logger.info("Session %s of %s was created.", session.session_id, chat.whatsapp_chat)
    return session


def session_end(*, session: ChatSession, now: datetime) -> None:
    """Expire a session; its messages stay."""
    session.status = SessionStatus.EXPIRED
    session.expired_at = now
    session.save(update_fields=["status", "expired_at"])
    logger.info("Session %s of %s expired.", session.session_id, session.whatsapp_chat)
