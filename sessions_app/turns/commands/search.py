"""/search <words>: search memories and messages."""

from __future__ import annotations

from memories_app.models import Memory
from memoryproject.foundation.integrations.embedders.base import Embedder
from sessions_app.conversations.facade import text_for
from sessions_app.models import Turn
from sessions_app.models.roles import reading_role
from sessions_app.recall.facade import CLIENT_NAME, Hit, Viewer, hit_record, recall
from sessions_app.turns.commands.replies import numbered, say, short_ids, system_text
from sessions_app.turns.draft import Draft
from sessions_app.turns.turn_dependencies import AnswerRules

MAX_COUNT = 10
# A person who searches reads the list: one hit too many is better than one too few.
LOWER_BAR = 0.5


def search_reply(*, turn: Turn, words: str, embedder: Embedder, rules: AnswerRules) -> Draft:
    """Return the memories that match the words, and the messages of this chat that match them."""
    language = turn.chat.language
    if not words:
        return say("search_usage", language)
    found = recall(
        query=words,
        viewer=Viewer(reading_role(turn.user_role, turn.context), turn.chat_id),
        embedder=embedder,
        top_k=MAX_COUNT,
        min_similarity=rules.min_similarity * LOWER_BAR,
    )
    if found.hits:
        text = text_for("search_found", language, lines=_lines(found.hits, turn))
    else:
        text = text_for("search_none", language)
    if found.degraded:
        text += "\n\n" + text_for("search_degraded", language)
    keys = (hit.id if hit.source == "memory" else None for hit in found.hits)
    draft = system_text(text, listed=dict(enumerate(keys, start=1)))
    # An erasure finds the messages that it lists by this record.
    draft.recalled = [hit_record(hit) for hit in found.hits if hit.source != "memory"]
    return draft


def _lines(hits: list[Hit], turn: Turn) -> str:
    language = turn.chat.language
    ids = short_ids([hit.id for hit in hits if hit.source == "memory"])
    public = set(
        Memory.objects.filter(pk__in=ids, visibility="public").values_list("pk", flat=True)
    )
    lines = []
    for number, hit in enumerate(hits, start=1):
        if hit.source == "memory":
            marks = [ids[hit.id]]
            if hit.id in public:
                marks.append(text_for("mark_public", language))
            if client := hit.metadata.get(CLIENT_NAME):
                marks.append(text_for("mark_of_chat", language, who=client))
        else:
            marks = [text_for("mark_said", language, day=f"{hit.created_at:%Y-%m-%d}")]
        lines.append(numbered(number, hit.content, marks))
    return "\n".join(lines)
