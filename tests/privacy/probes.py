"""Every way in which a person gets to read something, tried out by one of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from memoryproject.foundation.integrations.llm.base import ChatModelError, OfflineChatModel
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from sessions_app.models import ChatSession, Turn
from sessions_app.recall.facade import Viewer as RecallViewer, hit_record, recall
from tests.privacy.models import learn, sum_up, turns_put_on_record
from tests.privacy.oracle import Viewer
from tests.privacy.town import VIEWERS, Town, undone

# They change from one turn to the next, whoever asks. A long answer may begin within a time; the
# worth of a fence's mark in a summary comes from its digits.
CHANGING = re.compile(
    r'(?<="<)/?\w+-[0-9a-f]{12}>", [0-9.]+|'
    r"\w+-[0-9a-f]{12}\b|\d{4}-\d\d-\d\d \d\d:\d\d|"
    r"(It is|Written on) \w+, [-0-9]+ [0-9:]+|[-0-9: ]*[0-9](?= \(UTC\))"
)


@dataclass(frozen=True)
class Shown:
    """All that a probe brought to light. ``found``: the ids of what was recalled."""

    texts: list[str]
    found: set[UUID] = field(default_factory=set)

    @property
    def text(self) -> str:
        return "\n".join(self.texts)

    def comparable(self) -> list[str]:
        """Without what is different each time."""
        return [CHANGING.sub("…", text) for text in self.texts]


Probe = Callable[[Town, Viewer, str], Shown]


def recalling(town: Town, viewer: Viewer, query: str) -> Shown:
    """The one function behind all of them, with no bar at all."""
    hits = recall(
        query=query,
        viewer=RecallViewer(
            user_role="godfather" if viewer.is_godfather else "client",
            chat_id=town.chat(viewer.chat).pk,
        ),
        embedder=town.world.dependencies.embedder,
        top_k=100,
        min_similarity=0.0,
    ).hits
    return Shown([str(hit_record(hit)) for hit in hits], {hit.id for hit in hits})


def asking(town: Town, viewer: Viewer, query: str) -> Shown:
    """Two whole turns with a model that tells all that it was sent: the second one has the
    first one's answer behind it. And what is kept of them for the replay."""
    requests = town.world.dependencies.chat_model.requests  # type: ignore[attr-defined]
    seen = len(requests)
    texts = town.say(viewer, query)
    found: set[UUID] = set()
    turns = [Turn.objects.latest("id")]
    texts += town.say(viewer, "And what else is there?")
    turns.append(Turn.objects.latest("id"))
    for turn in turns:
        replay = turn.replay
        texts += [str(replay.prompt), str(replay.recalled), str(replay.left_out), turn.error]
        texts += turn.parts.values_list("content", flat=True)
        found |= {UUID(hit["id"]) for hit in turn.replay.recalled}
    for request in requests[seen:]:
        texts += [*(message.content for message in request.messages), *request.recalled]
    return Shown(texts, found)


def asking_offline(town: Town, viewer: Viewer, query: str) -> Shown:
    """A turn without a language model: what is remembered is recited."""
    return _with_model(town, viewer, query, OfflineChatModel())


def asking_a_broken_model(town: Town, viewer: Viewer, query: str) -> Shown:
    """A turn whose model fails: what is remembered is recited, too."""
    broken = ScriptedChatModel(lambda _: _fail())
    return _with_model(town, viewer, query, broken)


def _fail() -> str:
    raise ChatModelError("down", permanent=True)


def _with_model(town: Town, viewer: Viewer, query: str, model: Any) -> Shown:
    dependencies = town.world.dependencies
    town.world.dependencies = replace(dependencies, chat_model=model)
    try:
        texts = town.say(viewer, query)
    finally:
        town.world.dependencies = dependencies
    turn = Turn.objects.filter(replay__isnull=False).latest("id")
    return Shown(
        [*texts, str(turn.replay.recalled)], {UUID(hit["id"]) for hit in turn.replay.recalled}
    )


def commanding(name: str) -> Probe:
    """The command with the query as its argument."""

    def command(town: Town, viewer: Viewer, query: str) -> Shown:
        return Shown(town.say(viewer, f"/{name} {query}"))

    return command


def listing(town: Town, viewer: Viewer, _: str) -> Shown:
    """All pages of /memories, and one more than there are."""
    texts = town.say(viewer, "/memories")
    for page in ("1", "2", "3", "4", "99"):
        texts += town.say(viewer, f"/memories {page}")
    return Shown(texts)


def exporting(town: Town, viewer: Viewer, _: str) -> Shown:
    """All that somebody is told who asks for what is known about them."""
    return Shown(town.say(viewer, "/export"))


def reading_sessions(town: Town, viewer: Viewer, _: str) -> Shown:
    """What the service of conversations gives of the chat's sessions, summaries included."""
    service = town.world.rules.chat_memory
    texts = []
    for session in ChatSession.objects.filter(chat=town.chat(viewer.chat)).order_by("created_at"):
        texts += [one.content for one in service.get_messages(conversation_id=session.pk)]
        history = service.get_conversation_history(conversation_id=session.pk)
        texts += [one["content"] for one in history]
    return Shown(texts)


def asking_after_reset(town: Town, viewer: Viewer, query: str) -> Shown:
    """A turn in a new session."""
    first = Shown(town.say(viewer, "/reset"))
    rest = asking(town, viewer, query)
    return Shown([*first.texts, *rest.texts], rest.found)


def asking_without_memory(town: Town, viewer: Viewer, query: str) -> Shown:
    """A turn, and all commands, while memory is off for the chat."""
    chat = town.chat(viewer.chat)
    chat.memory_enabled = False
    chat.save()
    texts = asking(town, viewer, query).texts
    for command in ("/memories", "/export", f"/search {query}", f"/forget {query}"):
        texts += town.say(viewer, command)
    return Shown(texts)


def learning(town: Town, viewer: Viewer, query: str) -> Shown:
    """What the model of automatic extraction is sent of two turns, and what is made of its
    answer, while the turns of other chats wait to be learned from, too."""
    dependencies = town.world.dependencies
    turns_put_on_record(town.world)
    try:
        for other in [each for each in VIEWERS if each.chat != viewer.chat][:2]:
            theirs = [secret for secret in town.secrets if secret.chat == other.chat]
            town.say(other, theirs[0].text if theirs else "Nobody knows that")
        for text in (query, "And I pay my invoices on Fridays"):
            town.say(viewer, text)
    finally:
        town.world.dependencies = dependencies
    return Shown(learn(town.world, town.chat(viewer.chat)))


def summing_up(town: Town, viewer: Viewer, query: str) -> Shown:
    """What a model is sent that sums the chat's sessions up, what is stored of its answer, and
    the turn that is answered with it."""
    for text in (query, "And what else is there?"):
        town.say(viewer, text)
    texts = sum_up(town.world, town.chat(viewer.chat))
    texts += town.say(viewer, "Is that all?")
    # Not the replay: what was said just now is in it, by an id that is new each time.
    return Shown([*texts, str(Turn.objects.latest("id").replay.prompt)])


PROBES: dict[str, Probe] = {
    "recall": recalling,
    "a turn": asking,
    "a turn offline": asking_offline,
    "a turn with a broken model": asking_a_broken_model,
    "a turn after /reset": asking_after_reset,
    "a turn without memory": asking_without_memory,
    "/search": commanding("search"),
    "/forget": commanding("forget"),
    "/remember": commanding("remember"),
    "/memories": listing,
    "/export": exporting,
    "sessions": reading_sessions,
    "extraction": learning,
    "summary": summing_up,
}


def probe(town: Town, name: str, viewer: Viewer, query: str) -> Shown:
    """What the probe shows; nothing of it stays."""
    with undone():
        return PROBES[name](town, viewer, query)
