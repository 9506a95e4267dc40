"""The statements that read what a recall found, compiled once in a process.

They decide again who may see it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import (
    BinaryField,
    Case,
    DateTimeField,
    Func,
    Model,
    OuterRef,
    QuerySet,
    Subquery,
    TextField,
    UUIDField,
    Value,
    When,
)
from django.db.models.expressions import Combinable
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce, NullIf

from memories_app.models import MemoryEmbedding, ProposalKind, ProposalMemory, ProposalState
from memories_app.search.facade import memories_visible
from memoryproject.foundation.compiled_sql import Given, compiled, given_ids
from sessions_app.models import Chat, MessageEmbedding
from sessions_app.recall.conversation_lines import messages_held


@cache
def memory_read(*, is_owner: bool, is_staff: bool, in_chat: bool, as_of: bool) -> str:
    """Return how hits are read from the memories that a viewer may see.

    For the owner each is read with the name of its chat, "" where that is the viewer's own.
    ``as_of``: as they were on a day.
    """
    visible = memories_visible(
        is_owner=is_owner,
        is_staff=is_staff,
        chat_id=Given("chat_id", UUIDField()) if in_chat else None,
        now=Given("now", DateTimeField()),
        as_of=Given("now", DateTimeField()) if as_of else None,
    )
    vector = _vector(MemoryEmbedding, "memory")
    read = visible.filter(pk__in=given_ids("ids")).order_by()
    client = _client(in_chat=in_chat) if is_owner else Value("")
    read = read.values_list(
        "pk",
        "content",
        "created_at",
        "type",
        client,
        "chat_id",
        "source",
        "said_at",
        "valid_from",
        "valid_until",
        ArraySubquery(_newer()),
        vector,
    )
    return compiled(read)


def _newer() -> QuerySet[Any]:
    """Return the ids of the newer memories of which staff are asked whether they replace it."""
    open_ones = ProposalMemory.objects.filter(
        number=1,
        proposal__kind=ProposalKind.REPLACE,
        proposal__state=ProposalState.OPEN,
        proposal__parts__memory=OuterRef("pk"),
    )
    return open_ones.exclude(memory=OuterRef("pk")).values_list("memory_id")


def _client(*, in_chat: bool) -> Combinable:
    """Return the name of a memory's chat: the one that staff gave, else WhatsApp's, or its id."""
    chats = Chat.objects.filter(pk=OuterRef("chat_id"))
    if in_chat:
        chats = chats.exclude(pk=Given("chat_id", UUIDField()))
    named = [NullIf(name, Value("")) for name in ("staff_name", "client_name")]
    return Coalesce(Subquery(chats.values_list(Coalesce(*named, "whatsapp_chat"))), Value(""))


@cache
def message_read() -> str:
    """Return how lines are read from the messages of a chat that may be recalled there."""
    visible = messages_held()
    vector = Case(
        When(pk__in=given_ids("hits"), then=_vector(MessageEmbedding, "message")), default=None
    )
    read = visible.filter(pk__in=given_ids("ids")).order_by()
    read = read.values_list(
        "pk",
        "content",
        "role",
        "timestamp",
        "session_id",
        "order_num",
        KT("metadata__sender_name"),
        vector,
    )
    return compiled(read)


def _vector(vectors: type[Model], key: str) -> Subquery:
    """Return the vector of a row as bytes, NULL without one."""
    own = vectors._default_manager.filter(
        **{key: OuterRef("pk")}, model=Given("model", TextField())
    )
    sent = Func("vector", function="vector_send", output_field=BinaryField())
    return Subquery(own.values_list(sent))
