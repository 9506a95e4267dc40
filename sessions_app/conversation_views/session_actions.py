"""Open and end sessions on request of the API."""

from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import transaction
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import Actor
from sessions_app.conversations.message_store import ConversationNotFoundError
from sessions_app.conversations.session_lifecycle import session_end, session_start
from sessions_app.inbound.facade import IntakeRules, MemoryDisabledError
from sessions_app.models import Chat, ChatSession
from sessions_app.models.sessions import SessionStatus


class SessionEndedError(Exception):
    """The session has ended already."""

    def __init__(self, session: ChatSession) -> None:
        super().__init__(
            f"Session {session.pk} is {session.status}: only an active one can be reset. "
            "POST sessions/ opens the chat's active session."
        )


def session_reset(
    *, session_id: UUID, rules: IntakeRules, now: datetime, actor: Actor
) -> ChatSession:
    """End an active session as /reset does; return the new one.

    Raises ConversationNotFoundError, SessionEndedError and MemoryDisabledError.
    """
    with transaction.atomic():
        session = _session_locked(session_id)
        if session.status != SessionStatus.ACTIVE:
            raise SessionEndedError(session)
        if not rules.remember(session.chat):
            raise MemoryDisabledError
        session_end(session=session, at=now, actor=actor)
        return session_start(chat=session.chat, now=now, actor=actor)


def session_expire(*, session_id: UUID, now: datetime, actor: Actor) -> ChatSession:
    """Let a session expire now; a session that has ended stays as it is.

    Raises ConversationNotFoundError.
    """
    with transaction.atomic():
        session = _session_locked(session_id)
        if session.status == SessionStatus.ACTIVE:
            session_end(session=session, at=now, actor=actor)
        return session


def _session_locked(session_id: UUID) -> ChatSession:
    """Return the session with its chat, locked in that order."""
    found = ChatSession.objects.filter(pk=session_id).values_list("chat_id", flat=True).first()
    if found is None:
        raise ConversationNotFoundError(session_id)
    chat = Chat.objects.select_for_update(no_key=True).filter(pk=found).first()
    rows = ChatSession.objects.select_for_update(no_key=True)
    session = rows.filter(pk=session_id).first()
    if chat is None or session is None:
        raise ConversationNotFoundError(session_id)
    if session.chat_id == chat.pk:
        session.chat = chat
    return session


# The staff who have a conversation open, kept in the cache for less than a minute.


# The open page calls every 10 seconds; who hasn't called for longer has left.
LASTS_SECONDS = 25


def viewer_seen(*, chat_id: UUID, user: User) -> list[str]:
    """Record that a user has the chat open; return the names of the others, in order.

    Two users who call at the same moment may miss each other until the next call.
    """
    now = timezone.now().timestamp()
    key = f"viewers:{chat_id}"
    others = {
        number: (name, at)
        for number, (name, at) in cache.get(key, {}).items()
        if number != user.pk and now - at < LASTS_SECONDS
    }
    own = (user.get_full_name() or user.get_username(), now)
    cache.set(key, {**others, user.pk: own}, LASTS_SECONDS)
    return sorted(name for name, _at in others.values())
