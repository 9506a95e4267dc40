"""Our accounts at the providers: which of them are refused, by what the providers said last."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.utils import timezone

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.configured import service_target
from memoryproject.foundation.integrations.whatsapp import events, registry
from memoryproject.foundation.outside_services import models
from sessions_app.turns.statuses import HELD, put_off

MAX_COUNTED = 1_000


@dataclass(frozen=True)
class Refusal:
    """A provider that refuses our account: ``why``, and how many answers wait for it to accept it.

    ``numbers``: those of ours that it is about, where we have several.
    """

    why: str
    since: datetime
    waiting: int = 0
    numbers: tuple[str, ...] = ()


def accounts_refused() -> dict[str, Refusal]:
    """Return the providers that refuse our account, by name; two queries."""
    found: dict[str, Refusal] = {}
    sick = {service.name: service for service in models.services_sick() if _refuses_us(service)}
    for provider, record in registry.PROVIDERS.items():
        service = sick.get(record.service)
        if service is not None:
            found[provider] = Refusal(service.error, service.sick_since or service.changed_at)
    columns = ("provider", "number_id", "error", "created_at")
    waiting = list(put_off().order_by("-id").values_list(*columns)[:MAX_COUNTED])
    for provider in dict.fromkeys(row[0] for row in waiting if row[2].code == HELD):
        of_provider = [row for row in waiting if row[0] == provider]
        held = [row for row in of_provider if row[2].code == HELD]
        numbers = {number for _, number, *_ in held}.intersection(registry.numbers_if_several())
        begun = [created_at for *_, created_at in held]
        if provider in found:
            begun.append(found[provider].since)
        found[provider] = Refusal(
            held[0][2].params["why"], min(begun), len(of_provider), tuple(sorted(numbers))
        )
    return found


def _refuses_us(service: models.OutsideService) -> bool:
    """Return whether a service that is left alone refuses our account; it may also be down."""
    code, params = getattr(service.error, "code", ""), getattr(service.error, "params", {})
    # A healthy server's refusal: see posting.py.
    return code == "account_state" or (code == "service_status" and int(params["status"]) < 500)


def account_reported(*, event: events.Notice) -> None:
    """Take note of what the provider says of our account; what is held follows where it is well."""
    record = registry.PROVIDERS[event.provider]
    if event.accepts is None:
        return
    error = "" if event.accepts else ErrorText("account_state", state=event.state)
    target = service_target(getattr(settings, record.url_setting))
    models.service_reported(record.service, target, error)
    if event.accepts:
        # The programs that answer find it themselves.
        put_off().filter(provider=event.provider).update(not_before=timezone.now())
