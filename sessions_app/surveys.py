"""Ask people with one tap whether a conversation helped, where nothing they said tells."""

from __future__ import annotations

import uuid
from datetime import timedelta

from django.db import transaction

from memoryproject.foundation.integrations.embedders.base import Embedder
from sessions_app.conversations.chat_queries import last_heard
from sessions_app.models import Chat, ChatSession, Turn
from sessions_app.models.chats import Provider
from sessions_app.models.messages import SURVEY
from sessions_app.models.sessions import SessionStatus
from sessions_app.outcomes.judge import is_doubtful
from sessions_app.rules import Outlet, left_out
from sessions_app.takeover.facade import Written, marketing_stopped, number_of, reply_turn_store
from sessions_app.turns.facade import chat_locked, has_buttons, pause_in_force, survey_question

# A session that is quiet for so long is asked about, unless it ends before; and what wasn't asked
# in so much time isn't asked any more.
QUIET, ASKED_WITHIN = timedelta(hours=1), timedelta(minutes=30)
AT_ONCE = 100
_KEYS = uuid.UUID("6b0f3e0a-5a0c-4b0e-9d55-8a3f2b7c1d90")


def surveys_ask(*, every: timedelta, outlet: Outlet, embedder: Embedder) -> int:
    """Ask in the conversations that have become quiet; return in how many.

    ``every``: nobody is asked again within so much time. Groups, the owner, and who said stop are
    never asked, nor is anybody where the assistant is paused or WhatsApp's window has closed.
    """
    writer = outlet.writer
    until = writer.now - min(QUIET, writer.rules.session_timeout / 2)
    quiet = ChatSession.objects.filter(
        status=SessionStatus.ACTIVE,
        last_active__range=(until - ASKED_WITHIN, until),
        chat__is_group=False,
    )
    quiet = quiet.exclude(chat__provider=Provider.CONSOLE).select_related("chat")
    sessions = list(quiet.order_by("last_active")[:AT_ONCE])
    out = left_out({session.chat_id for session in sessions})
    return sum(
        _ask(session, outlet)
        for session in sessions
        if session.chat_id not in out
        and _may_ask(session.chat, outlet, every)
        and is_doubtful(session, embedder=embedder, now=writer.now)
    )


def _may_ask(chat: Chat, outlet: Outlet, every: timedelta) -> bool:
    now, heard = outlet.writer.now, last_heard(chat)
    earlier = Turn.objects.filter(chat=chat, created_at__gt=now - every, context__has_key=SURVEY)
    if heard is None or now - heard > outlet.writer.rules.max_answer_age or earlier.exists():
        return False
    return pause_in_force(chat.pk, now) is None and not marketing_stopped(chat)


def _ask(session: ChatSession, outlet: Outlet) -> bool:
    """Send the question, once for a session, unless something was said meanwhile."""
    key = uuid.uuid5(_KEYS, str(session.pk))
    with transaction.atomic():
        chat = chat_locked(session.chat_id)
        same = ChatSession.objects.filter(pk=session.pk, last_active=session.last_active)
        if not same.exists() or Turn.objects.filter(turn_id=key).exists():
            return False
        by = number_of(chat, outlet.otherwise)
        text, question = survey_question(chat.language)
        if not has_buttons(question, outlet.providers[by.provider], is_group=False):
            text = question.text_with_numbers(text)
        mark = {SURVEY: str(session.pk)}
        written = Written(
            text=text,
            parts=[text],
            asked_at=session.last_active,
            context={**mark, **question.as_context(1)},
            metadata=mark,
        )
        reply_turn_store(
            action="survey", chat=chat, by=by, key=key, written=written, writer=outlet.writer
        )
    return True
