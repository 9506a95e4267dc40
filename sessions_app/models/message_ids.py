"""The token in a provider's id of a message, which is the same whichever identity stands before it.

An id of the Cloud API is ``wamid.`` and base64 of some bytes: the identity of the person, which is
the phone or the BSUID, and the token. One message may arrive with the one in its id, and be edited,
revoked or quoted with the other. A token is compared within a chat only: whoever writes a message
chooses it.
"""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import F, Q, Value
from django.db.models.lookups import Exact, IsNull

# Made by migration 0002, which says how an id is read.
FUNCTION = "sessions_app_message_token"


def message_token(message_id: Any) -> models.Func:
    """Return the token of an id, which is an expression; null where it has none."""
    return models.Func(message_id, function=FUNCTION, output_field=models.TextField())


def token_index(field: str, name: str) -> models.Index:
    """Return the index for ``has_token_of``."""
    return models.Index(
        message_token(F(field)), name=name, condition=Q(IsNull(message_token(F(field)), False))
    )


def has_token_of(field: str, message_id: Any) -> Q:
    """Return the condition that an id has the same token as this id (a text or an expression)."""
    given = Value(message_id) if isinstance(message_id, str) else message_id
    return Q(Exact(message_token(F(field)), message_token(given)))
