"""Scopes, API tokens, stored responses of idempotent calls, and call counts."""

from datetime import datetime, timedelta

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.leases import LeasedWork

# The scopes of a token, and the admin permissions that correspond to them.


READ = "read"
WRITE = "write"
FORGET = "forget"
AUDIT = "audit"
SCOPES = (READ, WRITE, FORGET, AUDIT)
# In a view's ``scopes``: for every caller, whatever it may do.
ANY = "any"

SCOPE_HELP = {
    READ: _("read conversations, memories, cards and replays, and recall"),
    WRITE: _("say something in a chat, store and change"),
    FORGET: _("delete and erase, with a receipt"),
    AUDIT: _("read and verify the audit log"),
}

# Staff who use the API with their session have a scope if they have all of its permissions.
STAFF_PERMISSIONS = {
    READ: ("sessions_app.view_message", "memories_app.view_memory"),
    WRITE: ("sessions_app.change_chat", "memories_app.change_memory"),
    FORGET: ("sessions_app.forget",),
    AUDIT: ("audit.view_auditevent",),
}


class ApiToken(models.Model):
    """The right to use the API.

    The secret itself isn't stored. ``digest`` is its SHA-256, and ``prefix`` is its beginning, by
    which people distinguish tokens.

    ``chat_ids``: the chats that it is bound to; None: it isn't bound and may access all chats.
    ``resource``: the address at which it is valid, for the access token of an OAuthGrant; empty: it
    is valid everywhere.
    """

    name = models.CharField(_("name"), max_length=100, help_text=_("Description."))
    prefix = models.CharField(_("prefix"), max_length=16, editable=False)
    digest = models.CharField(_("digest"), max_length=64, unique=True, editable=False)
    scopes = ArrayField(
        models.CharField(max_length=16), verbose_name=_("scopes"), help_text=", ".join(SCOPES)
    )
    chat_ids = ArrayField(models.UUIDField(), verbose_name=_("chat ids"), null=True, blank=True)
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)
    created_by = models.CharField(_("created by"), max_length=255, blank=True, editable=False)
    expires_at = models.DateTimeField(_("expires at"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked at"), null=True, blank=True, editable=False)
    last_used_at = models.DateTimeField(
        _("last used at"), null=True, blank=True, editable=False, help_text=_("To the minute.")
    )
    resource = models.CharField(
        _("resource"), max_length=500, blank=True, db_default="", editable=False
    )

    class Meta:
        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(scopes__contained_by=list(SCOPES)) & Q(scopes__len__gt=0),
                name="api_scopes_known",
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def is_expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now


class OAuthClient(models.Model):
    """An application that registered itself (RFC 7591). It may do nothing by that.

    ``metadata``: what it said of itself, and the id that it was given. A secret isn't stored.
    """

    client_id = models.CharField(_("client id"), max_length=36, primary_key=True)
    metadata = models.JSONField(_("metadata"))
    created_at = models.DateTimeField(_("created at"), default=timezone.now)

    class Meta:
        verbose_name = _("OAuth client")
        verbose_name_plural = _("OAuth clients")
        indexes = [models.Index(fields=["created_at"])]

    def __str__(self) -> str:
        return self.client_id


class OAuthGrant(models.Model):
    """The consent of a staff member that an application uses this server.

    ``token`` is what it may do: the row's secret is the access token of the moment, which each
    refresh replaces. ``scopes``: what was consented to; an access token may have fewer.
    ``digest``: of the code, or after the application has ``redeemed`` it, of the refresh token;
    ``ends_at``: until when that is valid. The code belongs to ``challenge`` and ``redirect_uri``
    (``redirect_named``: whether the application named it). ``spent``: digests of the code and of
    the refresh tokens that were used; whoever sends one again has stolen it, or was stolen from.
    """

    token = models.OneToOneField(
        ApiToken, models.CASCADE, primary_key=True, related_name="grant", verbose_name=_("token")
    )
    client = models.ForeignKey(OAuthClient, models.CASCADE, verbose_name=_("client"))
    scopes = ArrayField(models.CharField(max_length=16), verbose_name=_("scopes"))
    digest = models.CharField(_("digest"), max_length=64, unique=True)
    redeemed = models.BooleanField(_("redeemed"), default=False)
    challenge = models.CharField(_("challenge"), max_length=128)
    redirect_uri = models.TextField(_("redirect address"))
    redirect_named = models.BooleanField(_("redirect address was named"))
    spent = ArrayField(models.CharField(max_length=64), default=list, verbose_name=_("spent"))
    ends_at = models.DateTimeField(_("ends at"))

    class Meta:
        verbose_name = _("OAuth grant")
        verbose_name_plural = _("OAuth grants")

    def __str__(self) -> str:
        return f"{self.token}"


class IdempotentAnswer(LeasedWork):
    """The response to a call with an Idempotency-Key, to be repeated for duplicate calls.

    ``key_hash`` and ``request_hash`` are keyed hashes, because clients may put any text into keys.
    Until ``status`` is set, the lease's owner is executing the call. ``withheld``: data was
    forgotten during the call or later, so the response isn't stored.
    """

    # Longer than any call takes. On the same machine, a dead owner is detected at once.
    lease_length = timedelta(minutes=10)

    caller = models.CharField(_("caller"), max_length=64)
    key_hash = models.CharField(_("key hash"), max_length=64)
    request_hash = models.CharField(_("request hash"), max_length=64)
    created_at = models.DateTimeField(_("created at"), default=timezone.now)
    status = models.PositiveSmallIntegerField(_("status"), null=True)
    content_type = models.CharField(_("content type"), max_length=64, blank=True)
    headers = models.JSONField(_("headers"), default=dict)
    body = models.TextField(_("body"), blank=True)
    withheld = models.BooleanField(_("withheld"), default=False)

    class Meta:
        verbose_name = _("idempotent answer")
        verbose_name_plural = _("idempotent answers")
        constraints = [
            models.UniqueConstraint(fields=["caller", "key_hash"], name="one_answer_a_key")
        ]
        indexes = [models.Index(fields=["created_at"])]

    def __str__(self) -> str:
        return f"{self.caller} {self.status or 'in progress'}"


class CallCount(models.Model):
    """The number of calls of one kind that a caller made in a minute.

    The table is unlogged: counting causes no disk writes, and a crash loses the counts.
    """

    caller = models.CharField(_("caller"), max_length=64)
    kind = models.CharField(_("kind"), max_length=16)
    minute = models.BigIntegerField(_("minute"), help_text=_("Minutes since 1970."))
    calls = models.PositiveIntegerField(_("calls"))

    class Meta:
        verbose_name = _("call count")
        verbose_name_plural = _("call counts")
        constraints = [
            models.UniqueConstraint(fields=["caller", "kind", "minute"], name="one_count_a_minute")
        ]

    def __str__(self) -> str:
        return f"{self.caller} {self.kind}: {self.calls}"
