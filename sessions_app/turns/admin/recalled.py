"""What an answer recalled, what it would recall now, and the nearest that it didn't use."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from memories_app.models import Memory
from memories_app.models.memories import MemoryStatus
from memoryproject.foundation.retrieval.fragments import MARK
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.models import Chat, Message, Turn, TurnReplay
from sessions_app.person.person_recall import PERSON
from sessions_app.presentation.links import conversation_address, message_address
from sessions_app.presentation.message_forms import OF_MEMORIES
from sessions_app.recall.facade import MEMORIES, NEAREST, Viewer, hit_record, recall
from sessions_app.turns import compose_prompt, turn_dependencies
from sessions_app.turns.dependencies import build_turn_dependencies

Stored = TypeVar("Stored", Memory, Message)
FORGOTTEN, CHANGED, OUT_OF_USE = "forgotten", "changed", "out_of_use"


@dataclass(frozen=True)
class RecalledRow:
    """One recalled text.

    ``fate``: what happened to it since, empty for nothing. ``link`` leads to it, ``source_link`` to
    the message that it comes from. ``score`` and ``similarity`` are in [0, 1], or None. ``memory``:
    the memory as it is today. ``is_nearest``: it was below the threshold. ``client``: the person in
    the chat that it came from.
    """

    place: int
    key: str
    source: str
    content: str
    score: float | None
    similarity: float | None
    said_on: datetime | None
    in_prompt: bool
    is_nearest: bool = False
    fate: str = ""
    link: str = ""
    source_link: str = ""
    memory: Memory | None = None
    client: str = ""
    around: Sequence[str] = ()

    @property
    def kind(self) -> str:
        return {
            "memory": _("Memory"),
            "message": _("Message"),
            "cards": _("Earlier conversation"),
            PERSON: _("About the person"),
        }.get(self.source, self.source)

    @property
    def is_memory(self) -> bool:
        return self.source in OF_MEMORIES

    @property
    def score_width(self) -> int:
        return _hundredths(self.score)

    @property
    def similarity_width(self) -> int:
        return _hundredths(self.similarity)

    @property
    def fate_words(self) -> str:
        return {
            FORGOTTEN: _("erased since"),
            CHANGED: _("says something else today"),
            OUT_OF_USE: _("no longer in use"),
        }.get(self.fate, "")

    @property
    def is_gone(self) -> bool:
        return self.fate == FORGOTTEN

    @property
    def can_be_corrected(self) -> bool:
        """Say whether the memory may be edited: one that was superseded is history."""
        return self.memory is not None and self.memory.status != MemoryStatus.SUPERSEDED


def recalled_rows(entries: Iterable[dict[str, Any]]) -> list[RecalledRow]:
    """Return the rows of a replay record; the number of queries doesn't grow with the rows."""
    listed = list(entries)
    of_memories = ("content_hash", "status", "chat_id", "source_message_id")
    memories = _stored(Memory, listed, OF_MEMORIES, *of_memories)
    messages = _stored(Message, listed, ("message",), "chat_id", "revoked_at")
    chats = Chat.objects.in_bulk({memory.chat_id for memory in memories.values()} - {None})
    rows = [_row(place, entry, memories, messages) for place, entry in enumerate(listed, start=1)]
    return [
        replace(row, client=chats[row.memory.chat_id].shown_name)
        if row.memory is not None and row.memory.chat_id in chats
        else row
        for row in rows
    ]


def _row(
    place: int, entry: dict[str, Any], memories: dict[str, Memory], messages: dict[str, Message]
) -> RecalledRow:
    key = str(entry.get("id", ""))
    source = str(entry.get("source", ""))
    content = str(entry.get("content", ""))
    memory, message = memories.get(key), messages.get(key)
    if source in OF_MEMORIES:
        fate = _fate(memory, content)
        link, source_link = _memory_links(memory)
    elif source == "message":
        fate = _fate(message, content)
        link, source_link = message_address(message), ""
    else:
        fate, link, source_link = (FORGOTTEN if content == MARK else ""), "", ""
    return RecalledRow(
        place=place,
        key=key,
        source=source,
        content="" if fate == FORGOTTEN else content,
        score=_number(entry.get("score")),
        similarity=_number(entry.get("similarity")),
        said_on=parse_datetime(str(entry.get("created_at", ""))),
        in_prompt=bool(entry.get("in_prompt")),
        is_nearest=NEAREST in entry,
        fate=fate,
        link=link,
        source_link=source_link,
        memory=memory if source in OF_MEMORIES else None,
        around=() if fate == FORGOTTEN else _around(entry),
    )


def _around(entry: dict[str, Any]) -> list[str]:
    found = [entry[name] for name in ("before", "after") if isinstance(entry.get(name), dict)]
    return [str(each.get("content", "")) for each in found]


def _fate(stored: Memory | Message | None, content: str) -> str:
    """Return what has become of a recalled text, "" where it is as it was."""
    if stored is None or content == MARK or getattr(stored, "revoked_at", None) is not None:
        return FORGOTTEN
    if isinstance(stored, Memory) and stored.status != MemoryStatus.ACTIVE:
        return OUT_OF_USE
    return CHANGED if stored.content != content else ""


def _memory_links(memory: Memory | None) -> tuple[str, str]:
    if memory is None:
        return "", ""
    source = ""
    if memory.chat_id is not None and memory.source_message_id is not None:
        source = conversation_address(memory.chat_id, memory.source_message_id)
    return reverse("admin:memories_app_memory_change", args=[memory.pk]), source


def _stored(
    model: type[Stored], entries: Sequence[dict[str, Any]], sources: Sequence[str], *only: str
) -> dict[str, Stored]:
    """Return the rows that entries of these sources name, by their ids, with these columns."""
    named = [str(each.get("id")) for each in entries if each.get("source") in sources]
    keys = list(filter(None, map(uuid_or_none, named)))
    found = model._default_manager.filter(pk__in=keys).only("content", *only)
    return {str(row.pk): row for row in found}


def _hundredths(value: float | None) -> int:
    """Return the width of a bar in hundredths; a cosine may be below zero."""
    return round(min(max(value or 0.0, 0.0), 1.0) * 100)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


# Repeat the recall of a turn today and compare it with the recall at that time.


NEW, GONE, UP, DOWN, SAME = "new", "gone", "up", "down", "same"


def recall_now(turn: Turn) -> dict[str, Any]:
    """Repeat the recall of a turn with the rights that the turn's chat has today.

    Returns the lists of texts recalled ``then`` and ``now``, or why that is ``impossible``. Only
    the messages that could be recalled at that time count: those before the turn's message that
    its prompt didn't hold.
    """
    dependencies = build_turn_dependencies()
    message, question = turn.message, asked_again(turn)
    impossible = why_impossible(question, dependencies)
    if message is None or impossible:
        return {"impossible": impossible}
    found = compose_prompt.recall_today(message, turn=turn, dependencies=dependencies)
    hits: list[dict[str, Any]] = [hit_record(hit) for hit in found.hits]
    # Cards are chosen by time and not by the question.
    earlier = [
        entry
        for entry in TurnReplay.of(turn).recalled
        if entry.get("source") in ("memory", "message")
    ]
    rows = recalled_rows([*earlier, *hits])
    then = rows[: len(earlier)]
    now = [replace(row, place=place) for place, row in enumerate(rows[len(earlier) :], start=1)]
    return {
        "then": _compared(then, now, missing=GONE),
        "now": _compared(now, then, missing=NEW),
        "degraded": found.degraded,
    }


def asked_again(turn: Turn) -> str:
    """Return the question of the turn, empty where it isn't kept any more."""
    message = turn.message
    return "" if message is None or message.revoked_at is not None else message.content.strip()


def why_impossible(question: str, dependencies: turn_dependencies.Dependencies) -> str:
    """Return in words why nothing can be recalled for the question now, or an empty text."""
    if not question:
        return _("The question isn't kept any more, so it can't be asked.")
    if not dependencies.rules.longterm_enabled:
        return _("Long-term memory is off (LONGTERM_ENABLED).")
    return ""


def _compared(
    rows: Sequence[RecalledRow], others: Sequence[RecalledRow], *, missing: str
) -> list[dict[str, Any]]:
    """Return the rows, each with the change of its place since the other list.

    ``missing``: the change of those that aren't in the other list.
    """
    words = {NEW: _("new"), GONE: _("not recalled today"), SAME: _("unchanged")}
    places = {row.key: row.place for row in others}
    compared = []
    for row in rows:
        other = places.get(row.key)
        if other is None or other == row.place:
            change = missing if other is None else SAME
        else:
            change = UP if row.place < other else DOWN
        moved = _("was no. %(n)d") % {"n": other or 0}
        compared.append({"row": row, "change": change, "words": words.get(change, moved)})
    return compared


# The memories that an answer didn't use, though they were the nearest to its question.

SHOWN_NEAREST = 5


def near_misses(turn: Turn) -> dict[str, Any]:
    """Ask the turn's question again, with the rights that its chat has today and no threshold.

    What is near is computed now, among today's memories: a replay holds only what was used.
    Returns the nearest that were ``found`` and weren't used, best first; a memory is used from
    ``threshold`` on, and one that is ``strong`` would be now. Or why that is ``impossible``.
    """
    dependencies = build_turn_dependencies()
    question = asked_again(turn)
    if impossible := why_impossible(question, dependencies):
        return {"impossible": impossible}
    entries = TurnReplay.of(turn).recalled
    used = {str(entry.get("id")) for entry in entries if entry.get("source") in OF_MEMORIES}
    found = recall(
        query=question,
        viewer=Viewer(user_role=dependencies.chat_memory.role_in(turn.chat), chat_id=turn.chat_id),
        embedder=dependencies.embedder,
        top_k=SHOWN_NEAREST + len(used),
        min_similarity=0.0,
        sources=(MEMORIES,),
        # The person waits for the page.
        repeats=True,
    )
    hits = [hit for hit in found.hits if str(hit.id) not in used][:SHOWN_NEAREST]
    threshold = dependencies.rules.min_similarity
    rows = recalled_rows([hit_record(hit) for hit in hits])
    found_now = []
    for row, hit in zip(rows, hits, strict=True):
        strong = hit.score >= threshold
        words = _("would be used now") if strong else _("too weak to be used")
        found_now.append({"row": row, "strong": strong, "words": words})
    return {"found": found_now, "threshold": threshold, "degraded": found.degraded}
