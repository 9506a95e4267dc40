"""The handling of error codes, by Meta's "Error codes" of the WhatsApp Business Platform.

The code decides, never the text. The HTTP status decides only where the code is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

_DAY = 86_400.0


@dataclass(frozen=True)
class Policy:
    """The handling of a failed request; the fields are those of SendError."""

    permanent: bool = False
    alert: bool = False
    retry_after: float | None = None
    outcome_unknown: bool = False


_GIVE_UP = Policy(permanent=True)
# Held: the message is sent once staff have mended our account or its token.
_STAFF = Policy(permanent=True, alert=True)
_BACK_OFF = Policy()

_BY_CODE: dict[int, Policy] = {
    0: _STAFF,  # the token is not valid
    1: _BACK_OFF,  # unknown, "try again"
    2: _BACK_OFF,  # service down for a while
    3: _STAFF,  # no permission for the call
    4: Policy(retry_after=60.0),  # calls of the app
    10: _STAFF,  # permission missing
    33: _STAFF,  # the phone number id is gone
    100: _GIVE_UP,  # a parameter is wrong
    190: _STAFF,  # the token has expired
    368: _STAFF,  # blocked for violating policies
    80007: Policy(retry_after=60.0),  # calls of the account
    130429: Policy(retry_after=5.0),  # throughput of the number: slow down for all
    130472: _GIVE_UP,  # the person is part of an experiment
    130497: _GIVE_UP,  # not allowed to write to people of that country
    131000: _BACK_OFF,  # something went wrong
    131005: _STAFF,  # access denied
    131008: _GIVE_UP,  # a parameter is missing
    131009: _GIVE_UP,  # a parameter's value is wrong
    131016: _BACK_OFF,  # service unavailable
    131021: _GIVE_UP,  # sender and recipient are the same
    131026: _GIVE_UP,  # undeliverable
    131030: _GIVE_UP,  # a test number may only write to listed recipients
    131031: _STAFF,  # account locked
    131037: _STAFF,  # the number's display name isn't approved
    131042: _STAFF,  # billing
    131045: _STAFF,  # the number's registration
    131047: _GIVE_UP,  # the 24-hour window is closed
    131048: Policy(permanent=True, alert=True),  # too many were reported as spam
    131049: Policy(retry_after=_DAY),  # "healthy ecosystem": not before a day has passed
    131050: _GIVE_UP,  # the person doesn't want it
    131051: _GIVE_UP,  # type of message
    131056: Policy(retry_after=6.0),  # pair rate: about one in six seconds to one person
    131057: Policy(retry_after=60.0),  # account in maintenance
    133010: _STAFF,  # the number is not registered
}


def policy_for(code: int | None, status: int | None = None, *, transient: bool = False) -> Policy:
    """Return the policy for an error that the provider reported.

    ``code`` is the Graph error's, None where the answer held no Graph error. ``status`` is the HTTP
    status. ``transient`` is the Graph error's own ``is_transient``.
    """
    if code is not None and code in _BY_CODE:
        return _BY_CODE[code]
    if code is not None and 200 <= code <= 299:
        return _STAFF  # Meta's range of missing permissions
    if status == 429 or transient:
        return _BACK_OFF
    if status in (401, 403):
        return _STAFF
    if status is not None and status >= 500:
        # A Graph error states that the request failed. A bare 5xx may come from a proxy in front of
        # a server that carried it out.
        return _BACK_OFF if code is not None else Policy(outcome_unknown=True)
    return _GIVE_UP
