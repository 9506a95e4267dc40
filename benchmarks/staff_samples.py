"""The records that the benchmark of the staff's pages opens: usual ones, and the largest."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any
from uuid import UUID

from django.db.models import Model
from staff_world import USUAL_CHAT

from memories_app.models import Memory, MemoryRevision
from sessions_app.models import Chat, ChatSession, Message, Turn

RUNS = "sessions_app.forgetting.runs"


def samples_of(model: type[Model]) -> dict[str, Any]:
    """Keys of some records, by what is special about them; none where the table is empty."""
    special = SPECIAL.get(model._meta.object_name or "")
    if special is not None:
        return {label: key for label, key in special().items() if key is not None}
    newest = model._default_manager.order_by("-pk").values_list("pk", flat=True).first()
    return {} if newest is None else {"": newest}


def _largest() -> ChatSession | None:
    return ChatSession.objects.order_by("-message_counter").first()


def _chats() -> dict[str, Any]:
    largest = _largest()
    usual = Chat.objects.filter(whatsapp_chat=USUAL_CHAT).first()
    some = Chat.objects.filter(client_name__endswith=" 40").first()
    return {
        "usual": some.pk if some else None,
        "real": usual.pk if usual else None,
        "largest": largest.chat_id if largest else None,
    }


def _sessions() -> dict[str, Any]:
    largest = _largest()
    usual = ChatSession.objects.filter(message_counter__range=(20, 40)).first()
    return {"usual": usual and usual.pk, "largest": largest and largest.pk}


def _messages() -> dict[str, Any]:
    largest = _largest()
    said = Message.objects.filter(session=largest, role="user")
    one = said.order_by("-order_num").first()
    return {"": one and one.pk}


def _turns() -> dict[str, Any]:
    real = Turn.objects.filter(chat__whatsapp_chat=USUAL_CHAT).order_by("-id").first()
    failed = Turn.objects.filter(state="failed").order_by("-id").first()
    largest = _largest()
    late = Turn.objects.filter(session=largest, state="sent").order_by("-id").first()
    found = {"real": real, "failed": failed, "in the largest session": late}
    return {label: turn and turn.pk for label, turn in found.items()}


def _memories() -> dict[str, Any]:
    revision = MemoryRevision.objects.order_by("-pk").first()
    owners = Memory.objects.filter(visibility="owner", status="active").order_by("pk").first()
    return {"revised": revision and revision.memory_id, "owner's": owners and owners.pk}


SPECIAL = {
    "Chat": _chats,
    "ChatSession": _sessions,
    "Message": _messages,
    "Turn": _turns,
    "Memory": _memories,
}


def runs_draft(username: str) -> None:
    """Choose some things to be forgotten, so that there are previews; where there is such a
    thing. Nothing is forgotten."""
    if importlib.util.find_spec(RUNS) is None:
        return
    runs = importlib.import_module(RUNS)

    def draft(kind: str, key: UUID | None) -> UUID | None:
        return key and runs.run_draft(chosen=[(kind, key)], asked_by=username).pk

    chats = _chats()
    drafts = {
        "a memory": draft("memory", _memories()["owner's"]),
        "a usual chat": draft("chat", chats["usual"]),
        "the largest chat": draft("chat", chats["largest"]),
    }
    SPECIAL["ForgetRun"] = lambda: drafts
