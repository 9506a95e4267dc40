"""Read the memories that a recall found, as hits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, QuerySet, Subquery, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce, NullIf

from memories_app.models import Memory, ProposalKind, ProposalMemory, ProposalState
from memories_app.search.facade import contents_then
from sessions_app.models import Chat
from sessions_app.models.roles import GODFATHER
from sessions_app.recall.fact_times import FactTimes
from sessions_app.recall.hits import Hit, Viewer
from sessions_app.recall.memory_labels import memory_about


def read_memories(
    visible: QuerySet[Memory],
    scores: Mapping[UUID, float],
    near: Mapping[UUID, float],
    *,
    viewer: Viewer,
    as_of: datetime | None,
) -> Iterator[Hit]:
    """Yield these memories in the order of ``scores``, as far as the viewer may see them now.

    ``visible``: those of them that the viewer may see. ``near``: the cosines that are known.
    ``as_of``: in their words of then.
    """
    rows = visible.order_by().values_list(
        "pk",
        "content",
        "created_at",
        "type",
        _client(viewer),
        "chat_id",
        "source",
        "said_at",
        "valid_from",
        "valid_until",
        ArraySubquery(_newer()),
    )
    found = {key: rest for key, *rest in rows}
    then = {} if as_of is None else contents_then(list(found), as_of)
    for key, score in scores.items():
        if key not in found:
            continue
        content, created_at, kind, client, chat, source, *times, newer = found[key]
        about = memory_about(
            kind,
            client=client,
            source=source,
            is_own=chat is not None and chat == viewer.chat_id,
            times=FactTimes(*times),
            newer=newer,
        )
        cosine = near.get(key)
        known = None if cosine is None or cosine != cosine else float(cosine)
        yield Hit("memory", key, then.get(key, content), score, known, created_at, about)


def _newer() -> QuerySet[Any]:
    """Return the ids of the newer memories of which staff are asked whether they replace it."""
    open_ones = ProposalMemory.objects.filter(
        number=1,
        proposal__kind=ProposalKind.REPLACE,
        proposal__state=ProposalState.OPEN,
        proposal__parts__memory=OuterRef("pk"),
    )
    return open_ones.exclude(memory=OuterRef("pk")).values_list("memory_id")


def _client(viewer: Viewer) -> Combinable:
    """Return the name of a memory's chat for the owner, "" for others and for the own chat.

    It is the name that staff gave, else WhatsApp's, or the chat's id.
    """
    if viewer.user_role != GODFATHER:
        return Value("")
    chats = Chat.objects.filter(pk=OuterRef("chat_id"))
    if viewer.chat_id is not None:
        chats = chats.exclude(pk=viewer.chat_id)
    named = [NullIf(name, Value("")) for name in ("staff_name", "client_name")]
    return Coalesce(Subquery(chats.values_list(Coalesce(*named, "whatsapp_chat"))), Value(""))
