"""The lock after failed logins: the names and addresses that django-axes counts, and its response.

Of a typed name only a keyed mark is stored, because people type passwords there. No other typed
text is stored.
"""

import ipaddress
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from axes.backends import AxesStandaloneBackend
from axes.handlers.proxy import AxesProxyHandler
from axes.helpers import get_client_ip_address, get_client_username
from axes.models import AccessAttempt
from axes.signals import user_locked_out
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_login_failed
from django.db import transaction
from django.db.models import Max, QuerySet, Sum
from django.db.models.signals import pre_save
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from memoryproject.foundation.admin_kit.display import shown_mark
from memoryproject.foundation.admin_kit.staff_admin import ReadOnlyAdmin
from memoryproject.foundation.audit.audit_events import (
    Actor,
    audit_key,
    audit_record,
    staff_actor,
    typed_name_mark,
)
from memoryproject.staff_site.models import FailedLogin

V6_PREFIX = 64


class LockoutBackend(AxesStandaloneBackend):  # type: ignore[misc]
    """Refuses locked-out users. Without a request nobody can be locked out."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> None:
        if request is not None:
            super().authenticate(request, username=username, password=password, **kwargs)


def name_mark(name: str) -> str:
    """Return the mark that is stored of a typed name. The login form also normalises to NFKC."""
    return typed_name_mark(audit_key(), unicodedata.normalize("NFKC", name))


def typed_name(request: HttpRequest, credentials: Mapping[str, Any] | None = None) -> str:
    """Return the name of the login attempt, for django-axes."""
    typed = credentials if credentials else request.POST
    return name_mark(str(typed.get("username") or ""))


def client_address(request: HttpRequest) -> str | None:
    """Return the address of a client behind TRUSTED_PROXIES proxies, for django-axes.

    Each proxy appends the address of its peer to X-Forwarded-For; any client can write the values
    further left. A user of one IPv6 address has its whole network, so the network counts.
    """
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
    hops = [*(hop.strip() for hop in forwarded if hop.strip()), request.META.get("REMOTE_ADDR", "")]
    return _network(hops[max(0, len(hops) - 1 - settings.TRUSTED_PROXIES)])


def _network(hop: str) -> str | None:
    """Return the network of an address, without the port that some proxies add."""
    host = hop[1:].partition("]")[0] if hop.startswith("[") else hop
    if host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        network = ipaddress.ip_network((address.packed, V6_PREFIX), strict=False)
        return str(network.network_address)
    return str(address)


def lock_holds(request: HttpRequest, username: str) -> bool:
    """Return whether this name is locked from the address of the request.

    If so, the middleware responds with the lock page, whatever the view returns.
    """
    if AxesProxyHandler.is_allowed(request, {"username": username}):
        return False
    request.axes_locked_out = True  # type: ignore[attr-defined]
    request.axes_credentials = {"username": username}  # type: ignore[attr-defined]
    return True


def failure_count(request: HttpRequest, username: str, step: str) -> None:
    """Count a wrong password or code outside of the login form.

    It counts for the lock like a failed login, and is in the audit log. ``step``: password or code.
    """
    credentials = {"username": username, "step": step}
    user_login_failed.send(__name__, credentials=credentials, request=request)


def locked_page(
    request: HttpRequest,
    original_response: HttpResponse | None = None,
    credentials: Mapping[str, Any] | None = None,
) -> HttpResponse:
    """Return the response during a lock, for django-axes.

    It is the same whether or not an account with that name exists.
    """
    attempts = AccessAttempt.objects.filter(
        username=get_client_username(request, dict(credentials or {})),
        ip_address=get_client_ip_address(request),
    )
    last = attempts.aggregate(last=Max("attempt_time"))["last"] or timezone.now()
    left = (last + lock_lasts() - timezone.now()).total_seconds()
    minutes = max(1, -(-int(left) // 60))
    context = {"minutes": minutes, "failures": settings.LOGIN_FAILURES}
    answer = render(request, "admin/access/locked.html", context, status=429)
    answer["Retry-After"] = str(minutes * 60)
    return answer


def lock_lasts() -> timedelta:
    return timedelta(minutes=settings.LOGIN_LOCK_MINUTES)


def attempts_that_count(now: datetime) -> QuerySet[AccessAttempt]:
    """Return the failures that are recent enough to count."""
    return AccessAttempt.objects.filter(attempt_time__gt=now - lock_lasts())


def failures_by_pair(now: datetime) -> list[tuple[str | None, str | None, int]]:
    """Return the number of failures of each pair of name mark and address, the most first."""
    pairs = attempts_that_count(now).values("username", "ip_address").order_by()
    counted = pairs.annotate(failures=Sum("failures_since_start")).order_by("-failures")
    return list(counted.values_list("username", "ip_address", "failures"))


def pairs_locked(now: datetime) -> set[tuple[str | None, str | None]]:
    """Return the mark of each locked name, with the address from which it is locked."""
    limit = settings.LOGIN_FAILURES
    return {(mark, where) for mark, where, count in failures_by_pair(now) if count >= limit}


def names_by_mark() -> dict[str, str]:
    """Return the names of all accounts by their marks, to show whose login failed."""
    names = get_user_model()._default_manager.values_list("username", flat=True)
    return {name_mark(name): name for name in names}


@transaction.atomic
def login_unlock(*, attempts: Iterable[AccessAttempt], actor: Actor) -> int:
    """Unlock the names from the addresses of these failures.

    Returns how many pairs of name and address were unlocked.
    """
    pairs = {(attempt.username, attempt.ip_address) for attempt in attempts}
    freed = 0
    for mark, address in sorted(pairs, key=str):
        gone, _ = AccessAttempt.objects.filter(username=mark, ip_address=address).delete()
        if gone:
            freed += 1
            _record("login.unlock", actor, mark or "")
    return freed


@receiver(pre_save, sender=AccessAttempt, dispatch_uid="failed_login_typed")
def _keep_nothing_typed(instance: AccessAttempt, **_: Any) -> None:
    """Stop django-axes from storing posted values with a failure.

    It leaves out only fields whose names it knows. Each page has other names, and a forgotten one
    would put a password into the database.
    """
    instance.get_data = instance.post_data = ""


@receiver(user_locked_out, dispatch_uid="audit_login_locked")
def _locked(request: HttpRequest, **_: Any) -> None:
    """Record the beginning of a lock. Attempts during it are refused without being counted."""
    if getattr(request, "axes_failures_since_start", None) is None:
        return
    mark = get_client_username(request, getattr(request, "axes_credentials", None))
    _record("login.locked", Actor("system"), mark)


def _record(action: str, actor: Actor, mark: str) -> None:
    name = names_by_mark().get(mark)
    user = get_user_model()._default_manager.filter(username=name).first() if name else None
    audit_record(action, actor, "user" if user else "typed name", user.pk if user else mark)


# The list of failed logins that count for a lock, and the action that lifts a lock.


class FailedLoginAdmin(ReadOnlyAdmin):
    list_display = (
        "attempt_time",
        "shown_name",
        "ip_address",
        "failures_since_start",
        "shown_lock",
    )
    fields = ("attempt_time", "shown_name", "ip_address", "user_agent", "failures_since_start")
    actions = ("unlock",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[FailedLogin]:
        recent = attempts_that_count(timezone.now()).values("pk")
        return FailedLogin.objects.filter(pk__in=recent).order_by("-attempt_time")

    def complete_rows(self, request: HttpRequest, rows: Iterable[Any]) -> None:
        names, locked = names_by_mark(), pairs_locked(timezone.now())
        for row in rows:
            row.shown_name = names.get(row.username or "", "")
            row.is_locked = (row.username, row.ip_address) in locked

    def has_unlock_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("dashboard.delete_failedlogin")

    @admin.action(description=gettext_lazy("Lift the lock"), permissions=["unlock"])
    def unlock(self, request: HttpRequest, queryset: QuerySet[FailedLogin]) -> None:
        freed = login_unlock(attempts=queryset, actor=staff_actor(request))
        text = ngettext(
            "%(count)d name can be tried again.", "%(count)d names can be tried again.", freed
        )
        messages.success(request, text % {"count": freed})

    @admin.display(description=gettext_lazy("name"))
    def shown_name(self, row: Any) -> str:
        """Return the name if an account has it.

        Other texts are hidden: people type passwords there.
        """
        if not hasattr(row, "shown_name"):
            row.shown_name = names_by_mark().get(row.username or "", "")
        return row.shown_name or _("a name that nobody has")

    @admin.display(description=gettext_lazy("state"))
    def shown_lock(self, row: Any) -> str:
        return shown_mark(_("locked"), "bad") if row.is_locked else shown_mark(_("not locked"))
