"""Show staff what a memory that they write or correct would change, before they save it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from memories_app.errors import MemoryOperationError
from memories_app.facts.validation import NewMemory
from memories_app.models import Memory, Visibility
from memories_app.store.change import memory_patch
from memories_app.store.remember import memories_remember
from memoryproject.foundation.admin_kit.staff_pages import is_live, rights_required, staff_page
from memoryproject.foundation.audit.audit_events import staff_actor, staff_read_record
from memoryproject.foundation.integrations.embedders.base import Embedder, EmbedderError
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.limits.dependencies import is_owners
from sessions_app.models import Chat, Turn
from sessions_app.recall.facade import Hit
from sessions_app.turns.admin.teach import ADD, CHANGE, CLIENT, reason
from sessions_app.turns.change_trial import ChangeTrial, change_try, turns_to_try
from sessions_app.turns.dependencies import build_turn_dependencies

READS = ("sessions_app.view_chat", "sessions_app.view_message", "sessions_app.view_turn")
PAGE = "admin/sessions_app/turn/change_trial.html"


def change_trial_page(request: HttpRequest) -> HttpResponse:
    """Try the posted ``content``: of ``?memory=``, or as a new memory.

    A new one is tried as everyone's, or with ``for=client`` as that of the client of ``?turn=``.
    """
    rights_required(request, *READS)
    text = request.POST.get("content", "").replace("\r\n", "\n").strip()
    problem, trial = "", ChangeTrial(0, [])
    try:
        change, chat = _change(request, text)
        trial = change_try(
            change, content=text, turns=turns_to_try(chat), dependencies=build_turn_dependencies()
        )
    except (MemoryOperationError, EmbedderError) as error:
        problem = reason(error)
    rows = [
        {
            "turn": each.turn,
            "before": _rows(each.before, each.after),
            "after": _rows(each.after, each.before),
        }
        for each in trial.differences
    ]
    for chat_id in {each.turn.chat_id for each in trial.differences}:
        staff_read_record(request, "chat", chat_id, chat_id=chat_id)
    context: dict[str, Any] = {"trial": trial, "rows": rows, "problem": problem}
    if is_live(request):
        return TemplateResponse(request, "admin/sessions_app/turn/change_trial_list.html", context)
    return staff_page(request, PAGE, _("What would change"), context, of=Turn)


def _change(request: HttpRequest, text: str) -> tuple[Callable[[Embedder], object], Any]:
    """Return the change that was posted, and whose memory it is about."""
    actor = staff_actor(request)
    if key := uuid_or_none(request.GET.get("memory", "")):
        rights_required(request, CHANGE)
        memory = get_object_or_404(Memory, pk=key)
        changes = {"content": text}
        if request.POST.get("visibility") in Visibility.values:
            changes["visibility"] = request.POST["visibility"]
        return (
            lambda embedder: memory_patch(
                memory_id=memory.pk, changes=changes, actor=actor, embedder=embedder
            ),
            memory.chat_id,
        )
    rights_required(request, ADD)
    chat, visibility = _audience(request)
    new = NewMemory(
        content=text, visibility=visibility, chat_id=chat.pk if chat else None, source="staff"
    )
    return (
        lambda embedder: memories_remember(memories=[new], embedder=embedder, actor=actor),
        chat.pk if chat else None,
    )


def _audience(request: HttpRequest) -> tuple[Chat | None, str]:
    if request.POST.get("for") != CLIENT:
        return None, str(Visibility.PUBLIC)
    turn_id = request.GET.get("turn", "")
    if not turn_id.isdecimal():
        raise BadRequest("turn: the number of an answer")
    chat = get_object_or_404(Turn.objects.select_related("chat"), pk=int(turn_id)).chat
    return chat, str(Visibility.OWNER if is_owners(chat) else Visibility.CHAT)


def _rows(hits: Sequence[Hit], others: Sequence[Hit]) -> list[dict[str, Any]]:
    known = {(hit.id, hit.content) for hit in others}
    return [
        {"hit": hit, "only_here": (hit.id, hit.content) not in known, "score": round(hit.score, 2)}
        for hit in hits
    ]
