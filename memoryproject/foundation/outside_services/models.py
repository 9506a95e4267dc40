"""The state of each outside service's circuit breaker, shared by all processes."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import ClassVar

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.choices import labelled
from memoryproject.foundation.errors.stored_errors import ErrorField
from memoryproject.foundation.outside_services.guards import PAUSE_SECONDS


class ServiceName(models.TextChoices):
    CHAT_MODEL = labelled("chat_model", _("Chat model"))
    EMBEDDER = labelled("embedder", _("Embedder"))
    TRANSCRIBER = labelled("transcriber", _("Transcription"))
    WHATSAPP_CLOUD = labelled("whatsapp_cloud", _("WhatsApp Cloud API"))
    WHATSAPP_GREEN = labelled("whatsapp_green", _("Green API"))
    MEDIA_STORAGE = labelled("media_storage", _("Bucket of files"))


class BreakerState(models.TextChoices):
    """The states of a circuit breaker."""

    CLOSED = labelled("closed", _("working"))
    OPEN = labelled("open", _("not answering"))
    HALF_OPEN = labelled("half-open", _("being tried again"))


class OutsideService(models.Model):
    """A service at one address; another model or address is another service.

    ``failures`` counts those since the last success. ``sick_since``: when the breaker opened after
    the last success. ``opened_at``: when it was last opened. ``trial_until``: until then the one
    process that tries the service again may take. ``learned``: what the server accepts (see
    server_traits.py).
    """

    name = models.CharField(_("name"), max_length=32, choices=ServiceName.choices)
    target = models.CharField(_("target"), max_length=300)
    state = models.CharField(
        _("state"), max_length=16, choices=BreakerState.choices, default=BreakerState.CLOSED
    )
    failures = models.PositiveIntegerField(_("failures"), default=0)
    error = ErrorField(_("error"), blank=True)
    sick_since = models.DateTimeField(_("sick since"), null=True, blank=True)
    opened_at = models.DateTimeField(_("opened at"), null=True, blank=True)
    trial_until = models.DateTimeField(_("trial until"), null=True, blank=True)
    changed_at = models.DateTimeField(_("changed at"), default=timezone.now)
    # Processes of an earlier version, which don't know it, go on storing rows.
    learned = models.JSONField(_("learned"), default=dict, db_default={}, blank=True)

    class Meta:
        verbose_name = _("outside service")
        verbose_name_plural = _("outside services")
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["name", "target"], name="one_row_a_service")
        ]

    def __str__(self) -> str:
        return f"{self.get_name_display()} ({self.target})"


def services_try_again(names: Collection[str]) -> None:
    """Let the next call of these services try them, without waiting for the pause's end."""
    paused = OutsideService.objects.filter(name__in=names).exclude(state=BreakerState.CLOSED)
    paused.update(
        opened_at=timezone.now() - timedelta(seconds=PAUSE_SECONDS),
        trial_until=None,
        state=BreakerState.OPEN,
    )


def service_reported(name: str, target: str, error: str) -> None:
    """Record that a service has told us that it refuses us, and why; "": that it accepts us."""
    now = timezone.now()
    service, _made = OutsideService.objects.get_or_create(name=name, target=target[:300])
    if error:
        service.sick_since = service.sick_since or now
    else:
        service.sick_since = service.trial_until = None
    service.state = BreakerState.OPEN if error else BreakerState.CLOSED
    service.opened_at = now if error else None
    service.failures, service.error, service.changed_at = 0, error, now
    service.save()


def service_well_since(name: str) -> datetime | None:
    """Return when the service was well again; None where it is sick, or has failed since."""
    last = OutsideService.objects.filter(name=name).order_by("-changed_at").first()
    if last is None or last.state != BreakerState.CLOSED or last.error:
        return None
    return last.changed_at


def services_sick() -> list[OutsideService]:
    """Return the services that are paused or being tried again."""
    sick = OutsideService.objects.exclude(state=BreakerState.CLOSED)
    return list(sick.order_by("name", "target"))
