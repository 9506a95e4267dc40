"""The pages of outgoing webhooks: manage endpoints, and see their deliveries."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from memoryproject.foundation.admin_kit.display import column, shown_json, shown_link, shown_mark
from memoryproject.foundation.admin_kit.list_filters import choice_filter
from memoryproject.foundation.admin_kit.staff_admin import ReadOnlyAdmin, StaffAdmin, sections
from memoryproject.foundation.admin_kit.staff_pages import staff_page, unstored
from memoryproject.foundation.audit.audit_events import staff_actor
from memoryproject.foundation.errors.stored_errors import translate_error
from memoryproject.foundation.outgoing_webhooks import endpoints
from memoryproject.foundation.outgoing_webhooks.deliveries import deliveries_again, delivery_test
from memoryproject.foundation.outgoing_webhooks.models import (
    DeliveryState,
    WebhookDelivery,
    WebhookEndpoint,
)
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.presentation.links import list_address
from sessions_app.webhook_endpoints.dependencies import build_address_rules
from sessions_app.webhook_endpoints.endpoint_form import EndpointForm, hook_chats

STATE_FILTER = choice_filter(
    "state",
    gettext_lazy("state"),
    {
        "failing": (gettext_lazy("failing"), Q(enabled=True, failing_since__isnull=False)),
        "disabled": (gettext_lazy("disabled"), Q(enabled=False)),
        "works": (gettext_lazy("works"), Q(enabled=True, failing_since__isnull=True)),
    },
)
# Each with its tone.
STATES = {
    "disabled": (gettext_lazy("disabled"), "bad"),
    "failing": (gettext_lazy("failing"), "bad"),
    "works": (gettext_lazy("works"), "good"),
    "unused": (gettext_lazy("not used yet"), ""),
}


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(StaffAdmin):
    """Services write the rows; the secret is shown once, when it is created."""

    form = EndpointForm
    list_title = gettext_lazy("Webhook endpoints")
    list_before_template = "admin/operations/list_tabs.html"
    actions = ("give_new_secret", "send_test")
    list_display = (
        "name",
        "shown_events",
        "shown_state",
        "last_success_at",
        "last_failure_at",
        "shown_last_error",
    )
    # Its times need their names.
    row_time = ""
    list_filter = (STATE_FILTER,)
    search_fields = ("name", "url")
    shown = (
        "shown_state",
        "shown_reason",
        "shown_last_error",
        "last_success_at",
        "last_failure_at",
        "failing_since",
        "paused_until",
        "old_secret_until",
        "created_at",
        "created_by",
        "log",
    )

    def get_fieldsets(self, request: HttpRequest, obj: WebhookEndpoint | None = None) -> Any:
        given = ("name", "url", "event_types", "chats")
        if obj is None:
            return ((None, {"fields": given}),)
        return ((None, {"fields": (*given, "enabled")}), (_("How it goes"), {"fields": self.shown}))

    def get_readonly_fields(self, request: HttpRequest, obj: WebhookEndpoint | None = None) -> Any:
        return self.shown if obj else ()

    def get_actions(self, request: HttpRequest) -> Any:
        """Offer no bulk removal: endpoints are removed one by one, on their page."""
        found = super().get_actions(request)
        found.pop("delete_selected", None)
        return found

    def save_model(
        self, request: HttpRequest, obj: WebhookEndpoint, form: Any, change: bool
    ) -> None:
        """Let the service write the row, with its audit event."""
        data = form.cleaned_data
        given = {name: data[name] for name in ("name", "url", "event_types")}
        if not change or "chats" in form.changed_data:
            given["chat_ids"] = hook_chats(data["chats"])
        by: Any = {"rules": build_address_rules(), "actor": staff_actor(request)}
        if change:
            given["enabled"] = data["enabled"]
            # The form has resolved the host; here the row is locked.
            endpoints.endpoint_change(endpoint_id=obj.pk, changes=given, resolve=False, **by)
        else:
            made = endpoints.endpoint_create(**given, **by)
            obj.pk = made.pk
            request.__dict__["made_secret"] = made

    def delete_model(self, request: HttpRequest, obj: WebhookEndpoint) -> None:
        endpoints.endpoint_remove(endpoint_id=obj.pk, actor=staff_actor(request))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """List only the endpoints. Their deliveries are deleted, too, but are too many to list."""
        shown = [_("Endpoint: %(name)s, with its log") % {"name": each} for each in objs]
        return shown, {_("endpoints"): len(shown)}, set(), []

    def response_add(
        self, request: HttpRequest, obj: WebhookEndpoint, post_url_continue: str | None = None
    ) -> HttpResponse:
        return self._secret_page(request, request.__dict__["made_secret"])

    @admin.action(description=gettext_lazy("Create a new secret"), permissions=["change"])
    def give_new_secret(
        self, request: HttpRequest, queryset: QuerySet[WebhookEndpoint]
    ) -> HttpResponse | None:
        """Show the new secret on its own page, as after the creation."""
        keys = list(queryset.values_list("pk", flat=True))
        if len(keys) != 1:
            messages.warning(request, _("Choose one endpoint."))
            return None
        endpoint = endpoints.endpoint_rotate(endpoint_id=keys[0], actor=staff_actor(request))
        return self._secret_page(request, endpoint)

    @admin.action(description=gettext_lazy("Send a test"), permissions=["change"])
    def send_test(self, request: HttpRequest, queryset: QuerySet[WebhookEndpoint]) -> None:
        enabled = list(queryset.filter(enabled=True).values_list("pk", flat=True))
        for key in enabled:
            delivery_test(endpoint_id=key)
        text = ngettext(
            "%(count)d test is on its way: see the deliveries.",
            "%(count)d tests are on their way: see the deliveries.",
            len(enabled),
        )
        messages.success(request, text % {"count": len(enabled)})
        if left := queryset.count() - len(enabled):
            text = ngettext("%(count)d is disabled.", "%(count)d are disabled.", left)
            messages.warning(request, text % {"count": left})

    def _secret_page(self, request: HttpRequest, endpoint: WebhookEndpoint) -> HttpResponse:
        """Show the secret only on this page: a notice would be stored in the session."""
        title, context = _("The new secret"), {"endpoint": endpoint}
        page = "admin/webhook_secret_made.html"
        return unstored(staff_page(request, page, title, context, of=self.model))

    @admin.display(description=gettext_lazy("events"))
    def shown_events(self, endpoint: WebhookEndpoint) -> str:
        what = ", ".join(endpoint.event_types) or _("everything")
        if endpoint.chat_ids is None:
            return what
        count = len(endpoint.chat_ids)
        text = ngettext("%(what)s, of %(count)d chat", "%(what)s, of %(count)d chats", count)
        return text % {"what": what, "count": count}

    @admin.display(description=gettext_lazy("state"))
    def shown_state(self, endpoint: WebhookEndpoint) -> str:
        return shown_mark(*STATES[endpoint.state])

    shown_reason = column(
        gettext_lazy("disabled reason"), lambda endpoint: translate_error(endpoint.disabled_reason)
    )
    shown_last_error = column(
        gettext_lazy("last error"), lambda endpoint: translate_error(endpoint.last_error)
    )

    @admin.display(description=gettext_lazy("deliveries"))
    def log(self, endpoint: WebhookEndpoint) -> str:
        address = list_address("hooks_webhookdelivery", endpoint__id__exact=endpoint.pk)
        return shown_link(address, _("What was sent to it"))


def _deliveries_of(
    queryset: QuerySet[WebhookDelivery], search_term: str
) -> QuerySet[WebhookDelivery]:
    """Search for whole ids only, which use an index."""
    term = search_term.strip().removeprefix("evt_")
    if not term:
        return queryset
    key = uuid_or_none(term)
    return queryset.none() if key is None else queryset.filter(event_id=key)


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyAdmin):
    """The log of deliveries."""

    list_title = gettext_lazy("Webhook deliveries")
    list_before_template = "admin/operations/list_tabs.html"
    list_display = (
        "occurred_at",
        "event_type",
        "endpoint",
        "shown_state",
        "attempts",
        "last_status",
        "shown_error",
        "last_attempt_at",
        "due_at",
    )
    list_filter = ("state", "event_type", ("endpoint", admin.RelatedOnlyFieldListFilter))
    search_fields = ("event_id",)
    find_rows = staticmethod(_deliveries_of)
    search_help_text = gettext_lazy("An event's whole id, as webhook-id tells it.")
    list_select_related = ("endpoint",)
    actions = ("send_again",)
    # An outage of a receiver leaves many deliveries; a few queries retry all of them.
    unbounded_actions = actions
    fieldsets = sections(
        (None, "endpoint event_type shown_state occurred_at message_id"),
        (gettext_lazy("How it went"), "attempts last_status shown_error last_attempt_at due_at"),
        (gettext_lazy("What it tells"), "shown_data chat_id finished_at"),
    )

    def row_name(self, request: HttpRequest, row: Any) -> str:
        return str(row.event_type)

    def has_again_permission(self, request: HttpRequest) -> bool:
        """Allow users who may change endpoints; the log itself can't be changed."""
        return request.user.has_perm("hooks.change_webhookendpoint")

    @admin.action(description=gettext_lazy("Send again"), permissions=["again"])
    def send_again(self, request: HttpRequest, queryset: QuerySet[WebhookDelivery]) -> None:
        keys = list(queryset.values_list("pk", flat=True))
        again = deliveries_again(delivery_ids=keys, actor=staff_actor(request))
        text = ngettext(
            "%(count)d delivery is being sent again.",
            "%(count)d deliveries are being sent again.",
            again,
        )
        messages.success(request, text % {"count": again})
        # Select by key: the list may be filtered by the state before the change.
        sent = WebhookDelivery.objects.filter(pk__in=keys, state=DeliveryState.PENDING)
        if waiting := sent.filter(endpoint__enabled=False).count():
            text = ngettext(
                "%(count)d of them waits until its endpoint is enabled.",
                "%(count)d of them wait until their endpoint is enabled.",
                waiting,
            )
            messages.warning(request, text % {"count": waiting})

    @admin.display(description=gettext_lazy("state"), ordering="state")
    def shown_state(self, delivery: WebhookDelivery) -> str:
        tones = {DeliveryState.DELIVERED: "good", DeliveryState.FAILED: "bad"}
        text = delivery.get_state_display()
        return shown_mark(text, tones.get(DeliveryState(delivery.state), ""))

    message_id = column(gettext_lazy("message id"), lambda delivery: delivery.message_id)
    shown_error = column(gettext_lazy("error"), lambda delivery: translate_error(delivery.error))
    shown_data = column(gettext_lazy("data"), lambda delivery: shown_json(delivery.data))
