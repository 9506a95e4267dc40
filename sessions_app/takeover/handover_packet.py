"""What staff need to know who take over a chat in which the client needs a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from memories_app.models import Memory, MemoryStatus, Visibility
from memoryproject.foundation.text.characters import cut_at_word
from sessions_app.conversations.chat_queries import handovers_open
from sessions_app.embedding.facade import embedder
from sessions_app.models import Chat, Turn
from sessions_app.models.chats import GODFATHER
from sessions_app.models.turns import HANDOVER
from sessions_app.recall.facade import MEMORIES, Viewer, recall

TRIES, FACTS = 3, 5
# One fact too many is better than one too few for who reads them.
LOWER_BAR = 0.5
MAX_SHOWN = 300
REASONS = {
    "asked": gettext_lazy("The client asked for a person."),
    "failed": gettext_lazy("The client said three times that the answer was none."),
    "limit": gettext_lazy("The assistant may not answer this client any more today."),
    "model": gettext_lazy("The model called for a person."),
}


@dataclass(frozen=True)
class Packet:
    """``tried``: the last questions with their answers. ``known``: what is stored of the client.

    ``withheld``: what the owner knows about it and a client is never told.
    """

    reason: Any
    wanted: str
    tried: Sequence[tuple[str, str]]
    known: Sequence[str]
    withheld: Sequence[str]


def handover_packet(request: HttpRequest, chat: Chat) -> Packet | None:
    """Return the packet until a person has answered the client, else None.

    Memories are in it for staff who may see them.
    """
    waiting = handovers_open().filter(chat=chat).select_related("message").order_by("-id")
    turn = waiting.first()
    if turn is None or turn.message is None:
        return None
    turns = Turn.objects.filter(chat=chat, by_hand=False, message__isnull=False)
    turns = turns.select_related("message", "reply").order_by("-id")
    before = turns.filter(id__lt=turn.pk, message__revoked_at=None)[:TRIES]
    tried = [(_short(each.message), _short(each.reply)) for each in reversed(before)]
    known: Sequence[str] = ()
    withheld: Sequence[str] = ()
    if request.user.has_perm("memories_app.view_memory"):
        own = Memory.objects.filter(chat_id=chat.pk, status=MemoryStatus.ACTIVE)
        known = list(own.order_by("-created_at").values_list("content", flat=True)[:FACTS])
        withheld = _withheld(chat, [*(question for question, _ in tried), _short(turn.message)])
    return Packet(
        reason=REASONS.get(turn.context[HANDOVER], ""),
        wanted=_short(turn.message),
        tried=tried,
        known=[cut_at_word(text, MAX_SHOWN) for text in known],
        withheld=withheld,
    )


def _withheld(chat: Chat, questions: Sequence[str]) -> list[str]:
    """Return the owner's own memories about what the client asked."""
    found: dict[Any, str] = {}
    for question in filter(None, questions):
        hits = recall(
            query=question,
            viewer=Viewer(GODFATHER, chat.pk),
            embedder=embedder(),
            top_k=FACTS,
            min_similarity=LOWER_BAR,
            sources=(MEMORIES,),
        ).hits
        found |= {hit.id: cut_at_word(hit.content, MAX_SHOWN) for hit in hits}
    owners = Memory.objects.filter(pk__in=found, visibility=Visibility.OWNER)
    return [found[key] for key in owners.values_list("pk", flat=True)][:FACTS]


def _short(message: Any) -> str:
    return cut_at_word(message.content.strip(), MAX_SHOWN) if message is not None else ""
