"""Staff's pages for saying something first: a template to a segment, and what became of it."""

import uuid
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import BadRequest
from django.db import IntegrityError, transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import get_language_info, gettext as _, gettext_lazy

from memoryproject.foundation.admin_kit.list_csv import BoundedPaginator
from memoryproject.foundation.admin_kit.staff_pages import OwnPage, rights_required, staff_page
from memoryproject.foundation.admin_kit.stamped_form import digest_of
from memoryproject.foundation.audit.audit_events import staff_actor
from memoryproject.foundation.integrations.configured import configured_providers
from memoryproject.foundation.integrations.whatsapp.templates import ApprovedTemplate
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import WhatsAppChatError
from memoryproject.foundation.text.phone_numbers import number_read
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.broadcasts import send_broadcast as sending
from sessions_app.conversations.chat_addresses import chat_at_or_new
from sessions_app.conversations.phrases import languages
from sessions_app.models import Broadcast, Chat, Label, Turn
from sessions_app.models.chats import Provider
from sessions_app.models.messages import DeliveryStatus
from sessions_app.models.takeover import LeftOut
from sessions_app.models.turns import TurnState
from sessions_app.takeover import facade as takeover, presentation as panel

EXAMPLES, AT_ONCE = 3, 50


def _optional(field: type[forms.Field], label: Any, **more: Any) -> Any:
    return field(label=label, required=False, **more)


def _moment(label: Any) -> Any:
    widget = forms.DateTimeInput({"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
    return _optional(forms.DateTimeField, label, widget=widget)


def _languages() -> list[tuple[str, str]]:
    names = ((code, get_language_info(code)["name_translated"]) for code in languages())
    return [("", "–"), *names]


class BroadcastForm(forms.Form):
    """The segment, when it begins, and where the test goes."""

    labels = _optional(
        forms.ModelMultipleChoiceField, gettext_lazy("Labels"), queryset=Label.objects
    )
    language = _optional(forms.ChoiceField, gettext_lazy("Language"), choices=_languages)
    since = _moment(gettext_lazy("Last contact not before"))
    until = _moment(gettext_lazy("Last contact before"))
    fact = _optional(
        forms.CharField,
        gettext_lazy("Words of a fact that is remembered of them"),
        # Each word is a search of its own.
        max_length=200,
    )
    at = _moment(gettext_lazy("Begin at (empty: now)"))
    number = _optional(forms.CharField, gettext_lazy("Number for the test (empty: the owner's)"))


def broadcasts_page(request: HttpRequest) -> HttpResponse:
    """Show templates and earlier broadcasts; with ``?name=&language=`` the form of one template.

    POST ``do``: preview, test or send.
    """
    rights_required(request, *panel.RIGHTS)
    listed, error = panel.templates_or_error(configured_providers()[str(Provider.CLOUD)])
    name = (request.GET.get("name", ""), request.GET.get("language", ""))
    chosen = next((each for each in listed or () if (each.name, each.language) == name), None)
    form = BroadcastForm(request.POST or None)
    if not request.user.has_perm("memories_app.view_memory"):
        del form.fields["fact"]
    count = len(chosen.slots) if chosen else 0
    # PostgreSQL stores no NUL.
    typed = (request.POST.get(f"value-{n}", "") for n in range(count))
    values = [value.replace("\0", "").strip() for value in typed]
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
    context = {"listed": listed, "error": error, "chosen": chosen, "form": form, **shown}
    context |= {"fields": panel.slot_fields(chosen, values), "key": uuid.uuid4()}
    context |= {"text": chosen.preview(values) if chosen else "", "page": _paged(request, sent)}
    return staff_page(request, "admin/broadcasts.html", _("Say something"), context)


def _posted(
    request: HttpRequest, chosen: ApprovedTemplate, values: list[str], given: dict[str, Any]
) -> dict[str, Any]:
    """Do what was posted; return what the page shows.

    Raises ReplyRefusedError, and WhatsAppChatError where a test goes to no number.
    """
    do, key = request.POST.get("do"), uuid_or_none(request.POST.get("key"))
    if key is None:
        raise BadRequest("key: the form's own")
    if chosen.lacks:
        raise takeover.ReplyRefusedError("template_lacks", name=chosen.lacks)
    for unknown in takeover.unknown_placeholders(" ".join(values)):
        raise takeover.ReplyRefusedError("template_value", name=unknown)
    takeover.template_check(sending.template_for(Chat(client_name=_("Name")), chosen, values))
    if do == "test":
        owner = next(iter(sorted(settings.GODFATHER_PHONE)), "")
        typed = number_read(given["number"].removesuffix("@c.us")) or ""
        with transaction.atomic():
            chat = chat_at_or_new(typed if given["number"] else owner)
            about = {"key": key, "writer": panel.writer_of(request), "broadcast": "test"}
            sending.message_store(chat, chosen, values, **about)
        done = _("The test is on its way to %(name)s.") % {"name": chat.shown_name}
        messages.success(request, done)
        return {}
    chats = sending.with_reasons(sending.segment_chats(given), values)
    counts = dict(chats.order_by("reason").values_list("reason").annotate(n=Count("pk")))
    to = counts.pop("", 0)
    # What the preview showed, and nothing else, is sent.
    seen = digest_of([values, given, to])
    if do == "send" and to and request.POST.get("seen") == seen:
        broadcast = Broadcast(key, chosen.name, chosen.language, values)
        broadcast.next_at = given["at"] or timezone.now()
        broadcast.user_name = request.user.get_username()
        try:
            sending.broadcast_start(broadcast, chats, staff_actor(request))
        except IntegrityError:
            # The form was posted twice.
            get_object_or_404(Broadcast, pk=key)
        return {"started": key}
    examples = chats.filter(reason="").order_by("pk")[:EXAMPLES]
    texts = [(chat, sending.template_for(chat, chosen, values).parameters) for chat in examples]
    return {
        "to": to,
        "seen": seen,
        "left_out": [(LeftOut(reason).label, n) for reason, n in counts.items()],
        "examples": [(chat, chosen.preview(filled)) for chat, filled in texts],
        "is_other": do == "send",
    }


def broadcast_page(request: HttpRequest, broadcast_id: UUID) -> HttpResponse:
    """Show what became of a broadcast; POST ``to``: the state that it is to have."""
    rights_required(request, *panel.RIGHTS)
    broadcast = get_object_or_404(Broadcast, pk=broadcast_id)
    if request.method == "POST":
        to = request.POST.get("to", "")
        if to not in sending.MOVES or not sending.broadcast_move(
            broadcast, to, staff_actor(request)
        ):
            messages.warning(request, _("It has ended, or somebody was faster."))
        return redirect("admin:broadcast", broadcast_id)
    results, show = _results(), request.GET.get("show", "")
    rows = broadcast.recipients.order_by("pk")
    counted = {key: Count("pk", filter=each) for key, (_name, each) in results.items()}
    counts = rows.aggregate(**counted)
    wanted = rows.filter(results[show][1]) if show in results else rows
    people = wanted.select_related("chat", "turn").prefetch_related("turn__parts")
    figures = [(key, name, counts[key]) for key, (name, _each) in results.items()]
    context = {"broadcast": broadcast, "figures": figures, "show": show}
    context["page"] = _paged(request, people)
    return staff_page(request, "admin/broadcast.html", str(broadcast), context)


def _paged(request: HttpRequest, rows: QuerySet[Any]) -> Any:
    return BoundedPaginator(rows, AT_ONCE).get_page(request.GET.get("p"))


def _results() -> dict[str, tuple[Any, Q]]:
    """Return each figure's name, and the condition on the recipients that it counts."""
    arrived = (DeliveryStatus.DELIVERED, DeliveryStatus.READ, DeliveryStatus.PLAYED)
    came = Turn.objects.filter(chat=OuterRef("chat"), id__gt=OuterRef("turn"), by_hand=False)
    stopped = Q(chat__access__opted_out_at__gt=F("made_at"))
    marketing = Q(chat__access__marketing_at__gt=F("made_at"))
    unsent = Q(turn__state__in=[TurnState.FAILED, TurnState.REFUSED])

    def reported(*states: str) -> Q:
        return Q(turn__parts__delivery_status__in=states)

    return {
        "waiting": (_("Not made yet"), Q(made_at=None)),
        "left_out": (_("Left out"), ~Q(left_out="")),
        "sent": (_("Sent"), reported(DeliveryStatus.SENT, *arrived)),
        "delivered": (_("Delivered"), reported(*arrived)),
        "read": (_("Read"), reported(*arrived[1:])),
        "failed": (_("Failed"), unsent | reported(DeliveryStatus.FAILED)),
        "replied": (_("Replied"), Q(Exists(came))),
        "stopped": (
            _("Said stop since"),
            stopped | marketing & Q(chat__access__marketing_stopped=True),
        ),
    }


BROADCAST_PAGES = {
    "broadcasts": OwnPage("broadcasts/", broadcasts_page, "GET HEAD POST"),
    "broadcast": OwnPage("broadcasts/<uuid:broadcast_id>/", broadcast_page, "GET HEAD POST"),
}
