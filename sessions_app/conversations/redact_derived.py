"""Redact a text in the records that were derived from its message."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from memoryproject.foundation.retrieval.fragments import Fragments
from memoryproject.foundation.text.characters import cut_at_word, whole_places
from sessions_app.conversations.message_text import QUOTED
from sessions_app.conversations.phrases import holds_words
from sessions_app.models import (
    AnswerTrial,
    InboundDelivery,
    MediaFile,
    Message,
    Note,
    OutboundPart,
    Rule,
    Turn,
    TurnReplay,
)
from sessions_app.models.trials import TRIED_IDS
from sessions_app.models.turns import RECALLED_IDS, RULES_MET, turns_restart
from sessions_app.recall.facade import MAX_NEIGHBOUR_LENGTH

GONE = "[deleted by the sender]"
# The key of a delivery's change for the texts that a worker has still to redact.
REDACT = "redact"
# The rest is left to a worker, so that no webhook waits for it: characters, times the texts.
MAX_AT_ONCE = 1_000_000
# For so long a worker has the redaction; what it leaves when it dies is due again then.
WORK_LENGTH = timedelta(minutes=2)
RENEWED_AFTER = 50


def text_redact(*, message: Message, texts: Sequence[str]) -> dict[str, Any] | None:
    """Redact a message's texts, which are gone, in derived records.

    These are the raw deliveries about it, the replay of the turns that had it in their prompt,
    and the notes of staff. Trials of these answers are deleted.

    Returns the change with which the delivery orders a worker to redact the rest, or None.
    """
    if message.provider_message_id:
        deliveries_forget(
            provider=message.provider, provider_message_id=message.provider_message_id
        )
        _quotes_remove(message)
    later = Turn.objects.filter(chat_id=message.chat_id, created_at__gte=message.received_at)
    # A worker that answers with the text in its prompt loses the turn and starts again.
    turns_restart(later, attempts=F("attempts") - 1)
    return texts_redact(message=message, texts=texts)


def _quotes_remove(message: Message) -> None:
    """Remove the text where a later message of the chat quotes it."""
    quoting = Message.objects.filter(
        chat_id=message.chat_id,
        metadata__has_key=QUOTED,
        metadata__reply_to_id=message.provider_message_id,
        received_at__gte=message.received_at,
    )
    for each in quoting.only("metadata"):
        metadata = {key: value for key, value in each.metadata.items() if key != QUOTED}
        Message.objects.filter(pk=each.pk).update(metadata=metadata)


def texts_redact(*, message: Message, texts: Sequence[str]) -> dict[str, Any] | None:
    """Redact texts that a message had in replays and notes; see text_redact."""
    kept = [text for text in dict.fromkeys(texts) if text.strip()]
    if not kept:
        return None
    redactor = _Redactor(kept)
    sessions = {str(message.session_id)}
    for _ in _redacting(message.chat_id, message.received_at, sessions, redactor):
        if redactor.read * len(kept) > MAX_AT_ONCE:
            since = message.received_at.isoformat()
            return {REDACT: kept, "since": since, "session": str(message.session_id)}
    return None


def redactions_due(now: datetime) -> list[UUID]:
    """Return the chats in which a worker has still to redact texts, and none is at it."""
    due = InboundDelivery.objects.filter(retry_at__lte=now, change__has_key=REDACT)
    chats = due.filter(chat__isnull=False).order_by("chat_id")
    return list(chats.values_list("chat_id", flat=True).distinct())


def chat_redact(*, chat_id: UUID) -> int:
    """Redact what changes in this chat left to a worker; return how many of them.

    All of them take one pass over the replays.
    """
    now = timezone.now()
    with transaction.atomic():
        due = InboundDelivery.objects.filter(
            chat_id=chat_id, retry_at__lte=now, change__has_key=REDACT
        )
        taken = list(due.select_for_update(skip_locked=True).order_by("id"))
        ours = InboundDelivery.objects.filter(pk__in=[each.pk for each in taken])
        ours.update(retry_at=now + WORK_LENGTH)
    changes = [each.change for each in taken if each.change]
    if not changes:
        return 0
    redactor = _Redactor([text for change in changes for text in change[REDACT]])
    since = min(datetime.fromisoformat(change["since"]) for change in changes)
    sessions = {change["session"] for change in changes}
    for place, _ in enumerate(_redacting(chat_id, since, sessions, redactor), start=1):
        if place % RENEWED_AFTER == 0:
            ours.update(retry_at=timezone.now() + WORK_LENGTH)
    ours.update(retry_at=None, change=None)
    return len(changes)


def deliveries_forget(*, provider: str, provider_message_id: str) -> None:
    """Empty the raw deliveries about one message; their keys stay."""
    about = InboundDelivery.objects.filter(provider=provider, subject_id=provider_message_id)
    about.update(raw=None)
    about.exclude(change__has_key=REDACT).update(change=None)


def unstored_forget(turn: Turn) -> None:
    """Erase the message and the answer after the turn, since memory is off; the ids stay.

    So do those of the rules whose words it held, for the worker that lets them act.
    """
    if turn.provider_message_id:
        deliveries_forget(provider=turn.provider, provider_message_id=turn.provider_message_id)
    OutboundPart.objects.filter(turn=turn).update(content="")
    # Without a turn it is an order to remove the file.
    MediaFile.objects.filter(turn=turn).update(turn=None)
    context = {key: value for key, value in turn.context.items() if key != "media"}
    rules = Rule.objects.filter(is_on=True).exclude(words="") if turn.unstored_text else ()
    if met := [rule.pk for rule in rules if holds_words(turn.unstored_text, rule.words)]:
        context[RULES_MET] = met
    Turn.objects.filter(pk=turn.pk).update(unstored_text="", unstored_reply="", context=context)
    TurnReplay.objects.filter(turn=turn).update(prompt=[], recalled=[])


def _redacting(
    chat_id: UUID, since: datetime, sessions: set[str], redactor: "_Redactor"
) -> Iterator[None]:
    """Redact one record after the other, the newest first; the caller may stop between them."""
    # An answer may be made long after its turn began.
    later = Turn.objects.filter(Q(created_at__gte=since) | Q(finished_at__gte=since), chat=chat_id)
    replays = TurnReplay.objects.filter(turn__in=later).select_related("turn")
    rows = replays.only("prompt", "recalled", "left_out", "turn__session")
    for key in rows.order_by("-turn").values_list("pk", flat=True).iterator(chunk_size=1_000):
        _replay_redact(rows.filter(pk=key), sessions, redactor)
        yield
    for note in Note.objects.filter(chat=chat_id).only("text"):
        text = redactor.parts.quotes_cut(redactor.without_whole(note.text))
        if text != note.text:
            Note.objects.filter(pk=note.pk).update(text=text)
        yield


def _replay_redact(rows: QuerySet[TurnReplay], sessions: set[str], redactor: "_Redactor") -> None:
    replay = rows.first()
    if replay is None or not _changes(replay, sessions, redactor):
        return
    with transaction.atomic():
        # Another redaction may have changed it meanwhile.
        replay = rows.select_for_update(of=("self",), no_key=True).first()
        changes = _changes(replay, sessions, redactor) if replay else {}
        if replay and changes:
            TurnReplay.objects.filter(pk=replay.pk).update(**changes)
            AnswerTrial.objects.filter(turn=replay.pk).delete()


def _changes(replay: TurnReplay, sessions: set[str], redactor: "_Redactor") -> dict[str, Any]:
    """Return the fields of the replay that change, as they are without the texts."""
    prompt = [redactor.entry(entry) for entry in replay.prompt]
    recalled = [redactor.entry(entry) for entry in replay.recalled]
    left_out = replay.left_out
    passage = left_out.get("passage")
    if passage and str(replay.turn.session_id) in sessions:
        # A passage holds the beginnings of messages, and it is no longer known of which.
        prompt = [
            {**entry, "content": (entry["content"] or "").replace(passage, GONE)}
            for entry in prompt
        ]
        left_out = {**left_out, "passage": ""}
    fields = {"prompt": prompt, "recalled": recalled, "left_out": left_out}
    return {name: value for name, value in fields.items() if value != getattr(replay, name)}


class _Redactor:
    """Texts without some others, in time that grows with their length only.

    ``read`` counts the characters that were searched: equal texts, of which prompts consist
    mostly, are searched once.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        # A text may appear shortened, as the neighbour of a recalled message.
        short = [cut_at_word(text, MAX_NEIGHBOUR_LENGTH) for text in texts]
        self._texts = list(dict.fromkeys([*texts, *short]))
        # An answer that repeats it may appear there shortened, too.
        self.parts = Fragments(self._texts)
        self.read = 0
        self._text = lru_cache(maxsize=1_000)(self._searched)

    def entry(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Return an entry of a prompt or a recall without the texts."""
        cleaned = {**entry, "content": self._optional(entry["content"])}
        if "tool_calls" in entry:
            cleaned["tool_calls"] = [self._call(call) for call in entry["tool_calls"]]
        for name in ("before", "after"):
            if name in entry:
                cleaned[name] = self.entry(entry[name])
        return cleaned

    def without_whole(self, content: str) -> str:
        """Return the text without the others where they stand in it as they were written."""
        for text in self._texts:
            # What stands in the place of another text is not searched, or it could grow for ever.
            content = GONE.join(_without(piece, text) for piece in content.split(GONE))
        return content

    def _call(self, call: dict[str, Any]) -> dict[str, Any]:
        kind, given = ("custom", "input") if "custom" in call else ("function", "arguments")
        called = call.get(kind, {})
        return {**call, kind: {**called, given: self._optional(called.get(given))}}

    def _optional(self, content: str | None) -> str | None:
        """Return the text without the others; a call of a tool may have none."""
        return None if content is None else self._text(content)

    def _searched(self, content: str) -> str:
        self.read += len(content)
        content = self.without_whole(content)
        return GONE if self.parts.are_in(content) else content


def _without(content: str, text: str) -> str:
    places = whole_places(content, text)
    if places is None:
        return GONE
    kept: list[str] = []
    start = 0
    for place in places:
        kept += [content[start:place], GONE]
        start = place + len(text)
    return "".join(kept) + content[start:]


# Find the chats that a memory was exposed to, by answers, trials or lists that showed it.

_IN_REACH = f"""
SELECT DISTINCT turn.chat_id, told.id
FROM sessions_app_turnreplay AS replay
JOIN sessions_app_turn AS turn ON turn.id = replay.turn_id,
LATERAL jsonb_array_elements_text({RECALLED_IDS}) AS told (id)
WHERE ({RECALLED_IDS}) ?| %(keys)s AND told.id = ANY(%(keys)s)
UNION
SELECT turn.chat_id, told.id
FROM sessions_app_answertrial AS trial
JOIN sessions_app_turn AS turn ON turn.id = trial.turn_id,
LATERAL jsonb_array_elements_text({TRIED_IDS}) AS told (id)
WHERE ({TRIED_IDS}) ?| %(keys)s AND told.id = ANY(%(keys)s)
"""  # noqa: S608 constants only


def exposure_of(memory_ids: Iterable[UUID]) -> dict[UUID, set[UUID]]:
    """Return for each chat the memories, out of these, that may have been exposed to it."""
    keys = [str(key) for key in memory_ids]
    if not keys:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_IN_REACH, {"keys": keys})
        found = cursor.fetchall()
    where: dict[UUID, set[UUID]] = {}
    for chat_id, memory_id in found:
        where.setdefault(chat_id, set()).add(UUID(memory_id))
    return where
