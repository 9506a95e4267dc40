"""Create, change and remove endpoints."""

import base64
import hmac
import logging
import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from memoryproject.foundation.audit.audit_events import SYSTEM, Actor, audit_record
from memoryproject.foundation.errors.stored_errors import error_text, translate_error
from memoryproject.foundation.integrations.network import addresses
from memoryproject.foundation.outgoing_webhooks.models import EVENT_TYPES, WebhookEndpoint

logger = logging.getLogger(__name__)

MAX_NAME_LENGTH = 100
# The time that receivers have to adopt a new secret.
OLD_SECRET_KEPT = timedelta(hours=24)
# Of an endpoint that is enabled: earlier failures don't count.
FRESH = {"disabled_reason": "", "failing_since": None, "failures": 0, "paused_until": None}
CHANGEABLE = ("name", "url", "event_types", "chat_ids", "enabled")


class EndpointError(ValueError):
    """The endpoint isn't valid. The text states the reason, ``field`` the invalid field."""

    def __init__(self, text: str, field: str) -> None:
        super().__init__(text)
        self.field = field


class EndpointNotFoundError(LookupError):
    """The endpoint doesn't exist."""


def endpoint_create(
    *,
    name: str,
    url: str,
    event_types: Collection[str] = (),
    chat_ids: Collection[UUID] | None = None,
    enabled: bool = True,
    rules: addresses.AddressRules,
    actor: Actor,
) -> WebhookEndpoint:
    """Create an endpoint, whose secret is shown once.

    ``event_types``: the events that it receives; empty: all.
    ``chat_ids``: the chats that it is bound to; None: it isn't bound.

    Raises EndpointError.
    """
    endpoint_check(name=name, url=url, event_types=event_types, chat_ids=chat_ids, rules=rules)
    endpoint = WebhookEndpoint(
        name=name.strip(),
        url=url,
        event_types=_ordered(event_types),
        chat_ids=None if chat_ids is None else sorted(set(chat_ids)),
        enabled=enabled,
        secret=secret_new(),
        created_by=actor.name or actor.kind,
    )
    try:
        with transaction.atomic():
            endpoint.save(force_insert=True)
            _record("webhook.create", endpoint, actor)
    except IntegrityError as error:
        raise _taken(name) from error
    return endpoint


def endpoint_change(
    *,
    endpoint_id: int,
    changes: dict[str, Any],
    rules: addresses.AddressRules,
    actor: Actor,
    resolve: bool = True,
    check: Callable[[WebhookEndpoint], None] = lambda endpoint: None,
) -> WebhookEndpoint:
    """Change the given fields among name, url, event_types, chat_ids and enabled.

    An endpoint that is enabled again starts fresh: earlier failures no longer count. ``resolve``:
    False if the caller has just checked the addresses of the URL's host. ``check`` is called with
    the endpoint locked, before it is changed. Raises EndpointError, EndpointNotFoundError.
    """
    if unknown := set(changes) - set(CHANGEABLE):
        raise TypeError(f"No fields that can be changed: {', '.join(sorted(unknown))}.")
    known = endpoint_get(endpoint_id)
    wanted = {name: changes.get(name, getattr(known, name)) for name in CHANGEABLE}
    wanted["event_types"] = _ordered(wanted["event_types"])
    checked = {name: wanted[name] for name in CHANGEABLE if name != "enabled"}
    # Before the transaction: the name lookup may take long.
    endpoint_check(**checked, rules=rules, resolve=resolve and wanted["url"] != known.url)
    try:
        with transaction.atomic():
            endpoint = _locked(endpoint_id)
            check(endpoint)
            new = {
                name: value for name, value in wanted.items() if getattr(endpoint, name) != value
            }
            if not new:
                return endpoint
            fresh = FRESH if wanted["enabled"] else {}
            for name, value in {**new, **fresh}.items():
                setattr(endpoint, name, value)
            endpoint.save(update_fields=[*new, *fresh])
            _record("webhook.change", endpoint, actor, fields=sorted(new))
    except IntegrityError as error:
        raise _taken(wanted["name"]) from error
    return endpoint


def endpoint_rotate(
    *, endpoint_id: int, actor: Actor, keep: timedelta = OLD_SECRET_KEPT
) -> WebhookEndpoint:
    """Give the endpoint a new secret, which is shown once.

    The old secret also signs for ``keep``; the one before it no longer does. Raises
    EndpointNotFoundError.
    """
    with transaction.atomic():
        endpoint = _locked(endpoint_id)
        endpoint.old_secret = endpoint.secret if keep else ""
        endpoint.old_secret_until = timezone.now() + keep if keep else None
        endpoint.secret = secret_new()
        endpoint.save(update_fields=["secret", "old_secret", "old_secret_until"])
        _record("webhook.rotate", endpoint, actor)
    return endpoint


def endpoint_remove(*, endpoint_id: int, actor: Actor) -> None:
    """Remove the endpoint with its deliveries. Raises EndpointNotFoundError."""
    with transaction.atomic():
        endpoint = endpoint_get(endpoint_id, WebhookEndpoint.objects.select_for_update())
        _record("webhook.remove", endpoint, actor)
        endpoint.delete()


def endpoint_disable(*, endpoint_id: int, reason: str) -> None:
    """Stop sending to the endpoint and show staff the reason; pending deliveries wait."""
    with transaction.atomic():
        endpoint = _locked(endpoint_id)
        if not endpoint.enabled:
            return
        endpoint.enabled = False
        endpoint.disabled_reason = reason
        endpoint.save(update_fields=["enabled", "disabled_reason"])
        _record("webhook.disable", endpoint, SYSTEM)
    logger.error("Webhook endpoint %s (%s) was disabled. %s", endpoint_id, endpoint, reason)


def endpoint_get(
    endpoint_id: int, rows: QuerySet[WebhookEndpoint] | None = None
) -> WebhookEndpoint:
    """Return the endpoint, from ``rows`` if they are given. Raises EndpointNotFoundError."""
    rows = WebhookEndpoint.objects.all() if rows is None else rows
    endpoint = rows.filter(pk=endpoint_id).first()
    if endpoint is None:
        raise EndpointNotFoundError(f"There is no endpoint {endpoint_id}.")
    return endpoint


def endpoint_check(
    *,
    name: str,
    url: str,
    event_types: Collection[str],
    chat_ids: Collection[UUID] | None,
    rules: addresses.AddressRules,
    resolve: bool = True,
) -> None:
    """Check the fields of an endpoint. Raises EndpointError if one isn't valid.

    ``resolve``: also refuse a host that resolves to a private network now.
    """
    if not name.strip() or len(name.strip()) > MAX_NAME_LENGTH or not name.isprintable():
        text = _("An endpoint needs a name of 1 to %(most)s printable characters.")
        raise EndpointError(text % {"most": MAX_NAME_LENGTH}, "name")
    unknown = sorted(set(event_types) - set(EVENT_TYPES))
    if unknown:
        text = _("There is no event %(unknown)s. Events are %(known)s.")
        names = {"unknown": ", ".join(unknown), "known": ", ".join(EVENT_TYPES)}
        raise EndpointError(text % names, "event_types")
    if chat_ids is not None and not chat_ids:
        raise EndpointError(_("A bound endpoint needs at least one chat."), "chats")
    if resolve:
        try:
            addresses.url_checked(url, rules)
        except addresses.AddressError as error:
            raise EndpointError(translate_error(error_text(error)), "url") from error


def endpoints_failing(*, now: datetime) -> Sequence[WebhookEndpoint]:
    """Return the endpoints that need attention.

    These have failed for five minutes or more, or were disabled because of failures.
    """
    failing = Q(enabled=True, failing_since__lte=now - timedelta(minutes=5))
    return list(WebhookEndpoint.objects.filter(failing | ~Q(disabled_reason="")))


def _taken(name: str) -> EndpointError:
    text = _("There is an endpoint %(name)s already.")
    return EndpointError(text % {"name": repr(name.strip())}, "name")


def _locked(endpoint_id: int) -> WebhookEndpoint:
    return endpoint_get(endpoint_id, WebhookEndpoint.objects.select_for_update(no_key=True))


def _ordered(event_types: Collection[str]) -> list[str]:
    return [name for name in EVENT_TYPES if name in event_types]


def _record(action: str, endpoint: WebhookEndpoint, actor: Actor, **details: Any) -> None:
    """Record the change in the audit log, without the URL, which may hold a token."""
    audit_record(
        action,
        actor,
        "webhook endpoint",
        endpoint.pk,
        events=endpoint.event_types or "all",
        bound=endpoint.chat_ids is not None,
        **details,
    )


# Secrets and signatures, as Standard Webhooks defines them.


# People and scanners for leaked secrets recognise a secret by this prefix.
MARK = "whsec_"
BYTES = 32


def secret_new() -> str:
    return MARK + base64.b64encode(secrets.token_bytes(BYTES)).decode()


def signature(*, keys: Iterable[str], message_id: str, timestamp: int, body: bytes) -> str:
    """Return the header ``webhook-signature``: one signature for each secret."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    decoded = (base64.b64decode(key.removeprefix(MARK)) for key in keys)
    macs = (hmac.digest(secret, signed, "sha256") for secret in decoded)
    return " ".join(f"v1,{base64.b64encode(mac).decode()}" for mac in macs)
