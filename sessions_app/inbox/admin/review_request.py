"""The fields that a form about some chats posts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import User
from django.http import HttpRequest

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.presentation.chat_page import made_at


@dataclass(frozen=True)
class ReviewRequest:
    """A request of a staff member about some chats."""

    request: HttpRequest
    user: User
    actor: Actor
    chats: list[UUID]
    value: str

    @property
    def chat(self) -> UUID:
        return self.chats[0]

    @property
    def message(self) -> UUID | None:
        return uuid_or_none(self.value or self.request.POST.get("message", ""))

    def seen(self) -> dict[UUID, UUID]:
        """Return the last message that was shown of each chat."""
        found = {key: uuid_or_none(text) for key, text in self._of_each("seen").items()}
        return {key: message for key, message in found.items() if message is not None}

    def seen_at(self) -> datetime | None:
        """Return the time when the page of the form was made."""
        return made_at(self.request.POST.get("made", ""))

    def was(self) -> dict[UUID, str]:
        """Return the assignee that was shown for each chat."""
        return self._of_each("was")

    def _of_each(self, name: str) -> dict[UUID, str]:
        posted = {key: self.request.POST.get(f"{name}-{key}") for key in self.chats}
        return {key: value for key, value in posted.items() if value is not None}


Do = Callable[[ReviewRequest], str]


def is_key(value: str) -> bool:
    return value.isascii() and value.isdigit() and len(value) < 10
