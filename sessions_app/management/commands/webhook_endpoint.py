"""Manage the endpoints of outgoing webhooks."""

import json
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError

from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.commands import ReportingCommand, UsageError
from memoryproject.foundation.outgoing_webhooks.deliveries import delivery_test
from memoryproject.foundation.outgoing_webhooks.endpoints import (
    EndpointError,
    EndpointNotFoundError,
    endpoint_change,
    endpoint_create,
    endpoint_remove,
    endpoint_rotate,
)
from memoryproject.foundation.outgoing_webhooks.models import (
    EVENT_TYPES,
    WebhookDelivery,
    WebhookEndpoint,
)
from memoryproject.foundation.outgoing_webhooks.sending import delivery_send
from memoryproject.foundation.text.uuids import iso_utc
from sessions_app.webhook_endpoints.dependencies import (
    build_address_rules,
    build_webhook_dependencies,
)
from sessions_app.webhook_endpoints.endpoint_form import hook_chats


class Command(ReportingCommand):
    # Only one action has the option.
    json_help = ""
    refusals = {**ReportingCommand.refusals, EndpointNotFoundError: "{error}"}

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, help="What to do.")
        add = _named(actions, "add", "Make an endpoint and print its secret.")
        add.add_argument("url", help="Where it is posted: https://…")
        events = "; ".join(f"{name}: {text}" for name, text in EVENT_TYPES.items())
        add.add_argument(
            "--event",
            action="append",
            choices=list(EVENT_TYPES),
            help=f"It is told of this; give it several times. Default: all. {events}.",
        )
        add.add_argument(
            "--chat",
            action="append",
            metavar="WHATSAPP_CHAT",
            help="Bind it to this chat, such as 15550100123@c.us; give it several times. It is "
            "told of no other. A chat that is new is made.",
        )
        listing = actions.add_parser("list", help="Show all endpoints and how they do.")
        listing.add_argument("--json", action="store_true", help="As JSON.")
        rotate = _named(actions, "rotate", "Give it a new secret and print that.")
        rotate.add_argument(
            "--keep-hours",
            type=int,
            default=24,
            metavar="HOURS",
            help="So long the old secret signs as well. Default: 24; 0: not at all.",
        )
        _named(actions, "enable", "Send to it again.")
        _named(actions, "disable", "Send nothing to it; what happens meanwhile isn't kept for it.")
        _named(actions, "remove", "Remove it with its log.")
        _named(actions, "test", "Send it a test now; the exit code says whether it took it.")

    def run(self, options: dict[str, Any]) -> None:
        try:
            getattr(self, f"_{options['action']}")(options)
        except EndpointError as error:
            raise UsageError(str(error)) from error

    def _add(self, options: dict[str, Any]) -> None:
        made = endpoint_create(
            name=options["name"],
            url=options["url"],
            event_types=options["event"] or (),
            chat_ids=hook_chats(options["chat"] or ()),
            rules=build_address_rules(),
            actor=COMMAND_LINE,
        )
        self.stdout.write(made.secret)

    def _list(self, options: dict[str, Any]) -> None:
        endpoints = list(WebhookEndpoint.objects.order_by("name"))
        if options["json"]:
            self.stdout.write(json.dumps([_shown(endpoint) for endpoint in endpoints], indent=2))
            return
        for endpoint in endpoints:
            shown = _shown(endpoint)
            events = ", ".join(shown["events"]) or "everything"
            why = f" ({shown['reason']})" if shown["reason"] else ""
            self.stdout.write(f"{shown['name']}: {shown['state']}{why}, {shown['url']}, {events}")
        if not endpoints:
            self.stderr.write("There is no endpoint: webhook_endpoint add NAME URL makes one.")

    def _rotate(self, options: dict[str, Any]) -> None:
        hours = options["keep_hours"]
        if not 0 <= hours <= 24 * 365:
            raise UsageError("--keep-hours is from 0 to 8760.")
        made = endpoint_rotate(
            endpoint_id=_key(options), actor=COMMAND_LINE, keep=timedelta(hours=hours)
        )
        self.stdout.write(made.secret)

    def _disable(self, options: dict[str, Any]) -> None:
        self._enable(options, enabled=False)

    def _enable(self, options: dict[str, Any], *, enabled: bool = True) -> None:
        endpoint_change(
            endpoint_id=_key(options),
            changes={"enabled": enabled},
            rules=build_address_rules(),
            actor=COMMAND_LINE,
        )
        self.stdout.write(f"{options['name']} is {'enabled' if enabled else 'disabled'}.")

    def _remove(self, options: dict[str, Any]) -> None:
        endpoint_remove(endpoint_id=_key(options), actor=COMMAND_LINE)
        self.stdout.write(f"{options['name']} is removed.")

    def _test(self, options: dict[str, Any]) -> None:
        delivery = delivery_test(endpoint_id=_key(options))
        sent = delivery_send(delivery=delivery, dependencies=build_webhook_dependencies())
        after = WebhookDelivery.objects.get(pk=delivery.pk)
        if sent is None and after.state == "pending":
            raise CommandError(
                f"{options['name']} can't be tested now: it is disabled, or a worker sends to it. "
                "The test is sent later."
            )
        if after.state != "delivered":
            raise CommandError(f"{options['name']} didn't take it: {after.error}")
        self.stdout.write(f"{options['name']} took it: it answered {after.last_status}.")


def _named(actions: Any, name: str, text: str) -> ArgumentParser:
    """Add a subcommand for one endpoint."""
    parser: ArgumentParser = actions.add_parser(name, help=text, description=text)
    parser.add_argument("name", help="The endpoint's name.")
    return parser


def _key(options: dict[str, Any]) -> int:
    """Return the endpoint's key. Raises EndpointNotFoundError."""
    found = WebhookEndpoint.objects.filter(name=options["name"]).values_list("pk", flat=True)
    key = found.first()
    if key is None:
        raise EndpointNotFoundError(f"There is no endpoint {options['name']!r}.")
    return key


def _shown(endpoint: WebhookEndpoint) -> dict[str, Any]:
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
