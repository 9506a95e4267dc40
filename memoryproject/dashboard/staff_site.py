"""The admin site: what staff need most stands first."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html

from memoryproject.hooks.endpoints import endpoints_failing

APPS = ("sessions_app", "memories_app", "cards_app", "audit", "api", "hooks", "django_q", "auth")
MODELS = (
    "Chat",
    "ChatSession",
    "Message",
    "Turn",
    "SummarizationMetadata",
    "AssistantProfile",
    "Memory",
    "MergeProposal",
    "SourceDocument",
    "MemoryDocument",
    "ForgetReceipt",
    "InboundDelivery",
    "OutboundPart",
    "ChatAddress",
)


class StaffSite(AdminSite):
    site_header = "WhatsApp memory"
    site_title = "WhatsApp memory"
    index_title = "Overview"

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Conversations before the rest, and in each app what is read before what is
        technical; what is not named here comes last, by its name."""
        found = super().get_app_list(request, app_label)
        for app in found:
            app["models"].sort(key=lambda model: _place(MODELS, model["object_name"]))
        return sorted(found, key=lambda app: _place(APPS, app["app_label"]))

    def index(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """With a word on webhooks that don't get through."""
        if request.user.has_perm("hooks.view_webhookendpoint"):
            _tell_of_webhooks(request)
        return super().index(request, extra_context)


def _tell_of_webhooks(request: HttpRequest) -> None:
    failing = endpoints_failing(now=timezone.now())
    if not failing:
        return
    names = ", ".join(endpoint.name for endpoint in failing)
    address = reverse("admin:hooks_webhookendpoint_changelist")
    text = format_html('<a href="{}">Webhooks</a> are not delivered to: {}', address, names)
    messages.warning(request, text)


def _place(names: tuple[str, ...], name: str) -> int:
    return names.index(name) if name in names else len(names)
