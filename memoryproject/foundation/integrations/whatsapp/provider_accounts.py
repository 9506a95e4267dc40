"""Check our credentials with a provider. This sends no message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from memoryproject.foundation.integrations.whatsapp.cloud.client import error_of
from memoryproject.foundation.integrations.whatsapp.green.client import GreenProvider
from memoryproject.foundation.integrations.whatsapp.posting import Connection, answer_object

if TYPE_CHECKING:
    import httpx

CLOUD_FIELDS = ("display_phone_number", "verified_name", "quality_rating")
AUTHORIZED = "authorized"


@dataclass(frozen=True)
class Account:
    """An account that the provider recognises.

    ``ready``: it can send. ``state``: Green API's value, such as notAuthorized; empty for the Cloud
    API. ``facts``: the provider's details under its own names.
    """

    ready: bool
    state: str
    facts: dict[str, str]


def cloud_account(
    *,
    api_url: str,
    phone_number_id: str,
    access_token: str,
    timeout: float = 8.0,
    transport: httpx.BaseTransport | None = None,
) -> Account:
    """Return the Cloud API's details of our phone number. Raises SendError with Meta's code."""
    headers = {"Authorization": f"Bearer {access_token}"}
    response = Connection(timeout, transport, headers=headers).get_json(
        f"{api_url.rstrip('/')}/{quote(phone_number_id, safe='')}",
        {"fields": ",".join(CLOUD_FIELDS)},
    )
    if not response.is_success:
        raise error_of(response)
    answer = answer_object(response)
    facts = {name: answer.text(name) for name in CLOUD_FIELDS}
    return Account(True, "", {name: text for name, text in facts.items() if text})


def green_account(provider: GreenProvider) -> Account:
    """Return Green API's details of our instance. Raises SendError with the HTTP status as code."""
    state = provider.ask("getStateInstance").text("stateInstance")
    return Account(state == AUTHORIZED, state, {"stateInstance": state} if state else {})
