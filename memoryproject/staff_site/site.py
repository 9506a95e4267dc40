"""The admin site, with the lists and pages that staff need most at the top."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import partial, wraps
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext as _, gettext_lazy
from unfold.sites import UnfoldAdminSite

from memoryproject import __version__
from memoryproject.foundation.admin_kit.staff_pages import OwnPage, page_paths
from memoryproject.foundation.admin_kit.undo import UNDO_PAGES
from memoryproject.foundation.audit.audit_events import list_export_record
from memoryproject.foundation.errors.stored_errors import translate_error
from memoryproject.foundation.integrations.whatsapp.registry import PROVIDERS
from memoryproject.foundation.outgoing_webhooks.endpoints import endpoints_failing
from memoryproject.foundation.outside_services.models import ServiceName
from memoryproject.foundation.tables import read_table
from memoryproject.staff_site.accounts.login_site import AccessSite
from memoryproject.staff_site.dashboard.board import sees_figures
from memoryproject.staff_site.dashboard.pages import costs_page, figures_page, overview_context
from memoryproject.staff_site.navigation import navigation
from memoryproject.staff_site.notification_page import notifications_page
from memoryproject.staff_site.setup.steps import is_open
from sessions_app.global_search import SEARCH_PAGES, search_address
from sessions_app.inbound.facade import foreign_numbers
from sessions_app.turns.facade import accounts_refused

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


class StaffSite(AccessSite, UnfoldAdminSite):  # type: ignore[misc]
    index_title = gettext_lazy("Home")
    # As the columns of our own show what is missing.
    empty_value_display = "–"

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        context = super().each_context(request)
        if context["has_permission"]:
            context["staff_navigation"] = navigation(request, context["available_apps"])
            context["product_version"] = __version__
            context["account_links"] = _account_links(request)
            context["search_address"] = search_address(request.user)
            context["setup_open"] = is_open(request)
            context["idle_seconds"] = settings.STAFF_SESSION_MINUTES * 60
            # Called by a page's frame alone: a look for news reads nothing of it.
            context["refused_accounts"] = partial(_refused_accounts, request)
        return context

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        return lead_to_form(super().admin_view(view, cacheable))

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Return the apps and models in our own order.

        Conversations come first, and within an app texts come before technical lists. Names that
        aren't in this order come last, alphabetically.
        """
        found = super().get_app_list(request, app_label)
        for app in found:
            app["models"].sort(key=lambda model: _place(MODELS, model["object_name"]))
        return sorted(found, key=lambda app: _place(APPS, app["app_label"]))

    def record_list_export(self, request: HttpRequest, name: str, rows: int) -> None:
        """Record that staff took a list as a file. ``name``: the list's model."""
        list_export_record(request, name, rows)

    def get_urls(self) -> list[Any]:
        """Return our own pages before the models' pages."""
        # Their views need this site, which is being created here.
        from memoryproject.staff_site.operations.views import OPERATIONS_PAGES  # noqa: PLC0415
        from memoryproject.staff_site.setup.step_pages import SETUP_PAGES  # noqa: PLC0415
        from sessions_app.broadcasts.presentation import BROADCAST_PAGES  # noqa: PLC0415
        from sessions_app.contacts.presentation import CONTACT_PAGES  # noqa: PLC0415
        from sessions_app.moving.presentation import MOVING_PAGES  # noqa: PLC0415

        pages = {
            "dashboard_figures": OwnPage("dashboard/figures/", figures_page, "GET HEAD"),
            "notifications": OwnPage("account/notifications/", notifications_page),
            "costs": OwnPage("costs/", costs_page, "GET HEAD"),
            **SEARCH_PAGES,
            **UNDO_PAGES,
            **CONTACT_PAGES,
            **MOVING_PAGES,
            **BROADCAST_PAGES,
            **OPERATIONS_PAGES,
            **SETUP_PAGES,
        }
        # Unfold's own search finds lists; ours finds people, messages and memories.
        others = [url for url in super().get_urls() if getattr(url, "name", "") != "search"]
        return [*page_paths(self, pages), *others]

    def index(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Show the dashboard, or the lists for staff who may not see any figure.

        A server that isn't set up leads its administrators to the set-up, once in a session. It
        includes a note about webhooks that fail to deliver.
        """
        if is_open(request) and not request.session.get("setup_seen"):
            return HttpResponseRedirect(reverse("admin:setup"))  # type: ignore[return-value]
        for address, warning in _warnings(request):
            messages.warning(request, format_html('<a href="{}">{}</a>', address, warning))
        if not sees_figures(request.user):
            has_no_rights = not request.user.get_all_permissions()
            context = {"has_no_rights": has_no_rights, **(extra_context or {})}
            return super().index(request, context)
        figures = {**overview_context(request), **(extra_context or {})}
        page = super().index(request, figures)
        page.template_name = "dashboard/overview.html"
        return page


def _account_links(request: HttpRequest) -> list[dict[str, str]]:
    """Return the links to the pages of a person's own account, besides logging out."""
    user = request.user
    links = []
    if user.has_perm("auth.view_user") or user.has_perm("auth.change_user"):
        address = reverse("admin:auth_user_change", args=[user.pk])
        links.append({"title": _("My account"), "address": address})
    links.append({"title": _("Notifications"), "address": reverse("admin:notifications")})
    if user.is_authenticated and user.has_usable_password():
        links += [
            {"title": _("Change password"), "address": reverse("admin:password_change")},
            {"title": _("Two-factor login"), "address": reverse("admin:two_factor")},
        ]
    return links


def _refused_accounts(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the providers that refuse our account, for the banner of every page."""
    if not request.user.has_perm("sessions_app.view_turn"):
        return []
    return [
        {
            "name": str(ServiceName(PROVIDERS[provider].service).label),
            "setting": PROVIDERS[provider].key_setting,
            "why": translate_error(refusal.why),
            "since": refusal.since,
            "waiting": refusal.waiting,
            "numbers": ", ".join(refusal.numbers),
        }
        for provider, refusal in accounts_refused().items()
    ]


def _warnings(request: HttpRequest) -> Iterator[tuple[str, str]]:
    """Yield what a person is warned of, each with the address of its list."""
    now = timezone.now()
    has_perm = request.user.has_perm
    if has_perm("hooks.view_webhookendpoint") and (failing := endpoints_failing(now=now)):
        text = _("Webhooks are not delivered to: %(names)s")
        names = ", ".join(endpoint.name for endpoint in failing)
        yield reverse("admin:hooks_webhookendpoint_changelist"), text % {"names": names}
    if has_perm("sessions_app.view_inbounddelivery") and (
        numbers := foreign_numbers(since=now - timedelta(days=1))
    ):
        text = _(
            "Webhooks came for numbers that the settings don't name, and were ignored: %(numbers)s"
        )
        address = reverse("admin:sessions_app_inbounddelivery_changelist")
        yield f"{address}?event=Notice", text % {"numbers": ", ".join(numbers)}


def _place(names: tuple[str, ...], name: str) -> int:
    return names.index(name) if name in names else len(names)


# The page on which the form of each address stands that takes POST only.


FORM_PAGES: Mapping[str, tuple[str, str]] = read_table(__file__, "form_pages.yaml")


def lead_to_form(view: Callable[..., Any]) -> Callable[..., Any]:
    """Lead a GET of an address that takes POST only to the page of its form.

    A page that answers a POST has such an address. It is asked for by GET when somebody switches
    the language there, loads it again, or logs in after the session ended.
    """

    @wraps(view)
    def led(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        answer: HttpResponseBase = view(request, *args, **kwargs)
        if answer.status_code != 405 or request.method not in ("GET", "HEAD"):
            return answer
        match = request.resolver_match
        page, argument = FORM_PAGES.get(match.url_name or "" if match else "", ("", ""))
        if not page:
            return answer
        address = reverse(f"admin:{page}", args=[kwargs[argument]] if argument else [])
        query = request.META.get("QUERY_STRING", "")
        return HttpResponseRedirect(f"{address}?{query}" if query else address)

    return led
