"""The addresses of a chat's takeover: the panel alone, and what its forms post to."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any
from uuid import UUID, uuid4

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from memoryproject.foundation.admin_kit.display import moment_shown
from memoryproject.foundation.admin_kit.staff_pages import OwnPage, is_live
from memoryproject.foundation.audit.audit_events import staff_actor
from memoryproject.foundation.errors.stored_errors import translate_error
from memoryproject.foundation.integrations.configured import configured_providers
from memoryproject.foundation.integrations.media_storage.storage_choice import (
    configured_media_storage,
)
from memoryproject.foundation.integrations.whatsapp.base import Template
from memoryproject.foundation.integrations.whatsapp.templates import ApprovedTemplate
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.models import AnswerTrial, Chat, Turn
from sessions_app.models.chats import Provider
from sessions_app.models.trials import TrialMemories, TrialState
from sessions_app.presentation.links import conversation_address
from sessions_app.takeover import presentation as panels, staff_reply
from sessions_app.takeover.attachment import ReplyRefusedError
from sessions_app.takeover.canned_replies import canned_search
from sessions_app.takeover.send_template import chat_template, takes_templates, template_found
from sessions_app.trials.dependencies import OFFLINE, trial_ask, trial_models
from sessions_app.trials.run_trial import TrialRefusedError, TrialWanted
from sessions_app.turns.dependencies import max_answer_age
from sessions_app.turns.facade import answer_soon, chat_pause, chat_resume


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
    chat = panels.chat_to_act_on(request, chat_id)
    return panels.panel_page(request, chat, panels.panel_of(request, chat))


def pause(request: HttpRequest, chat_id: UUID) -> HttpResponse:
    """Pause the assistant by POST ``lasts``: 1h, 8h, morning, open, or at with ``until``."""
    chat = panels.chat_to_act_on(request, chat_id)
    try:
        until = panels.pause_end(request)
    except forms.ValidationError as error:
        panel = {**panels.panel_of(request, chat), "problem": " ".join(error.messages)}
        return panels.panel_page(request, chat, panel, status=422)
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
    chat = panels.chat_to_act_on(request, chat_id)
    answer_last = request.POST.get("answer") == "last"
    done = chat_resume(
        chat_id=chat.pk,
        actor=staff_actor(request),
        now=timezone.now(),
        enqueue=answer_soon,
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
    chat = panels.chat_to_act_on(request, chat_id)
    try:
        done = reply_posted(request, chat)
    except ReplyRefusedError as refused:
        panel = panels.panel_of(request, chat, quote=request.POST.get("quote", ""))
        panel |= {"text": text_posted(request), "problem": refused.text}
        return panels.panel_page(request, chat, panel, status=409)
    _report(request, done)
    is_taught = "?teach=" + str(done.turn.turn_id) if staff_reply.DRAFT in done.turn.context else ""
    return redirect(f"{conversation_address(chat.pk)}{is_taught}")


def draft(request: HttpRequest, chat_id: UUID) -> HttpResponse:
    """Ask for a draft of a reply by POST, or with its id as ``draft`` look whether it is there.

    The panel's script gets the draft alone; else the panel is shown, with what was typed.
    """
    chat = panels.chat_to_act_on(request, chat_id)
    found = (
        None if "new" in request.POST else staff_reply.draft_of(chat, request.POST.get("draft", ""))
    )
    context: dict[str, Any] = {}
    try:
        context["draft"] = found or _draft_start(request, staff_reply.draft_question(chat))
    except TrialRefusedError as refused:
        context["problem"] = translate_error(refused.args[0])
    if is_live(request):
        return TemplateResponse(request, "admin/sessions_app/chat/draft.html", context)
    context["text"] = text_posted(request) or (found.text if found else "")
    panel = panels.panel_of(request, chat, quote=request.POST.get("quote", "")) | context
    return panels.panel_page(request, chat, panel)


def _draft_start(request: HttpRequest, question: Turn | None) -> AnswerTrial:
    """Ask for a draft, or return the one that is being made. Raises TrialRefusedError."""
    if question is None:
        raise TrialRefusedError("trial_no_question")
    made = question.trials.filter(memories=TrialMemories.DRAFT, state=TrialState.WAITING).first()
    models = trial_models() or [OFFLINE]
    wanted = TrialWanted(models[0], memories=TrialMemories.DRAFT)
    return made or trial_ask(request, question, wanted, trial_id=uuid4(), models=models)


def templates(request: HttpRequest, chat_id: UUID) -> HttpResponse:
    """Show Meta's list; with ``?name=&language=`` the form of one template, with a preview."""
    chat = panels.chat_to_act_on(request, chat_id)
    if not takes_templates(staff_reply.number_of(chat, panels.default_number())):
        raise Http404
    name, language = request.GET.get("name", ""), request.GET.get("language", "")
    chosen = template_found(panels.templates_provider(chat), name, language) if name else None
    is_gone = name and chosen is None
    problem = ReplyRefusedError("template_gone").text if is_gone else ""
    values = [""] * len(chosen.slots) if chosen else []
    return panels.templates_page(request, chat, chosen, values, problem=problem)


def template(request: HttpRequest, chat_id: UUID) -> HttpResponse:
    """Send a template by POST ``name``, ``language`` and ``key``.

    By hand ``parameters`` holds its values, a line each; one of Meta's list has the fields
    ``value-0`` and so on. ``do=preview`` shows it, and sends nothing.
    """
    chat = panels.chat_to_act_on(request, chat_id)
    provider = panels.templates_provider(chat)
    typed = template_typed(request)
    approved = template_found(provider, typed["name"], typed["language"])
    by_hand = "parameters" in request.POST
    values = [] if by_hand or approved is None else slots_posted(request, len(approved.slots))
    if approved and not by_hand and request.POST.get("do") == "preview":
        return panels.templates_page(request, chat, approved, values)
    try:
        done = template_posted(request, chat, approved, None if by_hand else values)
    except ReplyRefusedError as refused:
        if not by_hand:
            return panels.templates_page(
                request, chat, approved, values, problem=refused.text, status=409
            )
        panel = panels.panel_of(request, chat)
        panel |= {"template": typed, "problem": refused.text}
        return panels.panel_page(request, chat, panel, status=409)
    _report(request, done)
    return redirect(conversation_address(chat.pk))


def _report(request: HttpRequest, done: staff_reply.HandReply) -> None:
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
    chat = panels.chat_to_act_on(request, chat_id)
    found = canned_search(chat=chat, words=request.GET.get("q", "").strip())
    return JsonResponse({"replies": [asdict(each) for each in found]})


# Read the reply form, and say why a reply was refused.


def text_posted(request: HttpRequest) -> str:
    """Return the typed text; browsers send CRLF line ends."""
    return request.POST.get("text", "").replace("\r\n", "\n")


def reply_posted(request: HttpRequest, chat: Chat) -> staff_reply.HandReply:
    """Send what the form holds. Raises ReplyRefusedError."""
    text = text_posted(request)
    reply = staff_reply.StaffReply(
        text=text,
        key=_key_posted(request, text),
        quote=request.POST.get("quote", ""),
        file=request.FILES.get("file"),
        draft=request.POST.get("draft", ""),
    )
    return staff_reply.chat_reply(
        chat_id=chat.pk,
        reply=reply,
        writer=panels.writer_of(request),
        providers=configured_providers(),
        otherwise=panels.default_number(),
        storage=configured_media_storage(),
    )


def template_typed(request: HttpRequest) -> dict[str, str]:
    """Return the typed template; ``parameters`` has one value a line."""
    return {name: request.POST.get(name, "").strip() for name in panels.TEMPLATE_FIELDS}


def slots_posted(request: HttpRequest, count: int) -> list[str]:
    """Return the values that were typed for a template of Meta's list."""
    return [request.POST.get(f"value-{place}", "").strip() for place in range(count)]


def template_posted(
    request: HttpRequest, chat: Chat, approved: ApprovedTemplate | None, values: list[str] | None
) -> staff_reply.HandReply:
    """Send the form's template; ``values``: of one of Meta's list. Raises ReplyRefusedError."""
    typed = template_typed(request)
    key = _key_posted(request, "".join([*typed.values(), *(values or [])]))
    if values is not None:
        if approved is None:
            raise ReplyRefusedError("template_gone")
        if approved.lacks:
            raise ReplyRefusedError("template_lacks", name=approved.lacks)
        slots = approved.slots
    else:
        lines = [line.strip() for line in typed["parameters"].splitlines()]
        values, slots = list(filter(None, lines)), ()
    return chat_template(
        chat_id=chat.pk,
        template=Template(typed["name"], typed["language"], tuple(values), slots),
        key=key,
        otherwise=panels.default_number(),
        writer=panels.writer_of(request),
        approved=approved,
    )


def _key_posted(request: HttpRequest, typed: str) -> UUID:
    """Return the form's key. Raises ReplyRefusedError, also for what can't be stored."""
    if "\x00" in typed or any("\ud800" <= each <= "\udfff" for each in typed):
        raise ReplyRefusedError("reply_broken_form")
    key = uuid_or_none(request.POST.get("key"))
    if key is None:
        raise ReplyRefusedError("reply_broken_form")
    return key


def _page(route: str, view: Callable[..., HttpResponse], methods: str = "") -> OwnPage:
    return OwnPage(f"takeover/<uuid:chat_id>/{route}", _not_found_if_forgotten(view), methods)


TAKEOVER_PAGES = {
    "takeover": _page("", page),
    "takeover_pause": _page("pause/", pause, "POST"),
    "takeover_resume": _page("resume/", resume, "POST"),
    "takeover_reply": _page("reply/", reply, "POST"),
    "takeover_draft": _page("draft/", draft, "POST"),
    "takeover_templates": _page("templates/", templates, "GET"),
    "takeover_template": _page("template/", template, "POST"),
    "takeover_canned": _page("canned/", canned_replies, "GET"),
}
