"""Members of TextChoices with a translated label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise


def labelled(value: str, label: _StrPromise) -> str:
    """``NAME = labelled("value", _("Label"))``, the same to Django as ``"value", _("Label")``.

    For Python 3.10 the type stubs of TextChoices give a member the type of what is assigned:
    a pair would not pass where a string belongs."""
    pair: Any = (value, label)
    return pair
