"""Staff's pages for saying something first: a template to a segment, and what became of it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import BadRequest
from django.db import IntegrityError, transaction
from django.db.models import Count, Exists, F, OuterRef, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memoryproject.foundation.admin_kit.list_csv import BoundedPaginator
from memoryproject.foundation.admin_kit.staff_pages import OwnPage, rights_required, staff_page
from memoryproject.foundation.audit.audit_events import staff_actor
from memoryproject.foundation.errors.stored_errors import error_text, translate_error
from memoryproject.foundation.integrations.configured import configured_providers
from memoryproject.foundation.integrations.whatsapp.base import SendError
from memoryproject.foundation.integrations.whatsapp.templates import ApprovedTemplate
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import WhatsAppChatError
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.broadcasts.send_broadcast import (
    MOVES,
    broadcast_move,
    broadcast_start,
    segment_chats,
    template_for,
    with_reasons,
)
from sessions_app.conversations.chat_addresses import chat_at_or_new
from sessions_app.conversations.phrases import languages
from sessions_app.models import Broadcast, Chat, Label, Turn
from sessions_app.models.broadcasts import LeftOut
from sessions_app.models.chats import Provider
from sessions_app.models.messages import DeliveryStatus
from sessions_app.models.turns import TurnState
from sessions_app.takeover import facade as takeover
from sessions_app.takeover.presentation import RIGHTS, default_number, slot_fields, writer_of

EXAMPLES, AT_ONCE = 3, 50
FACT_RIGHT = "memories_app.view_memory"


def _moment(label: Any) -> forms.DateTimeField:
    widget = forms.DateTimeInput({"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
    return forms.DateTimeField(label=label, widget=widget, required=False)


class BroadcastForm(forms.Form):
    """The segment, when it begins, and where the test goes."""

    labels = forms.ModelMultipleChoiceField(
        Label.objects.all(), label=gettext_lazy("With one of the labels"), required=False
    )
    language = forms.ChoiceField(
        choices=lambda: [("", "–"), *((code, code) for code in languages())],
        label=gettext_lazy("Who write in the language"),
        required=False,
    )
    since = _moment(gettext_lazy("Last contact not before"))
    until = _moment(gettext_lazy("Last contact before"))
    fact = forms.CharField(
        label=gettext_lazy("Of whom is remembered (words of a fact)"),
        required=False,
        max_length=200,
    )
    at = _moment(gettext_lazy("Begin at (empty: now)"))
    number = forms.CharField(
        label=gettext_lazy("Number for the test (empty: the owner's)"), required=False
    )


def broadcasts_page(request: HttpRequest) -> HttpResponse:
    """Show templates and earlier broadcasts; with ``?name=&language=`` the form of one template.

    POST ``do``: preview, test or send.
    """
    rights_required(request, *RIGHTS)
    listed, error = None, ""
    try:
        listed = takeover.templates_listed(configured_providers()[str(Provider.CLOUD)])
    except SendError as refused:
        error = translate_error(error_text(refused))
    name = (request.GET.get("name", ""), request.GET.get("language", ""))
    chosen = next((each for each in listed or () if (each.name, each.language) == name), None)
    form = BroadcastForm(request.POST or None)
    if not request.user.has_perm(FACT_RIGHT):
        del form.fields["fact"]
    count = len(chosen.slots) if chosen else 0
    values = [request.POST.get(f"value-{n}", "").strip() for n in range(count)]
    shown: Mapping[str, Any] = {}
    if request.method == "POST" and chosen is not None and form.is_valid():
        try:
            shown = _posted(request, chosen, values, form.cleaned_data)
        except takeover.ReplyRefusedError as problem:
            shown = {"problem": problem.text}
        except WhatsAppChatError:
            form.add_error("number", _("That is no number."))
    if started := shown.get("started"):
        return redirect("admin:broadcast", started)
    sent = Broadcast.objects.annotate(n=Count("recipients")).order_by("-created_at")
    context = {
        "listed": listed,
        "error": error,
        "chosen": chosen,
        "form": form,
        "fields": slot_fields(chosen, values),
        "text": chosen.preview(values) if chosen else "",
        "key": uuid.uuid4(),
        "page": BoundedPaginator(sent, AT_ONCE).get_page(request.GET.get("p")),
        **shown,
    }
    return staff_page(request, "admin/broadcasts.html", _("Say something"), context)


def _posted(
    request: HttpRequest, chosen: ApprovedTemplate, values: list[str], given: dict[str, Any]
) -> dict[str, Any]:
    """Do what was posted; return what the page shows. Raises what refuses it."""
    if chosen.lacks:
        raise takeover.ReplyRefusedError(takeover.Refusal.TEMPLATE_LACKS, name=chosen.lacks)
    for unknown in (each for value in values for each in takeover.unknown_placeholders(value)):
        raise takeover.ReplyRefusedError(takeover.Refusal.TEMPLATE_VALUE, name=unknown)
    takeover.template_check(template_for(Chat(client_name=_("Name")), chosen, values))
    key = uuid_or_none(request.POST.get("key"))
    if key is None:
        raise BadRequest("key: the form's own")
    if request.POST.get("do") == "test":
        _test_send(request, chosen, values, given["number"], key)
        return {}
    chats = with_reasons(segment_chats({"fact": "", **given}), values)
    rows = chats.order_by("reason").values_list("reason").annotate(n=Count("pk"))
    counts = dict(rows)
    to = counts.pop("", 0)
    if request.POST.get("do") == "send" and to and request.POST.get("to") == str(to):
        broadcast = Broadcast(
            pk=key,
            template=chosen.name,
            language=chosen.language,
            parameters=values,
            next_at=given["at"] or timezone.now(),
            user_name=request.user.get_username(),
        )
        try:
            broadcast_start(broadcast, chats)
        except IntegrityError:
            # The form was posted twice.
            get_object_or_404(Broadcast, pk=key)
        return {"started": key}
    examples = list(chats.filter(reason="").order_by("pk")[:EXAMPLES])
    texts = [chosen.preview(template_for(chat, chosen, values).parameters) for chat in examples]
    return {
        "to": to,
        "left_out": [(LeftOut(reason).label, n) for reason, n in counts.items()],
        "examples": list(zip(examples, texts, strict=True)),
        "is_other": request.POST.get("do") == "send",
    }


def _test_send(
    request: HttpRequest, chosen: ApprovedTemplate, values: list[str], typed: str, key: UUID
) -> None:
    """Send the message to one number alone. Raises WhatsAppChatError and ReplyRefusedError."""
    number = typed if "@" in typed else "".join(filter(str.isdigit, typed))
    owner = next(iter(sorted(settings.GODFATHER_PHONE)), "")
    with transaction.atomic():
        chat = chat_at_or_new(number if typed else owner)
        takeover.chat_template(
            chat_id=chat.pk,
            template=template_for(chat, chosen, values),
            key=key,
            otherwise=default_number(),
            writer=writer_of(request),
            approved=chosen,
            broadcast="test",
        )
    messages.success(request, _("The test is on its way to %(name)s.") % {"name": chat.shown_name})


def broadcast_page(request: HttpRequest, broadcast_id: UUID) -> HttpResponse:
    """Show what became of a broadcast; POST ``do`` pauses, resumes or cancels it."""
    rights_required(request, *RIGHTS)
    broadcast = get_object_or_404(Broadcast, pk=broadcast_id)
    if request.method == "POST":
        if (do := request.POST.get("do")) not in MOVES:
            raise BadRequest("do: pause, resume or cancel")
        if not broadcast_move(broadcast, do, staff_actor(request)):
            messages.warning(request, _("It has ended, or somebody was faster."))
        return redirect("admin:broadcast", broadcast_id)
    results, show = _results(), request.GET.get("show", "")
    rows = broadcast.recipients.order_by("pk")
    counted = {key: Count("pk", filter=each) for key, (_name, each) in results.items()}
    counts = rows.aggregate(**counted)
    wanted = rows.filter(results[show][1]) if show in results else rows
    people = wanted.select_related("chat", "turn").prefetch_related("turn__parts")
    context = {
        "broadcast": broadcast,
        "figures": [(key, name, counts[key]) for key, (name, _each) in results.items()],
        "show": show,
        "page": BoundedPaginator(people, AT_ONCE).get_page(request.GET.get("p")),
    }
    return staff_page(request, "admin/broadcast.html", str(broadcast), context)


def _results() -> dict[str, tuple[Any, Q]]:
    """Return each figure's name, and the condition on the recipients that it counts."""
    status, access = "turn__parts__delivery_status", "chat__access__"
    arrived = (DeliveryStatus.DELIVERED, DeliveryStatus.READ, DeliveryStatus.PLAYED)
    came = Turn.objects.filter(chat=OuterRef("chat"), id__gt=OuterRef("turn"), by_hand=False)
    ended = Q(turn__state__in=[TurnState.FAILED, TurnState.REFUSED])
    after = {f"{access}marketing_stopped": True, f"{access}marketing_at__gt": F("made_at")}
    return {
        "waiting": (_("Not made yet"), Q(made_at=None)),
        "left_out": (_("Left out"), ~Q(left_out="")),
        "sent": (_("Sent"), Q(**{f"{status}__in": [DeliveryStatus.SENT, *arrived]})),
        "delivered": (_("Delivered"), Q(**{f"{status}__in": arrived})),
        "read": (_("Read"), Q(**{f"{status}__in": arrived[1:]})),
        "failed": (_("Failed"), ended | Q(**{status: DeliveryStatus.FAILED})),
        "replied": (_("Replied"), Q(Exists(came))),
        "stopped": (
            _("Said stop since"),
            Q(**after) | Q(**{f"{access}opted_out_at__gt": F("made_at")}),
        ),
    }


BROADCAST_PAGES = {
    "broadcasts": OwnPage("broadcasts/", broadcasts_page, "GET HEAD POST"),
    "broadcast": OwnPage("broadcasts/<uuid:broadcast_id>/", broadcast_page, "GET HEAD POST"),
}
