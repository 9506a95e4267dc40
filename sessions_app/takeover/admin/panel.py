"""Let staff take a chat over: the panel next to a conversation, and the views of its forms."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import datetime, time, timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from memoryproject.foundation.audit.staff import staff_actor
from memoryproject.foundation.integrations.configured import configured_providers
from sessions_app.conversations.facade import window_closes
from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.models import Chat, ChatPause, Turn
from sessions_app.models.chats import Provider
from sessions_app.models.turns import TurnState
from sessions_app.takeover.canned_replies import canned_search
from sessions_app.takeover.dependencies import default_number
from sessions_app.takeover.staff_reply import (
    MAX_LENGTH,
    EmptyReplyError,
    HandReply,
    KeyUsedError,
    ReplyRefusedError,
    TooLongError,
    WindowClosedError,
    chat_reply,
    number_of,
)
from sessions_app.turns.dependencies import enqueue_chat
from sessions_app.turns.facade import chat_pause, chat_resume, last_held

PAGE = "admin/sessions_app/chat/takeover_page.html"
RIGHTS = ("sessions_app.view_chat", "sessions_app.view_message", "sessions_app.takeover_chat")
MORNING = time(8)
MAX_PAUSE = timedelta(days=366)
# Higher numbers are shown as "99+".
MAX_COUNTED = 100


@dataclass(frozen=True)
class Panel:
    """The values that the panel shows.

    ``closes``: until when staff may write to the chat. ``held``: how many messages came in
    meanwhile and got no answer; ``waits``: whether the last of them can still be answered.
    ``reply_provider``: the provider that sends a reply to a chat that came by no provider, empty
    where a reply goes nowhere; None for all other chats. ``text`` and ``problem``: the refused
    text, and the reason.
    """

    chat: Chat
    pause: ChatPause | None
    closes: datetime | None
    is_open: bool
    held: int
    waits: bool
    key: UUID
    may_act: bool
    morning: datetime
    reply_provider: str | None = None
    text: str = ""
    problem: str = ""

    @property
    def most_counted(self) -> bool:
        return self.held >= MAX_COUNTED


class UntilForm(forms.Form):
    """A time of the business's clock, in the format that browsers send."""

    until = forms.DateTimeField(
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"],
        error_messages={
            "required": gettext_lazy("Say until when."),
            "invalid": gettext_lazy("That is no date with a time, or the clock skips it."),
        },
    )

    def clean_until(self) -> datetime:
        until: datetime = self.cleaned_data["until"]
        now = timezone.now()
        if until <= now:
            raise forms.ValidationError(_("That time is over."))
        if until > now + MAX_PAUSE:
            raise forms.ValidationError(
                _("That is more than a year away: pause until you turn it on instead.")
            )
        return until


def takeover_context(request: HttpRequest, chat: Chat) -> dict[str, Any]:
    """Return the context of the panel's template.

    There is no panel where the user may not act and no pause is in force.
    """
    panel = _panel(request, chat)
    return {"takeover": panel if panel.may_act or panel.pause else None}


def takeover_paths(wrap: Callable[..., Any]) -> list[Any]:
    """Return the URLs of a chat's takeover; ``wrap`` is the admin site's admin_view."""
    views = {
        "": page,
        "pause/": pause,
        "resume/": resume,
        "reply/": reply,
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
    chat = _chat(request, chat_id)
    return _page(request, chat, _panel(request, chat))


def pause(request: HttpRequest, chat_id: UUID) -> HttpResponse:
    """Pause the assistant by POST ``lasts``: 1h, 8h, morning, open, or at with ``until``."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    chat = _chat(request, chat_id)
    try:
        until = _until(request)
    except forms.ValidationError as error:
        panel = replace(_panel(request, chat), problem=" ".join(error.messages))
        return _page(request, chat, panel, status=422)
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
        message = _("The assistant is paused until %(time)s.") % {"time": _shown(until)}
    messages.success(request, message)
    return _back(chat)


def resume(request: HttpRequest, chat_id: UUID) -> HttpResponse:
    """Resume the assistant by POST; with ``answer=last`` the last message is answered now."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    chat = _chat(request, chat_id)
    answer_last = request.POST.get("answer") == "last"
    done = chat_resume(
        chat_id=chat.pk,
        actor=staff_actor(request),
        now=timezone.now(),
        enqueue=enqueue_chat,
        max_age=_max_age(),
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
    return _back(chat)


def reply(request: HttpRequest, chat_id: UUID) -> HttpResponse:
    """Send a reply by POST ``text`` and ``key``; each form has its own key."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    chat = _chat(request, chat_id)
    # Browsers send CRLF line ends.
    text = request.POST.get("text", "").replace("\r\n", "\n")
    try:
        done = _send(request, chat, text)
    except ReplyRefusedError as refused:
        panel = replace(_panel(request, chat), text=text, problem=_why(refused))
        return _page(request, chat, panel, status=409)
    if not done.fresh:
        messages.info(request, _("This reply was sent already."))
    elif done.turn.provider == str(Provider.CONSOLE):
        messages.success(request, _("Your reply stands in the conversation. Nobody was sent it."))
    elif done.paused_until:
        message = _("Your reply is on its way. The assistant is paused until %(time)s.")
        messages.success(request, message % {"time": _shown(done.paused_until)})
    else:
        messages.success(request, _("Your reply is on its way."))
    return _back(chat)


def canned_replies(request: HttpRequest, chat_id: UUID) -> HttpResponse:
    """Return the canned replies that fit ``q``, filled for this chat."""
    if request.method != "GET":
        return HttpResponseNotAllowed(["GET"])
    chat = _chat(request, chat_id)
    found = canned_search(chat=chat, words=request.GET.get("q", "").strip())
    return JsonResponse({"replies": [asdict(each) for each in found]})


class BrokenFormError(ReplyRefusedError):
    """The form's key is missing, or there are characters that can't be stored."""


def _send(request: HttpRequest, chat: Chat, text: str) -> HandReply:
    try:
        key = UUID(request.POST.get("key", ""))
    except ValueError:
        raise BrokenFormError from None
    if "\x00" in text or any("\ud800" <= each <= "\udfff" for each in text):
        raise BrokenFormError
    return chat_reply(
        chat_id=chat.pk,
        text=text,
        key=key,
        author_id=request.user.pk or 0,
        actor=staff_actor(request),
        rules=build_intake_rules(),
        providers=configured_providers(),
        otherwise=default_number(),
        enqueue=enqueue_chat,
        now=timezone.now(),
    )


def _why(refused: ReplyRefusedError) -> str:
    if isinstance(refused, EmptyReplyError):
        return _("The reply is empty.")
    if isinstance(refused, TooLongError):
        return ngettext(
            "The reply is too long: at most %(most)s character is sent.",
            "The reply is too long: at most %(most)s characters are sent.",
            MAX_LENGTH,
        ) % {"most": MAX_LENGTH}
    if isinstance(refused, WindowClosedError):
        return _("It wasn't sent: WhatsApp's window is closed until the person writes again.")
    if isinstance(refused, KeyUsedError):
        return _("This form has sent another reply already. Send this one, too, if you mean it.")
    return _("The form was broken. Here is your text in a new one.")


def _until(request: HttpRequest) -> datetime | None:
    """Return the end of the pause.

    Raises ValidationError.
    """
    now = timezone.now()
    lasts = request.POST.get("lasts", "")
    if lasts == "open":
        return None
    if lasts in ("1h", "8h"):
        return now + timedelta(hours=int(lasts[0]))
    if lasts == "morning":
        return _next_morning(now)
    if lasts != "at":
        raise forms.ValidationError(_("Say for how long."))
    form = UntilForm(request.POST)
    if not form.is_valid():
        raise forms.ValidationError([str(each) for each in form.errors["until"]])
    until: datetime = form.cleaned_data["until"]
    return until


def _next_morning(now: datetime) -> datetime:
    """Return the next day's morning, by the business's clock, which the middleware has set."""
    zone = timezone.get_current_timezone()
    tomorrow = now.astimezone(zone).date() + timedelta(days=1)
    return datetime.combine(tomorrow, MORNING, zone)


def _panel(request: HttpRequest, chat: Chat) -> Panel:
    now = timezone.now()
    pause = ChatPause.objects.select_related("paused_by").filter(chat=chat).first()
    pause = pause if pause is not None and pause.holds(now) else None
    may_act = request.user.has_perms(RIGHTS)
    closes = window_closes(chat, _max_age()) if may_act else None
    held = Turn.objects.filter(chat=chat, state=TurnState.HELD, finished_at__isnull=True)
    return Panel(
        chat=chat,
        pause=pause,
        closes=closes,
        is_open=closes is not None and closes >= now,
        held=held[:MAX_COUNTED].count() if pause else 0,
        waits=pause is not None and last_held(chat.pk, since=now - _max_age()) is not None,
        key=uuid.uuid4(),
        may_act=may_act,
        morning=_next_morning(now),
        reply_provider=_reply_provider(chat),
    )


def _reply_provider(chat: Chat) -> str | None:
    if chat.provider != str(Provider.CONSOLE):
        return None
    by = number_of(chat, default_number()).provider
    return "" if by == str(Provider.CONSOLE) else Provider(by).label


def _page(request: HttpRequest, chat: Chat, panel: Panel, status: int = 200) -> HttpResponse:
    context = {
        **admin.site.each_context(request),
        "title": _("Taking over"),
        "opts": Chat._meta,
        "list_title": _("Inbox"),
        "chat": chat,
        "back": _conversation(chat),
        "takeover": panel,
    }
    return TemplateResponse(request, PAGE, context, status=status)


def _chat(request: HttpRequest, chat_id: UUID) -> Chat:
    if not request.user.has_perms(RIGHTS):
        raise PermissionDenied
    chat = Chat.objects.filter(pk=chat_id).first()
    if chat is None:
        raise Http404("There is no such chat, or not any more.")
    return chat


def _back(chat: Chat) -> HttpResponse:
    return redirect(_conversation(chat))


def _conversation(chat: Chat) -> str:
    return reverse("admin:sessions_app_chat_conversation", args=[chat.pk])


def _max_age() -> timedelta:
    return timedelta(hours=settings.MAX_ANSWER_AGE_HOURS)


def _shown(at: datetime) -> str:
    return date_format(timezone.localtime(at), "SHORT_DATETIME_FORMAT")


def takeover_address(chat_id: UUID) -> str:
    return reverse("admin:sessions_app_chat_takeover", args=[chat_id])
