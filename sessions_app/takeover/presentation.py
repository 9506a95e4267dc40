"""Show the panel next to a conversation: whether the assistant is on, and the reply box."""

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy

from memories_app.models import Memory, MemoryStatus, Visibility
from memoryproject.foundation.admin_kit.staff_pages import rights_required, staff_page
from memoryproject.foundation.audit.audit_events import staff_actor
from memoryproject.foundation.errors.stored_errors import error_text, translate_error
from memoryproject.foundation.integrations.configured import configured_providers
from memoryproject.foundation.integrations.whatsapp.base import SendError, WhatsAppProvider
from memoryproject.foundation.integrations.whatsapp.registry import own_numbers
from memoryproject.foundation.integrations.whatsapp.templates import HEADER, ApprovedTemplate, Slot
from memoryproject.foundation.tables import read_table
from memoryproject.foundation.text.characters import cut_at_word
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.conversations.chat_queries import handovers_open, has_window, window_closes
from sessions_app.embedding.facade import embedder
from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.inbox.inbox import until_posted
from sessions_app.media.outgoing_types import EXTENSIONS
from sessions_app.models import Chat, ChatPause, Message, Turn
from sessions_app.models.chats import GODFATHER, Provider
from sessions_app.models.turns import HANDOVER, WAITING_STATES, Outcome, TurnState
from sessions_app.presentation.links import chat_or_404, conversation_address
from sessions_app.recall.facade import MEMORIES, Viewer, recall
from sessions_app.takeover import staff_reply
from sessions_app.takeover.send_template import marketing_stopped, takes_templates, templates_listed
from sessions_app.turns.dependencies import max_answer_age
from sessions_app.turns.facade import answer_soon, last_held


def default_number() -> staff_reply.OwnNumber:
    """Return the number of WHATSAPP_PROVIDER, for chats that came by neither provider."""
    first = next(iter(own_numbers(settings.WHATSAPP_PROVIDER)), "")
    return staff_reply.OwnNumber(settings.WHATSAPP_PROVIDER, first)


WORDS = read_table(__file__, "words.yaml")
PAGE = "admin/sessions_app/chat/takeover_page.html"
TEMPLATES_PAGE = "admin/sessions_app/chat/templates.html"
RIGHTS = ("sessions_app.view_chat", "sessions_app.view_message", "sessions_app.takeover_chat")
# Higher numbers are shown as "99+".
MAX_COUNTED = 100


# Here the assistant has the last word, or is about to.
ANSWERED = (*WAITING_STATES, TurnState.SENDING, TurnState.SENT)
TEMPLATE_FIELDS = ("name", "language", "parameters")


def takeover_context(request: HttpRequest, chat: Chat) -> dict[str, Any]:
    """Return the context of the panel's template.

    There is no panel where the user may not act and no pause is in force. ``?quote=`` names a
    message to quote.
    """
    panel = panel_of(request, chat, quote=request.GET.get("quote", ""))
    return {"takeover": panel if panel["may_act"] or panel["pause"] else None}


def reply_number(request: HttpRequest, chat: Chat) -> staff_reply.OwnNumber | None:
    """Return the number by which this user's replies go out; None for who may not reply."""
    return staff_reply.number_of(chat, default_number()) if request.user.has_perms(RIGHTS) else None


def panel_of(request: HttpRequest, chat: Chat, *, quote: str = "") -> dict[str, Any]:
    """Return the values that the panel of a chat shows.

    ``quote`` names the message that the reply quotes; an unknown one counts as none. ``closes``:
    until when staff may write to the chat. ``held``: how many messages came in meanwhile and got no
    answer; ``waits``: whether the last of them can still be answered. ``text``, ``template`` and
    ``problem``: what was refused, and the reason. ``file_limits``: the largest size in bytes of
    each kind of file; empty where the provider takes none. ``drafts``: whether the assistant may be
    asked for a draft. ``lesson``: what staff changed in the draft of the reply ``?teach=``.
    """
    now = timezone.now()
    pause = _pause_in_force(chat)
    may_act = request.user.has_perms(RIGHTS)
    by = staff_reply.number_of(chat, default_number())
    windowed = has_window(by.provider)
    closes = window_closes(chat, max_answer_age()) if may_act and windowed else None
    waiting = Turn.objects.filter(chat=chat, state=TurnState.HELD, finished_at__isnull=True)
    held = waiting[:MAX_COUNTED].count() if pause else 0
    packet = handover_packet(request, chat)
    last = staff_reply.draft_question(chat) if may_act else None
    provider = configured_providers()[by.provider]
    return {
        "chat": chat,
        "pause": pause,
        "pause_mark": _mark_of(pause),
        "closes": closes,
        "is_open": not windowed or (closes is not None and closes >= now),
        "held": held,
        "pause_minutes": _pause_minutes(chat),
        "packet": packet,
        "drafts": last is not None
        and (pause or packet or last.state not in ANSWERED or last.outcome == Outcome.FAILED),
        "lesson": _lesson(request, chat) if may_act else None,
        "most_counted": held >= MAX_COUNTED,
        "waits": pause and last_held(chat.pk, since=now - max_answer_age()),
        "key": uuid.uuid4(),
        "may_act": may_act,
        "morning": next_morning(now),
        "reply_provider": _reply_provider(chat, by),
        "quote": staff_reply.quotable(chat, by, quote) if may_act else None,
        "takes_templates": takes_templates(by),
        "lists_templates": bool(getattr(provider, "list_key", "")),
        "no_marketing": marketing_stopped(chat),
        "template": dict.fromkeys(TEMPLATE_FIELDS, ""),
        "file_limits": provider.file_limits,
        # What the field for a file offers, as its attribute ``accept``.
        "file_types": ",".join(f".{each}" for few in EXTENSIONS.values() for each in few),
    }


_AFTER_SENTENCE = re.compile(r"(?<=[.!?؟])\s+|\n+")


def _lesson(request: HttpRequest, chat: Chat) -> dict[str, Any] | None:
    """Return the sentences of a reply that its draft didn't have, and what they are taught at."""
    key = uuid_or_none(request.GET.get("teach", ""))
    replies = Turn.objects.filter(chat=chat, by_hand=True, turn_id=key).select_related("reply")
    sent = replies.first() if key and request.user.has_perm("memories_app.add_memory") else None
    draft = staff_reply.draft_of(chat, sent.context.get(staff_reply.DRAFT, "")) if sent else None
    if sent is None or draft is None or sent.reply is None:
        return None
    sentences = _AFTER_SENTENCE.split(sent.reply.content.strip())
    new = " ".join(each for each in sentences if each.rstrip(".!?؟") not in draft.text)
    return {"turn": draft.turn_id, "text": new} if new else None


def pause_mark(chat: Chat) -> str:
    """Return a mark that changes when the assistant is paused here or turned on again."""
    return _mark_of(_pause_in_force(chat))


def _mark_of(pause: ChatPause | None) -> str:
    return f"{pause.until} {pause.paused_by_id} {pause.cause}" if pause else ""


def _pause_in_force(chat: Chat) -> ChatPause | None:
    pause = ChatPause.objects.select_related("paused_by").filter(chat=chat).first()
    return pause if pause is not None and pause.holds(timezone.now()) else None


def _pause_minutes(chat: Chat) -> int:
    own = chat.owner_pause_minutes
    return int(settings.OWNER_PAUSE_MINUTES) if own is None else own


def panel_page(
    request: HttpRequest, chat: Chat, panel: dict[str, Any], status: int = 200
) -> HttpResponse:
    """Return the page of the panel alone."""
    context = {
        "subtitle": chat.shown_name,
        "chat": chat,
        "back": conversation_address(chat.pk),
        "takeover": panel,
    }
    return staff_page(request, PAGE, _("Taking over"), context, of=Chat, status=status)


def templates_provider(chat: Chat) -> WhatsAppProvider:
    """Return the provider by which staff's messages to a chat go out."""
    return configured_providers()[staff_reply.number_of(chat, default_number()).provider]


def templates_or_error(provider: WhatsAppProvider) -> tuple[list[ApprovedTemplate] | None, str]:
    """Return Meta's list, None without one, and why it can't be had in words."""
    try:
        return templates_listed(provider), ""
    except SendError as refused:
        return None, translate_error(error_text(refused))


def templates_page(
    request: HttpRequest,
    chat: Chat,
    chosen: ApprovedTemplate | None,
    values: Sequence[str],
    *,
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    """Return the page of Meta's templates, with the form and the preview of the chosen one."""
    listed, error = templates_or_error(templates_provider(chat))
    context = {
        "subtitle": chat.shown_name,
        "chat": chat,
        "back": reverse("admin:sessions_app_chat_takeover", args=[chat.pk]),
        "listed": listed,
        "error": error,
        "chosen": chosen,
        "fields": slot_fields(chosen, values),
        "preview": chosen.preview(values) if chosen else "",
        "no_marketing": marketing_stopped(chat),
        "key": uuid.uuid4(),
        "problem": problem,
    }
    return staff_page(request, TEMPLATES_PAGE, _("Templates"), context, of=Chat, status=status)


def slot_fields(
    chosen: ApprovedTemplate | None, values: Sequence[str]
) -> list[tuple[Slot, str, str]]:
    """Return each slot of a template with its name on the form and its value."""
    slots = zip(chosen.slots if chosen else (), values, strict=False)
    return [(slot, _slot_name(slot), value) for slot, value in slots]


def _slot_name(slot: Slot) -> str:
    name = str(WORDS["slots"][slot.kind])
    shown = name % slot.name if "%s" in name else name
    is_heading = slot.part == HEADER and slot.kind == "text"
    return _("Heading: %(name)s") % {"name": shown} if is_heading else shown


def writer_of(request: HttpRequest) -> staff_reply.Writer:
    """Return the staff member as the writer of what is sent."""
    return staff_reply.Writer(
        author_id=request.user.pk or 0,
        actor=staff_actor(request),
        rules=build_intake_rules(),
        enqueue=answer_soon,
        now=timezone.now(),
    )


def chat_to_act_on(request: HttpRequest, chat_id: UUID) -> Chat:
    """Return the chat. Raises PermissionDenied and Http404."""
    rights_required(request, *RIGHTS)
    return chat_or_404(chat_id)


def _reply_provider(chat: Chat, by: staff_reply.OwnNumber) -> str | None:
    """Return the provider that sends a reply to a chat that came by no provider.

    It is empty where a reply goes nowhere; None for all other chats.
    """
    if chat.provider != str(Provider.CONSOLE):
        return None
    return "" if by.provider == str(Provider.CONSOLE) else Provider(by.provider).label


# Read from the pause form until when the assistant is paused.

MORNING = time(8)
MAX_PAUSE = timedelta(days=366)


def pause_end(request: HttpRequest) -> datetime | None:
    """Return the end of the pause; None where it has none.

    Raises ValidationError.
    """
    now = timezone.now()
    lasts = request.POST.get("lasts", "")
    if lasts == "open":
        return None
    if lasts in ("1h", "8h"):
        return now + timedelta(hours=int(lasts[0]))
    if lasts == "morning":
        return next_morning(now)
    if lasts != "at":
        raise forms.ValidationError(_("Say for how long."))
    until = until_posted(request)
    if until <= now:
        raise forms.ValidationError(_("That time is over."))
    if until > now + MAX_PAUSE:
        text = _("That is more than a year away: pause until you turn it on instead.")
        raise forms.ValidationError(text)
    return until


def next_morning(now: datetime) -> datetime:
    """Return the next day's morning, by the business's clock, which the middleware has set."""
    zone = timezone.get_current_timezone()
    tomorrow = now.astimezone(zone).date() + timedelta(days=1)
    return datetime.combine(tomorrow, MORNING, zone)


# What staff need to know who take over a chat in which the client needs a person.

TRIES, FACTS = 3, 5
# One fact too many is better than one too few for who reads them.
LOWER_BAR = 0.5
MAX_SHOWN = 300


@dataclass(frozen=True)
class Packet:
    """``tried``: the last questions with their answers. ``known``: what is stored of the client.

    ``withheld``: what the owner knows about it and a client is never told.
    """

    reason: Any
    wanted: str
    tried: Sequence[tuple[str, str]]
    known: Sequence[str]
    withheld: Sequence[str]


def handover_packet(request: HttpRequest, chat: Chat) -> Packet | None:
    """Return the packet until a person has answered the client, else None.

    Memories are in it for staff who may see them.
    """
    waiting = handovers_open().filter(chat=chat).select_related("message").order_by("-id")
    turn = waiting.first()
    if turn is None or turn.message is None:
        return None
    turns = Turn.objects.filter(chat=chat, by_hand=False, message__isnull=False)
    turns = turns.select_related("message", "reply").order_by("-id")
    before = turns.filter(id__lt=turn.pk, message__revoked_at=None)[:TRIES]
    tried = [(_short(each.message), _short(each.reply)) for each in reversed(before)]
    known: Sequence[str] = ()
    withheld: Sequence[str] = ()
    if request.user.has_perm("memories_app.view_memory"):
        own = Memory.objects.filter(chat_id=chat.pk, status=MemoryStatus.ACTIVE)
        known = list(own.order_by("-created_at").values_list("content", flat=True)[:FACTS])
        withheld = _withheld(chat, [*(question for question, _ in tried), _short(turn.message)])
    return Packet(
        reason=WORDS["handovers"].get(turn.context[HANDOVER], ""),
        wanted=_short(turn.message),
        tried=tried,
        known=[cut_at_word(text, MAX_SHOWN) for text in known],
        withheld=withheld,
    )


def _withheld(chat: Chat, questions: Sequence[str]) -> list[str]:
    """Return the owner's own memories about what the client asked."""
    found: dict[Any, str] = {}
    for question in filter(None, questions):
        hits = recall(
            query=question,
            viewer=Viewer(GODFATHER, chat.pk),
            embedder=embedder(),
            top_k=FACTS,
            min_similarity=LOWER_BAR,
            sources=(MEMORIES,),
        ).hits
        found |= {hit.id: cut_at_word(hit.content, MAX_SHOWN) for hit in hits}
    owners = Memory.objects.filter(pk__in=found, visibility=Visibility.OWNER)
    return [found[key] for key in owners.values_list("pk", flat=True)][:FACTS]


def _short(message: Any) -> str:
    return cut_at_word(message.content.strip(), MAX_SHOWN) if message is not None else ""
