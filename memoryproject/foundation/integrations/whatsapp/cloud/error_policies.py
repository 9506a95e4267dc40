"""The handling of error codes, by Meta's "Error codes" of the WhatsApp Business Platform.

The code decides, never the text. The HTTP status decides only where the code is unknown.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Policy:
    """The handling of a failed request; the fields are those of SendError.

    ``meaning``: what the code says, for readers of the table.
    """

    meaning: str = field(default="", compare=False)
    permanent: bool = False
    alert: bool = False
    retry_after: float | None = None
    outcome_unknown: bool = False


_GIVE_UP = Policy(permanent=True)
# Held: the message is sent once staff have mended our account or its token.
_STAFF = Policy(permanent=True, alert=True)
_BACK_OFF = Policy()
_BY_CODE = {
    int(code): Policy(**row)
    for code, row in json.loads(
        Path(__file__).with_name("error_policies.json").read_text(encoding="utf-8")
    ).items()
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
