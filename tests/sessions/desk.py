"""Staff at work: pausing, answering by hand and running turns again, through the services that
the admin calls."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import Actor
from sessions_app.models import ChatPause, Turn
from sessions_app.takeover.staff_reply import HandReply, OwnNumber, StaffReply, Writer, chat_reply
from sessions_app.turns.rerun import turn_rerun
from sessions_app.turns.turn_claims import Resumed, chat_pause, chat_resume
from tests.world import CLIENT, World

DAY = timedelta(hours=24)


@dataclass
class Desk:
    """One of the staff, at the desk of a world."""

    world: World
    user: User
    otherwise: OwnNumber = OwnNumber("console")

    @property
    def actor(self) -> Actor:
        return Actor("staff", self.user.get_username())

    def pause(self, whatsapp_chat: str = CLIENT, until: datetime | None = None) -> ChatPause:
        return chat_pause(
            chat_id=self.world.chat(whatsapp_chat).pk,
            until=until,
            by=self.user.pk,
            actor=self.actor,
            now=timezone.now(),
        )

    def resume(self, whatsapp_chat: str = CLIENT, *, answer_last: bool = False) -> Resumed:
        return chat_resume(
            chat_id=self.world.chat(whatsapp_chat).pk,
            actor=self.actor,
            now=timezone.now(),
            enqueue=self.world.enqueued.append,
            max_age=self.world.rules.max_answer_age,
            answer_last=answer_last,
        )

    def write(
        self,
        text: str,
        whatsapp_chat: str = CLIENT,
        *,
        key: UUID | None = None,
        now: datetime | None = None,
        quote: str = "",
    ) -> HandReply:
        """A reply by hand, not sent yet."""
        return chat_reply(
            chat_id=self.world.chat(whatsapp_chat).pk,
            reply=StaffReply(text, key or uuid.uuid4(), quote=quote),
            writer=Writer(
                author_id=self.user.pk,
                actor=self.actor,
                rules=self.world.rules,
                enqueue=self.world.enqueued.append,
                now=now or timezone.now(),
            ),
            providers=self.world.dependencies.providers,
            otherwise=self.otherwise,
        )

    def rerun(self, turn: Turn, **more: Any) -> str:
        return turn_rerun(
            turn_id=turn.pk,
            actor=self.actor,
            max_age=DAY,
            enqueue=self.world.enqueued.append,
            now=more.pop("now", timezone.now()),
            **more,
        )
