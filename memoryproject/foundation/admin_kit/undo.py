"""Let staff take back what they just did, by a button in the message that reports it.

The button holds all that the reversal needs, signed: nothing is stored for it.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any

from django.contrib import messages
from django.core import serializers, signing
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _

from memoryproject.foundation.admin_kit.staff_pages import OwnPage, page_back, rights_required

# The page shows the button for ten seconds; one that is pressed at the last moment still counts.
VALID_SECONDS = 60
_SALT = "undo"


class UndoError(Exception):
    """It can't be taken back any more. The text says why, for staff."""


Reversal = Callable[[HttpRequest, Any], object]
_REVERSALS: dict[str, tuple[Reversal, tuple[str, ...], tuple[type[Exception], ...]]] = {}


def reverses(
    name: str, *rights: str, errors: tuple[type[Exception], ...] = ()
) -> Callable[[Reversal], Reversal]:
    """Register what takes an action back, with the rights for it.

    It may raise UndoError, or one of ``errors``, whose texts are for staff, too.
    """

    def register(reversal: Reversal) -> Reversal:
        _REVERSALS[name] = reversal, rights, (UndoError, *errors)
        return reversal

    return register


def undo_offer(request: HttpRequest, done: object, name: str, data: object) -> None:
    """Report what was done, with a button. ``data``: what the reversal gets, as JSON knows it.

    Without a ``name`` it can't be taken back. The template of messages makes the button.
    """
    token = signing.dumps([request.user.pk, name, data], salt=_SALT, compress=True) if name else ""
    messages.success(request, str(done), extra_tags=token)


def undo_view(request: HttpRequest) -> HttpResponse:
    """Take back what the posted token says, for the same user; all of it or nothing."""
    back = HttpResponseRedirect(page_back(request, reverse("admin:index")))
    try:
        token = request.POST.get("token", "")
        user, name, data = signing.loads(token, salt=_SALT, max_age=VALID_SECONDS)
    except signing.BadSignature:
        messages.warning(request, _("It is too late to undo this."))
        return back
    reversal, rights, errors = _REVERSALS[name]
    rights_required(request, *rights)
    if user != request.user.pk:
        raise PermissionDenied
    try:
        reversal(request, data)
    except errors as error:
        messages.warning(request, str(error))
    else:
        messages.success(request, _("It is undone."))
    return back


UNDO_PAGES = {"undo": OwnPage("undo/", undo_view, "POST")}


def rows_kept(rows: Iterable[Model]) -> Any:
    """Return rows as JSON knows them, for ``rows_of``; times to the microsecond."""
    fields = serializers.serialize("python", rows)
    return json.loads(json.dumps(fields, default=lambda value: value.isoformat()))


def rows_of(kept: Iterable[Any]) -> list[Any]:
    """Return the unsaved rows; ``save`` of each stores it as it was, ``object`` is the row."""
    return list(serializers.deserialize("python", kept))
