"""Show whether a chat is answered and what it used; let staff block and allow it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from memoryproject.foundation.admin_kit import display, staff_admin, staff_pages, undo
from memoryproject.foundation.audit.audit_events import staff_actor
from memoryproject.foundation.errors.stored_errors import ErrorText, translate_error
from sessions_app.limits.dependencies import build_usage_limits, is_owners
from sessions_app.limits.figures import Used, standing_set, used_by
from sessions_app.limits.intake import UsageLimits, hour_runs
from sessions_app.models import Chat, ChatAccess, UsageDay
from sessions_app.models.limits import Standing, StandingReason
from sessions_app.presentation.links import chat_or_404, conversation_address, list_address

RIGHTS = ("sessions_app.view_chat", "sessions_app.takeover_chat")
MONTH = 30
DONE = {
    str(Standing.BLOCKED): gettext_lazy("The chat is blocked: it gets no answers."),
    str(Standing.ALLOWED): gettext_lazy("The chat is allowed."),
    str(Standing.NONE): gettext_lazy("The chat is neither blocked nor allowed any more."),
}
REASONS = [choice for choice in StandingReason.choices if choice[0]]


def access_context(request: HttpRequest, chat: Chat) -> dict[str, Any]:
    """Return the context of the panel's template.

    ``rows``: what was used, each with its name, today's figure with its limit, and that of 30 days.
    ``reached``: the limit that was reached today, in words. ``left``: the address of the messages
    that stay in their deliveries, where the chat is blocked or the person stopped the assistant.
    """
    limits, now = build_usage_limits(), timezone.now()
    access = ChatAccess.objects.select_related("decided_by").filter(chat=chat).first()
    access = access or ChatAccess(chat=chat)
    today = limits.day_of(now)
    day = UsageDay.objects.filter(chat=chat, day=today).first()
    is_left = access.standing == Standing.BLOCKED or access.opted_out_at is not None
    may_see = request.user.has_perm("sessions_app.view_inbounddelivery")
    left = list_address("sessions_app_inbounddelivery", chat__id__exact=chat.pk)
    hour = access.hour_messages if hour_runs(access, now) else 0
    month = used_by(chat.pk, today=today, days=MONTH)
    panel = {
        "chat": chat,
        "access": access,
        "is_owner": is_owners(chat),
        "allow_list_only": limits.allow_list_only,
        "may_act": request.user.has_perms(RIGHTS),
        "rows": _rows(hour, used_by(chat.pk, today=today, days=1), month, limits),
        "reached": translate_error(ErrorText(day.reached)) if day and day.reached else "",
        "left": left if is_left and may_see else "",
        "reasons": REASONS,
    }
    return {"access": panel}


def _rows(hour: int, day: Used, month: Used, limits: UsageLimits) -> list[tuple[str, str, str]]:
    def of(number: int, limit: int) -> str:
        shown = number_format(number, force_grouping=True)
        if not limit:
            return shown
        most = number_format(limit, force_grouping=True)
        return _("%(number)s of %(limit)s") % {"number": shown, "limit": most}

    calls = of(day.calls, limits.model_calls_per_day)
    tokens = of(day.tokens, limits.tokens_per_day)
    rows = [
        (_("Messages this hour"), of(hour, limits.messages_per_hour), "–"),
        (_("Model calls"), calls, of(month.calls, 0)),
        (_("Tokens"), tokens, of(month.tokens, 0)),
    ]
    if limits.prices:
        costs = display.cost_shown(day.cost), display.cost_shown(month.cost)
        rows.append((_("Estimated cost"), *costs))
    return rows


def decide(request: HttpRequest, chat_id: UUID) -> HttpResponse:
    """Block or allow a chat, or take that back, by POST ``standing`` and ``reason``."""
    staff_pages.rights_required(request, *RIGHTS)
    chat = chat_or_404(chat_id)
    standing, reason = request.POST.get("standing", ""), request.POST.get("reason", "")
    back = redirect(conversation_address(chat.pk))
    if standing not in DONE or (standing and reason not in dict(REASONS)):
        messages.error(request, _("Choose a reason from the list; nothing was changed."))
        return back
    if standing and is_owners(chat):
        messages.error(request, _("This is the owner's chat: it is always answered."))
        return back
    before = _standings([chat.pk])
    try:
        changed = decided(request, chat.pk, standing, reason)
    except Chat.DoesNotExist:
        raise Http404("There is no such chat, or not any more.") from None
    if changed:
        undo.undo_offer(request, DONE[standing], "chat.access", before)
    else:
        messages.info(request, _("Nothing was changed: it was decided so already."))
    return back


def _standings(chats: Iterable[UUID]) -> list[tuple[str, str, str]]:
    """Return the id of each of these chats with its standing and reason, which may be empty."""
    known = {each.chat_id: each for each in ChatAccess.objects.filter(chat__in=chats)}
    rows = [(key, known.get(key, ChatAccess())) for key in chats]
    return [(str(key), str(access.standing), str(access.reason)) for key, access in rows]


@undo.reverses("chat.access", *RIGHTS)
def _undecide(request: HttpRequest, data: Any) -> None:
    for chat_id, standing, reason in data:
        # Who was erased meanwhile needs no access.
        with suppress(Chat.DoesNotExist):
            decided(request, UUID(chat_id), standing, reason)


def decided(request: HttpRequest, chat_id: UUID, standing: str, reason: str) -> bool:
    """Record the decision of the user; see standing_set."""
    return standing_set(
        chat_id=chat_id,
        standing=standing,
        reason=reason if standing else "",
        by=request.user.pk,
        actor=staff_actor(request),
        now=timezone.now(),
    )


ACCESS_PAGES = {"access": staff_pages.OwnPage("<uuid:chat_id>/access/", decide, "POST")}


# Block and allow the chosen chats of the inbox.


def _decision(title: Any, standing: str, reason: str) -> Any:
    @admin.action(description=title, permissions=["takeover"])
    def act(page: AccessActions, request: HttpRequest, queryset: QuerySet[Chat]) -> None:
        page.decide_all(request, queryset, standing, reason)

    return act


class AccessActions(staff_admin.ReadOnlyAdmin):
    """Mixin for the list of chats. The reason of a single chat is chosen on its page."""

    def has_takeover_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perms(RIGHTS)

    allow_selected = _decision(gettext_lazy("Allow"), Standing.ALLOWED, StandingReason.CLIENT)
    block_selected = _decision(gettext_lazy("Block as spam"), Standing.BLOCKED, StandingReason.SPAM)
    undecide_selected = _decision(
        gettext_lazy("Reset to not decided"), Standing.NONE, StandingReason.NONE
    )

    def decide_all(
        self, request: HttpRequest, queryset: QuerySet[Chat], standing: str, reason: str
    ) -> None:
        chats = list(queryset.order_by("pk"))
        before = _standings([chat.pk for chat in chats])
        changed = [
            was
            for was, chat in zip(before, chats, strict=True)
            if self._decide_one(request, chat, str(standing), str(reason))
        ]
        if changed:
            text = ngettext("%(n)d chat was changed.", "%(n)d chats were changed.", len(changed))
            undo.undo_offer(request, text % {"n": len(changed)}, "chat.access", changed)
        if left := len(chats) - len(changed):
            text = ngettext(
                "%(n)d chat was skipped: already decided so, or the owner's.",
                "%(n)d chats were skipped: already decided so, or the owner's.",
                left,
            )
            messages.warning(request, text % {"n": left})

    def _decide_one(self, request: HttpRequest, chat: Chat, standing: str, reason: str) -> Any:
        if standing and is_owners(chat):
            return False
        try:
            return decided(request, chat.pk, standing, reason)
        except Chat.DoesNotExist:
            # Erased or merged meanwhile: the others are changed.
            return False
