"""The meaning of a provider's error, and what to do about it, for staff."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memoryproject.foundation.integrations.whatsapp.base import SendError

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise


class Advice(NamedTuple):
    """Advice on an error: ``what`` is wrong, and ``todo``, what to do about it."""

    what: str | _StrPromise
    todo: str | _StrPromise


_TOKEN = Advice(
    gettext_lazy("Meta does not accept the access token: it is wrong or has expired."),
    gettext_lazy(
        "Make a permanent token of a system user with whatsapp_business_messaging, put it into "
        ".env as WHATSAPP_CLOUD_ACCESS_TOKEN, and start the server again."
    ),
)
_RIGHTS = Advice(
    gettext_lazy("The access token may not do this."),
    gettext_lazy(
        "Give the system user the rights whatsapp_business_messaging and "
        "whatsapp_business_management on this account, and make a new token."
    ),
)
_NUMBER = Advice(
    gettext_lazy("Meta does not know this phone number id, or the token may not see it."),
    gettext_lazy(
        "Copy the phone number ID (not the number) from WhatsApp → API setup into "
        "WHATSAPP_CLOUD_PHONE_NUMBER_ID, and start the server again."
    ),
)
_LATER = Advice(
    gettext_lazy("There were too many calls or messages for the moment."),
    gettext_lazy("Wait a minute and try again."),
)
_WINDOW = Advice(
    gettext_lazy("This person has not written to you in the last 24 hours."),
    gettext_lazy("Write something to your business's number from that phone, then try again."),
)
_DOWN = Advice(
    gettext_lazy("The provider has trouble of its own."),
    gettext_lazy("Wait a few minutes and try again; see the provider's status page."),
)
_UNREGISTERED = Advice(
    gettext_lazy("The phone number is not registered for the Cloud API."),
    gettext_lazy("Register it under WhatsApp → API setup."),
)
_CLOUD: dict[int, Advice] = {
    # Meta's range of missing permissions, and further ones.
    **dict.fromkeys((*range(200, 300), 3, 10, 131005), _RIGHTS),
    **dict.fromkeys((0, 190), _TOKEN),
    **dict.fromkeys((33, 100), _NUMBER),
    **dict.fromkeys((4, 80007, 130429, 131056), _LATER),
    **dict.fromkeys((1, 2, 131000, 131016), _DOWN),
    **dict.fromkeys((131045, 133010), _UNREGISTERED),
    131047: _WINDOW,
    131026: Advice(
        gettext_lazy("This number can't be reached on WhatsApp."),
        gettext_lazy("Check the number; the phone needs a current WhatsApp."),
    ),
    131030: Advice(
        gettext_lazy("A test number may only write to numbers on its list."),
        gettext_lazy("Add the number under WhatsApp → API setup → To."),
    ),
    131042: Advice(
        gettext_lazy("There is a problem with how the account is paid."),
        gettext_lazy("Look into the payment settings of the WhatsApp Business account."),
    ),
    131031: Advice(
        gettext_lazy("The WhatsApp Business account is locked."),
        gettext_lazy("Look into Meta's Business Support for the reason."),
    ),
}
_GREEN: dict[int, Advice] = {
    401: Advice(
        gettext_lazy("Green API does not accept the token."),
        gettext_lazy(
            "Copy apiTokenInstance from the instance's console into GREEN_API_TOKEN, and start "
            "the server again."
        ),
    ),
    403: Advice(
        gettext_lazy("Green API knows no such instance, or it is not ours."),
        gettext_lazy("Copy idInstance and apiUrl from the instance's console."),
    ),
    404: Advice(
        gettext_lazy("Green API knows no such instance at this address."),
        gettext_lazy("Copy idInstance and apiUrl from the instance's console."),
    ),
    429: _LATER,
    466: Advice(
        gettext_lazy("The plan's quota of chats is used up."),
        gettext_lazy("Choose another plan in the console, or wait for the next month."),
    ),
}
BY_CODE = {"cloud": _CLOUD, "green": _GREEN}
STATES: dict[str, Advice] = {
    "notAuthorized": Advice(
        gettext_lazy("The instance is not connected to a phone."),
        gettext_lazy("Scan the QR code in the instance's console with WhatsApp on the phone."),
    ),
    "blocked": Advice(
        gettext_lazy("WhatsApp has blocked the number."),
        gettext_lazy("Only WhatsApp can lift this: see the app on the phone."),
    ),
    "sleepMode": Advice(
        gettext_lazy("The phone is switched off or was offline for long."),
        gettext_lazy("Switch it on and wait up to five minutes."),
    ),
    "starting": Advice(
        gettext_lazy("The instance is starting."),
        gettext_lazy("Wait up to five minutes and try again."),
    ),
    "yellowCard": Advice(
        gettext_lazy("WhatsApp has limited the number for a while."),
        gettext_lazy("Restart the instance in the console, and send less."),
    ),
}


def advice_for(provider: str, error: SendError, *, sends: bool) -> Advice:
    """Return advice for an error.

    It follows from the provider's code; without one, from how the connection ended. ``sends``: the
    test sent a message, instead of a query.
    """
    known = BY_CODE.get(provider, {}).get(error.code) if error.code is not None else None
    return known or _advice_without_code(error, sends)


def _advice_without_code(error: SendError, sends: bool) -> Advice:
    if error.code is None and not error.permanent and not error.outcome_unknown:
        return Advice(
            _("The provider can't be reached."),
            _("Check the address in the settings and this server's way to the internet."),
        )
    if error.outcome_unknown and not sends:
        return Advice(_("The provider did not answer in time."), _("Wait a minute and try again."))
    if error.outcome_unknown:
        return Advice(
            _("The provider did not answer in time: nobody knows whether it took the request."),
            _("Look at the phone before trying again."),
        )
    if error.alert:
        return Advice(
            _("The provider does not accept our credentials."),
            _("Compare the settings with the provider's console."),
        )
    return Advice(_("The provider refused it."), _("Its own words say why."))


def advice_for_state(state: str) -> Advice:
    """Return advice for a Green API instance that isn't authorized."""
    unknown = Advice(
        _("The instance is not ready."), _("Look into the instance's console for its state.")
    )
    return STATES.get(state, unknown)
