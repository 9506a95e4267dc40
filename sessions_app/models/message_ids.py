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

# A string is the byte 0x18, its length and its characters. The token is the last one, and a zero
# byte ends the whole. An id of any other layout has no token.
CREATE_FUNCTION = r"""
CREATE FUNCTION sessions_app_message_token(message_id text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $function$
    SELECT CASE WHEN ascii(found[1]) = length(found[2]) THEN found[2] END
    FROM (
        SELECT regexp_match(
            encode(decode(code || repeat('=', (4 - length(code) % 4) % 4), 'base64'), 'escape'),
            E'\x18(.)([0-9A-Za-z._:-]{8,127})(?:\\\\000)?$'
        ) AS found
        FROM (
            SELECT translate(rtrim(substr(message_id, 7), '='), '-_', '+/') AS code
            WHERE message_id ~ '^wamid\.[A-Za-z0-9+/_-]{16,248}={0,2}$'
        ) AS coded
        WHERE length(code) % 4 <> 1
    ) AS decoded
$function$
"""
DROP_FUNCTION = "DROP FUNCTION sessions_app_message_token(text)"


class MessageToken(models.Func):
    """The token of an id, or null."""

    function = "sessions_app_message_token"
    output_field: Any = models.TextField()
    arity = 1


def token_index(field: str, name: str) -> models.Index:
    """Return the index for ``has_token_of``."""
    return models.Index(
        MessageToken(F(field)), name=name, condition=Q(IsNull(MessageToken(F(field)), False))
    )


def has_token_of(field: str, message_id: Any) -> Q:
    """Return the condition that an id has the same token as this id (a text or an expression)."""
    given = Value(message_id) if isinstance(message_id, str) else message_id
    return Q(Exact(MessageToken(F(field)), MessageToken(given)))
