"""Tell the open page of a conversation who else has it open."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.utils.translation import ngettext

from memoryproject.foundation.process.narrowing import instance
from sessions_app.conversation_views.viewers import viewer_seen
from sessions_app.models import Chat


def viewers_page(request: HttpRequest, chat_id: UUID) -> HttpResponse:
    """Return ``text``, for people, empty if nobody else is there; no message is read."""
    if not request.user.has_perms(["sessions_app.view_chat", "sessions_app.view_message"]):
        raise PermissionDenied
    if request.method != "GET":
        return HttpResponseNotAllowed(["GET"])
    if not Chat.objects.filter(pk=chat_id).exists():
        raise Http404("There is no such chat, or not any more.")
    names = viewer_seen(chat_id=chat_id, user=instance(request.user, User))
    text = ngettext("%(names)s is viewing", "%(names)s are viewing", len(names))
    return JsonResponse({"text": text % {"names": ", ".join(names)} if names else ""})
