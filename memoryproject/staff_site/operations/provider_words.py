"""The meaning of a provider's error, and what to do about it, for staff."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from django.utils.translation import gettext as _

from memoryproject.foundation.integrations.whatsapp.base import SendError
from memoryproject.foundation.tables import read_table

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise


class Advice(NamedTuple):
    """Advice on an error: ``what`` is wrong, and ``todo``, what to do about it."""

    what: str | _StrPromise
    todo: str | _StrPromise


BY_CODE = {
    table: {code: Advice(row["what"], row["todo"]) for row in rows for code in row["codes"]}
    for table, rows in read_table(__file__, "provider_words.yaml").items()
}
# Meta's range of missing permissions.
BY_CODE["cloud"].update(dict.fromkeys(range(200, 300), BY_CODE["cloud"][10]))


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
    return BY_CODE["states"].get(state, unknown)
