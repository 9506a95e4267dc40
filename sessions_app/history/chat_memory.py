"""Read and write a conversation's history through one service (seed 003)."""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from uuid import UUID

from django.db import DatabaseError, transaction
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import SYSTEM, Actor
from sessions_app.conversations import history_queries
from sessions_app.conversations.message_store import (
    MAX_MESSAGES,
    ConversationNotFoundError,
    DataValidationError,
    GenericMemoryError,
    NewMessage,
    checked_message,
    has_text,
    message_retext,
    messages_add,
)
from sessions_app.conversations.message_text import as_chat_lines
from sessions_app.conversations.session_lifecycle import SessionInChat, session_lock, session_read
from sessions_app.history.clear_session import Cleared, session_clear
from sessions_app.history.strategies import MemoryManagementStrategy, NoStrategy
from sessions_app.models import CLIENT, GODFATHER, Chat, ChatSession, Message, Role
from sessions_app.models.chats import Limits, chat_role
from sessions_app.summaries import summarizer, summary_store

logger = logging.getLogger(__name__)


def _nothing(_: UUID) -> None:
    """Do nothing, for callers that have no worker to make vectors."""


def _accept(_: Chat) -> None:
    """Accept every chat."""


@dataclass(frozen=True)
class ChatMemoryService:
    """The history of conversations; a conversation is a session.

    ``conversation_id`` is the session's session_id. ``strategy`` manages long histories; its hook
    is called after each commit that changed one. ``godfather`` holds the ids whose chats have the
    godfather's limit. ``image_root`` is the base of relative image paths. ``embed`` hands a session
    whose messages need vectors to a worker.

    ``get_messages``, ``add_messages``, ``clear_messages`` and ``get_conversation_history`` open
    their own transactions and raise only ChatMemoryError. ``append`` and ``retext`` are for callers
    that store more in the same transaction, with the session's row locked; errors of the database
    propagate.
    """

    limits: Limits = field(default_factory=Limits)
    godfather: Collection[str] = ()
    strategy: MemoryManagementStrategy = field(default_factory=NoStrategy)
    image_root: Path | None = None
    embed: Callable[[UUID], None] = _nothing

    def get_messages(
        self,
        *,
        conversation_id: UUID | str,
        limit: int | None = None,
        before: datetime | None = None,
    ) -> list[Message]:
        """Return the session's messages by order_num; nothing is in them twice: messages_before.

        limit: only the newest of them (1 or more); before: only those whose timestamp is earlier.
        Raises ConversationNotFoundError, DataValidationError for an id, a limit or a time that is
        none, GenericMemoryError.
        """
        conversation_id = session_id_of(conversation_id)
        check_count("limit", limit)
        check_time("before", before)
        with _database_errors("read", conversation_id):
            session = ChatSession.objects.filter(pk=conversation_id).first()
            if session is None:
                raise ConversationNotFoundError(conversation_id)
            return history_queries.messages_before(session=session, limit=limit, before=before)

    def add_messages(
        self,
        *,
        conversation_id: UUID | str,
        messages: Sequence[NewMessage],
        now: datetime | None = None,
        chat_ids: Collection[UUID] | None = None,
        check: Callable[[Chat], None] = _accept,
    ) -> list[Message]:
        """Store messages at the session's end, in the order given: all or none of them.

        At most 1,000 at once. ``chat_ids``: the chats that exist for the caller; None: all.
        ``check`` is called with the chat before anything is stored, and may raise an error of the
        caller's own.

        Returns them as stored. Raises ConversationNotFoundError; DataValidationError, which is a
        ValueError, and names the message and the field; GenericMemoryError.
        """
        conversation_id = session_id_of(conversation_id)
        check_messages(messages)
        check_time("now", now)
        if len(messages) > MAX_MESSAGES:
            raise DataValidationError(
                f"messages: {len(messages)} at once; at most {MAX_MESSAGES} are taken."
            )
        new = [
            checked_message(message, place=place, image_root=self.image_root)
            for place, message in enumerate(messages)
        ]
        now = now or timezone.now()
        with _database_errors("add to", conversation_id), transaction.atomic():
            found = session_lock(conversation_id, chat_ids=chat_ids)
            if found is None:
                raise ConversationNotFoundError(conversation_id)
            session = found.session
            check(session.chat)
            wants_vectors = has_text(new) and session.request_vectors(now)
            stored = self.append(session=session, new=new, role=self._role_in(found), now=now)
            if wants_vectors:
                transaction.on_commit(lambda: self.embed(session.pk), robust=True)
        return stored

    def clear_messages(self, *, conversation_id: UUID | str, actor: Actor = SYSTEM) -> Cleared:
        """Delete the session's messages and summaries and everything derived from them.

        The session stays, and its order numbers continue. Raises ConversationNotFoundError,
        DataValidationError for an id that is none, and GenericMemoryError.
        """
        conversation_id = session_id_of(conversation_id)
        with _database_errors("clear", conversation_id), transaction.atomic():
            locked = ChatSession.objects.select_for_update(no_key=True)
            session = locked.filter(pk=conversation_id).first()
            if session is None:
                raise ConversationNotFoundError(conversation_id)
            return session_clear(session=session, now=timezone.now(), actor=actor)

    def append(
        self, *, session: ChatSession, new: Sequence[NewMessage], role: str, now: datetime
    ) -> list[Message]:
        """Store messages in the caller's transaction; see messages_add.

        ``role`` is the chat's (client or godfather). The strategy's hook runs after the commit.
        """
        limit = self.limits.tokens_for(role)
        stored = messages_add(session=session, new=new, token_limit=limit, now=now)
        self.manage_after_commit(session)
        return stored

    def retext(self, *, message: Message, content: str) -> list[str]:
        """Replace the text of a stored message in the caller's transaction.

        A summary made of the old text is retracted and made again. Returns the texts that were
        removed with it.
        """
        session = ChatSession.objects.select_for_update(no_key=True).get(pk=message.session_id)
        limit = self.limits.tokens_for(self.role_in(session.chat))
        gone = summary_store.summaries_retract(session=session, order_num=message.order_num)
        message_retext(message=message, content=content, session=session, token_limit=limit)
        if gone:
            self.manage_after_commit(session)
        return gone

    def history(
        self,
        message: Message,
        *,
        user_role: str,
        max_messages: int | None = None,
        max_tokens: int | None = None,
        walk: Iterator[Message] | None = None,
    ) -> history_queries.History:
        """Return the part of the conversation that the model reads to answer a message.

        It holds the newest messages, the latest summary of others before the message, and excerpts
        of what is in neither. All of it fits the role's limit, or ``max_tokens`` if that is less;
        the last two messages are always whole. ``walk``: see history_until.
        """
        limit = self.limits.tokens_for(user_role)
        limit = limit if max_tokens is None else min(limit, max_tokens)
        return history_queries.history_until(
            message,
            user_role=user_role,
            max_tokens=limit,
            max_messages=max_messages,
            passage_tokens=summarizer.sizes_for(limit).passage if self.strategy.fills_gaps else 0,
            walk=walk,
        )

    def get_conversation_history(
        self,
        *,
        conversation_id: UUID | str,
        user_role: str | None = None,
        max_messages: int | None = None,
    ) -> list[dict[str, str]]:
        """Return the history as a chat model takes it: ``[{"role", "content"}]`` in order.

        It is the history of ``history``, for an answer to the session's last message,
        with that message's answer if there is one. The roles are user and assistant; the summaries,
        and the short form of what is in neither, are the first message, of the system. Results of
        tools, which mean nothing without their call, and empty messages are left out.

        user_role: whose token limit holds; by default that of the chat. max_messages: only the
        newest of the messages.

        Raises ConversationNotFoundError, DataValidationError, GenericMemoryError.
        """
        conversation_id = session_id_of(conversation_id)
        check_count("max_messages", max_messages)
        if user_role not in (None, CLIENT, GODFATHER):
            raise DataValidationError(f"user_role: must be {CLIENT} or {GODFATHER}.")
        with _database_errors("read", conversation_id):
            found = session_read(conversation_id)
            if found is None:
                raise ConversationNotFoundError(conversation_id)
            role = user_role or self._role_in(found)
            return self._last_history(found.session, role, max_messages)

    def _last_history(
        self, session: ChatSession, role: str, max_messages: int | None
    ) -> list[dict[str, str]]:
        walk = history_queries.conversation_walk(session.pk)
        last, after = history_queries.last_messages(session.pk, walk)
        if last is None:
            return []
        after = after[:max_messages]
        room = self.limits.tokens_for(role) - sum(message.tokens for message in after)
        most = None if max_messages is None else max_messages - len(after)
        history = self.history(
            last, user_role=role, max_messages=most, max_tokens=max(room, 1), walk=walk
        )
        messages = [*history.messages, *after]
        newest = messages if max_messages is None else messages[-max_messages:]
        shown = as_chat_lines(newest, is_group=session.chat.is_group)
        lines = [(role, text) for _message, role, text in shown]
        lines = [line for line in lines if line[0] != Role.TOOL and line[1].strip()]
        earlier = "\n\n".join(filter(None, (history.summary_text, history.passage)))
        if earlier:
            lines.insert(0, ("system", earlier))
        return [{"role": role, "content": content} for role, content in lines]

    def manage(self, *, conversation_id: UUID) -> int:
        """Do the work that the strategy's hook found, in a worker.

        Returns how many summaries were stored; 0 for a session that is gone.
        """
        session = ChatSession.objects.select_related("chat").filter(pk=conversation_id).first()
        if session is None:
            return 0
        role = self.role_in(session.chat)
        return self.strategy.work(
            session_id=session.pk, token_limit=self.limits.tokens_for(role), user_role=role
        )

    def role_in(
        self, chat: Chat, *, addresses: Collection[str] | None = None, warns: bool = False
    ) -> str:
        """Return the role of the person who writes in a chat: client or godfather.

        ``addresses``: the chat's current ones; they are read if they aren't given. ``warns``: log
        that nobody is the godfather where the setting is empty.
        """
        if warns and not self.godfather:
            logger.warning(
                "The role of %s cannot be determined, GODFATHER_PHONE is not set: client.",
                chat.whatsapp_chat,
            )
        return chat_role(chat, godfather=self.godfather, addresses=addresses)

    def _role_in(self, found: SessionInChat) -> str:
        return self.role_in(found.session.chat, addresses=found.addresses)

    def manage_after_commit(self, session: ChatSession) -> None:
        """Call the strategy's hook for a session after the caller's transaction commits."""
        hook = self.strategy.post_add_messages_hook
        transaction.on_commit(lambda: hook(session=session), robust=True)


@contextmanager
def _database_errors(action: str, conversation_id: UUID) -> Iterator[None]:
    """Raise errors of the database as the service's own error."""
    try:
        yield
    except DatabaseError as error:
        logger.exception("Could not %s session %s.", action, conversation_id)
        raise GenericMemoryError(
            f"Could not {action} session {conversation_id}: {type(error).__name__}. "
            "Nothing was changed; try again."
        ) from error


# Check what callers give to the history of conversations; all errors are DataValidationError.


def session_id_of(given: object) -> UUID:
    """Return a session_id, given as UUID or as its text."""
    if isinstance(given, UUID):
        return given
    if isinstance(given, str):
        try:
            return UUID(given)
        except ValueError:
            pass
    raise DataValidationError(
        f"conversation_id: must be a session_id (a UUID), not {_shown(given)}."
    )


def check_count(name: str, given: object) -> None:
    """Check a number of messages, 1 or more; None stands for no limit."""
    if given is None:
        return
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise DataValidationError(f"{name}: must be 1 or more, not {_shown(given)}.")


def check_time(name: str, given: object) -> None:
    """Check a time with its zone; None stands for none."""
    if given is None:
        return
    if not isinstance(given, datetime):
        raise DataValidationError(f"{name}: must be a date and time, not {_shown(given)}.")
    if given.tzinfo is None:
        raise DataValidationError(f"{name}: must have a time zone, such as a Z at its end.")


def check_messages(given: object) -> None:
    """Check that these are messages; their fields are checked one by one afterwards."""
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise DataValidationError(f"messages: must be a list, not {_shown(given)}.")
    for place, message in enumerate(given):
        if not isinstance(message, NewMessage):
            raise DataValidationError(
                f"messages[{place}]: must be a NewMessage, not {type(message).__name__}."
            )


def _shown(given: object) -> str:
    if isinstance(given, int):
        return str(given) if abs(given) < 10**9 else "such a number"
    return type(given).__name__ if not isinstance(given, str) else f"{given[:40]!r}"
