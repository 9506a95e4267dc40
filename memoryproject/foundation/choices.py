"""Members of TextChoices with a translated label, and columns that hold only these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import CheckConstraint, Q, TextChoices

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise


def labelled(value: str, label: _StrPromise) -> str:
    """Return a TextChoices member: the same to Django as ``"value", _("Label")``.

    Use it as ``NAME = labelled("value", _("Label"))``. On Python 3.10 the type stubs of TextChoices
    give a member the type of the assigned value: a pair would not be accepted as a string.
    """
    pair: Any = (value, label)
    return pair


def known(field: str, choices: type[TextChoices], name: str) -> CheckConstraint:
    """Return the constraint that a column holds one of the choices."""
    return CheckConstraint(condition=Q(**{f"{field}__in": choices.values}), name=name)
