"""The addresses of a chat's takeover: the panel alone, and what its forms post to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.shortcuts import redirect
from django.urls import path
from django.utils import timezone
from django.utils.translation import gettext as _

from memoryproject.foundation.admin_kit.display import moment_shown
from memoryproject.foundation.audit.staff import staff_actor
from sessions_app.models import Chat
from sessions_app.models.chats import Provider
from sessions_app.presentation.links import conversation_address
from sessions_app.takeover.admin.panel import (
    chat_to_act_on,
    panel_of,
    panel_page,
)
from sessions_app.takeover.admin.pause_form import pause_end
from sessions_app.takeover.admin.reply_form import (
    refusal_text,
    reply_posted,
    template_posted,
    template_typed,
    text_posted,
)
from sessions_app.takeover.canned_replies import canned_search
from sessions_app.takeover.reply_errors import ReplyRefusedError
from sessions_app.takeover.reply_turn import HandReply
from sessions_app.turns.dependencies import enqueue_chat, max_answer_age
from sessions_app.turns.facade import chat_pause, chat_resume


def takeover_paths(wrap: Callable[..., Any]) -> list[Any]:
    """Return the URLs of a chat's takeover; ``wrap`` is the admin site's admin_view."""
    views = {
        "": page,
        "pause/": pause,
        "resume/": resume,
        "reply/": reply,
        "template/": template,
        "canned/": canned_replies,
    }
    return [
        path(
            f"takeover/<uuid:chat_id>/{rest}",
            wrap(_not_found_if_forgotten(view)),
            name="_".join(["sessions_app_chat_takeover", *rest.strip("/").split()]),
        )
        for rest, view in views.items()
    ]


def _not_found_if_forgotten(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Answer 404 for a chat that is forgotten during the request, as for one forgotten before."""

    def found(request: HttpRequest, chat_id: UUID) -> HttpResponse:
        try:
            return view(request, chat_id)
        except Chat.DoesNotExist:
            raise Http404 from None

    return found


def page(request: HttpRequest, chat_id: UUID) -> HttpResponse:
    """Show the panel alone."""
    chat = chat_to_act_on(request, chat_id)
    return panel_page(request, chat, panel_of(request, chat))


def pause(request: HttpRequest, chat_id: UUID) -> HttpResponse:
    """Pause the assistant by POST ``lasts``: 1h, 8h, morning, open, or at with ``until``."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    chat = chat_to_act_on(request, chat_id)
    try:
        until = pause_end(request)
    except forms.ValidationError as error:
        panel = replace(panel_of(request, chat), problem=" ".join(error.messages))
        return panel_page(request, chat, panel, status=422)
    chat_pause(
        chat_id=chat.pk,
        until=until,
        by=request.user.pk,
        actor=staff_actor(request),
        now=timezone.now(),
    )
    if until is None:
        message = _("The assistant is paused until you turn it on.")
    else:
        message = _("The assistant is paused until %(time)s.") % {"time": moment_shown(until)}
    messages.success(request, message)
    return redirect(conversation_address(chat.pk))


def resume(request: HttpRequest, chat_id: UUID) -> HttpResponse:
    """Resume the assistant by POST; with ``answer=last`` the last message is answered now."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    chat = chat_to_act_on(request, chat_id)
    answer_last = request.POST.get("answer") == "last"
    done = chat_resume(
        chat_id=chat.pk,
        actor=staff_actor(request),
        now=timezone.now(),
        enqueue=enqueue_chat,
        max_age=max_answer_age(),
        answer_last=answer_last,
    )
    if not done.was_paused:
        messages.warning(request, _("The assistant wasn't paused here any more."))
    elif done.answering:
        messages.success(request, _("The assistant goes on, and answers the last message now."))
    elif answer_last:
        messages.warning(
            request, _("The assistant goes on. No message waited for an answer any more.")
        )
    else:
        messages.success(request, _("The assistant goes on with the next message."))
    return redirect(conversation_address(chat.pk))


def reply(request: HttpRequest, chat_id: UUID) -> HttpResponse:
    """Send a reply by POST ``text``, ``file``, ``quote`` and ``key``; each form has its own key."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    chat = chat_to_act_on(request, chat_id)
    try:
        done = reply_posted(request, chat)
    except ReplyRefusedError as refused:
        panel = replace(
            panel_of(request, chat, quote=request.POST.get("quote", "")),
            text=text_posted(request),
            problem=refusal_text(refused),
        )
        return panel_page(request, chat, panel, status=409)
    _report(request, done)
    return redirect(conversation_address(chat.pk))


def template(request: HttpRequest, chat_id: UUID) -> HttpResponse:
    """Send a template by POST ``name``, ``language``, ``parameters`` (a line each) and ``key``."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    chat = chat_to_act_on(request, chat_id)
    try:
        done = template_posted(request, chat)
    except ReplyRefusedError as refused:
        panel = replace(
            panel_of(request, chat),
            template=template_typed(request),
            problem=refusal_text(refused),
        )
        return panel_page(request, chat, panel, status=409)
    _report(request, done)
    return redirect(conversation_address(chat.pk))


def _report(request: HttpRequest, done: HandReply) -> None:
    if not done.fresh:
        messages.info(request, _("This reply was sent already."))
    elif done.turn.provider == str(Provider.CONSOLE):
        messages.success(request, _("Your reply stands in the conversation. Nobody was sent it."))
    elif done.paused_until:
        message = _("Your reply is on its way. The assistant is paused until %(time)s.")
        messages.success(request, message % {"time": moment_shown(done.paused_until)})
    else:
        messages.success(request, _("Your reply is on its way."))


def canned_replies(request: HttpRequest, chat_id: UUID) -> HttpResponse:
    """Return the canned replies that fit ``q``, filled for this chat."""
    if request.method != "GET":
        return HttpResponseNotAllowed(["GET"])
    chat = chat_to_act_on(request, chat_id)
    found = canned_search(chat=chat, words=request.GET.get("q", "").strip())
    return JsonResponse({"replies": [asdict(each) for each in found]})
