"""The admin site: what staff need most stands first."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest

APPS = ("sessions_app", "memories_app", "cards_app", "audit", "api", "django_q", "auth")
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


def _place(names: tuple[str, ...], name: str) -> int:
    return names.index(name) if name in names else len(names)
