"""Manage the endpoints of outgoing webhooks."""

import json
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError

from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.commands import ReportingCommand, UsageError, flag, option
from memoryproject.foundation.outgoing_webhooks import deliveries, endpoints, models, sending
from memoryproject.foundation.text.uuids import iso_utc
from sessions_app.webhook_endpoints.dependencies import (
    build_address_rules,
    build_webhook_dependencies,
)
from sessions_app.webhook_endpoints.endpoint_form import hook_chats

NAME = option("name")
EVENT_HELP = (
    "It is told of this; give it several times. Default: all. "
    f"{'; '.join(f'{name}: {text}' for name, text in models.EVENT_TYPES.items())}."
)


class Command(ReportingCommand):
    # Only one action has the option.
    json_help = ""
    refusals = {**ReportingCommand.refusals, endpoints.EndpointNotFoundError: "{error}"}

    actions = {
        "add": [
            NAME,
            option("url"),
            option("--event", action="append", choices=list(models.EVENT_TYPES), help=EVENT_HELP),
            option("--chat", action="append", metavar="WHATSAPP_CHAT"),
        ],
        "list": [flag("--json")],
        "rotate": [NAME, option("--keep-hours", type=int, default=24, metavar="HOURS")],
        **{action: [NAME] for action in ("enable", "disable", "remove", "test")},
    }

    def run(self, options: dict[str, Any]) -> None:
        try:
            getattr(self, f"_{options['action']}")(options)
        except endpoints.EndpointError as error:
            raise UsageError(str(error)) from error

    def _add(self, options: dict[str, Any]) -> None:
        made = endpoints.endpoint_create(
            name=options["name"],
            url=options["url"],
            event_types=options["event"] or (),
            chat_ids=hook_chats(options["chat"] or ()),
            rules=build_address_rules(),
            actor=COMMAND_LINE,
        )
        self.stdout.write(made.secret)

    def _list(self, options: dict[str, Any]) -> None:
        rows = list(models.WebhookEndpoint.objects.order_by("name"))
        if options["json"]:
            self.stdout.write(json.dumps([_shown(endpoint) for endpoint in rows], indent=2))
            return
        for endpoint in rows:
            shown = _shown(endpoint)
            events = ", ".join(shown["events"]) or "everything"
            why = f" ({shown['reason']})" if shown["reason"] else ""
            self.stdout.write(f"{shown['name']}: {shown['state']}{why}, {shown['url']}, {events}")
        if not rows:
            self.stderr.write("There is no endpoint: webhook_endpoint add NAME URL makes one.")

    def _rotate(self, options: dict[str, Any]) -> None:
        hours = options["keep_hours"]
        if not 0 <= hours <= 24 * 365:
            raise UsageError("--keep-hours is from 0 to 8760.")
        made = endpoints.endpoint_rotate(
            endpoint_id=_key(options), actor=COMMAND_LINE, keep=timedelta(hours=hours)
        )
        self.stdout.write(made.secret)

    def _disable(self, options: dict[str, Any]) -> None:
        self._enable(options, enabled=False)

    def _enable(self, options: dict[str, Any], *, enabled: bool = True) -> None:
        endpoints.endpoint_change(
            endpoint_id=_key(options),
            changes={"enabled": enabled},
            rules=build_address_rules(),
            actor=COMMAND_LINE,
        )
        self.stdout.write(f"{options['name']} is {'enabled' if enabled else 'disabled'}.")

    def _remove(self, options: dict[str, Any]) -> None:
        endpoints.endpoint_remove(endpoint_id=_key(options), actor=COMMAND_LINE)
        self.stdout.write(f"{options['name']} is removed.")

    def _test(self, options: dict[str, Any]) -> None:
        delivery = deliveries.delivery_test(endpoint_id=_key(options))
        sent = sending.delivery_send(delivery=delivery, dependencies=build_webhook_dependencies())
        after = models.WebhookDelivery.objects.get(pk=delivery.pk)
        if sent is None and after.state == "pending":
            raise CommandError(
                f"{options['name']} can't be tested now: it is disabled, or a worker sends to it. "
                "The test is sent later."
            )
        if after.state != "delivered":
            raise CommandError(f"{options['name']} didn't take it: {after.error}")
        self.stdout.write(f"{options['name']} took it: it answered {after.last_status}.")


def _key(options: dict[str, Any]) -> int:
    """Return the endpoint's key. Raises EndpointNotFoundError."""
    found = models.WebhookEndpoint.objects.filter(name=options["name"]).values_list("pk", flat=True)
    key = found.first()
    if key is None:
        raise endpoints.EndpointNotFoundError(f"There is no endpoint {options['name']!r}.")
    return key


def _shown(endpoint: models.WebhookEndpoint) -> dict[str, Any]:
    failing = "failing" if endpoint.failing_since else "enabled"
    return {
        "name": endpoint.name,
        "url": endpoint.url,
        "events": list(endpoint.event_types),
        "bound": endpoint.chat_ids is not None,
        "state": failing if endpoint.enabled else "disabled",
        "reason": endpoint.disabled_reason or endpoint.last_error,
        "last_success_at": iso_utc(endpoint.last_success_at) if endpoint.last_success_at else None,
        "last_failure_at": iso_utc(endpoint.last_failure_at) if endpoint.last_failure_at else None,
    }
