"""Redact the answers that derive from erased texts, with their replays, parts and trials.

An answer derives from a text by the turn's own record: the text was recalled for it, stood beside
a recalled one, was listed by it, was the message that it answers, or was said or retold before in
its session. Other answers are left alone, whatever they say. ``Fragments`` says what a derived
answer repeats of the text.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any
from uuid import UUID

from django.db.models import F, Func, IntegerField, JSONField, Q

from memories_app.models import Memory
from memoryproject.foundation.retrieval.fragments import MARK, Fragments, Kept, kept_sentences
from sessions_app.conversations.buttons import command_of
from sessions_app.conversations.message_store import FORM, TOOL_CALLS
from sessions_app.conversations.message_text import without_notice
from sessions_app.conversations.preview_recorder import ChangeKind
from sessions_app.forgetting.sweep import (
    BESIDE,
    ROWS_AT_ONCE,
    Lineage,
    Sweep,
    entries_of,
    names_removed,
    objects_named,
)
from sessions_app.models import (
    AnswerTrial,
    ExtractionWork,
    InboundDelivery,
    Message,
    OutboundPart,
    Turn,
    TurnReplay,
)
from sessions_app.models.messages import Role
from sessions_app.models.turns import WAITING_STATES
from sessions_app.recall.facade import CLIENT_NAME, SENDER_NAME

# The fields of a turn that hold texts.
TURN_TEXTS = ("context", "error", "unstored_text", "unstored_reply")
PICTURES = Func(
    F("replay__prompt"),
    template="jsonb_path_query_array(%(expressions)s, '$[*].pictures[*]')",
    output_field=JSONField(),
)
PROMPT_LINES = Func(F("replay__prompt"), function="jsonb_array_length", output_field=IntegerField())


class AnswerRedaction:
    """Redact what the turns of one chat derived from the erased texts, in their order.

    ``given`` are the turns that were given any of them, with the ids that carried them;
    ``redacted`` those in which something was redacted.
    """

    def __init__(self, sweep: Sweep, lineage: Lineage, chat_id: UUID) -> None:
        self._sweep = sweep
        self._lineage = lineage
        self._chat_id = chat_id
        # The former text of each rewritten message, by its role.
        self._replaced: dict[tuple[str, str], str] = {}
        self._own_words: dict[UUID, frozenset[str]] = {}
        self._commands = False
        self.given: dict[int, set[str]] = {}
        self.redacted: set[int] = set()

    def redact(self) -> None:
        """Redact all turns of the chat that were given an erased text, and their trials."""
        turns = Turn.objects.filter(chat=self._chat_id).exclude(by_hand=True)
        since = self._sweep.plan.since
        if since is not None:
            # An answer may be made long after its turn began.
            later = Q(created_at__gte=since) | Q(finished_at__gte=since)
            turns = turns.filter(later | Q(state__in=WAITING_STATES))
        found = turns.select_related("message", "reply", "replay")
        found = (
            found.defer("replay__prompt", "message__terms", "reply__terms")
            .annotate(pictures=PICTURES, lines=PROMPT_LINES)
            .order_by("id")
        )
        for turn in found.iterator(ROWS_AT_ONCE):
            seen = turn.pictures or () if turn.lines else None
            keys = self._lineage.given(turn, TurnReplay.of(turn), seen)
            if keys:
                self._redact_turn(turn, keys)
        if self._commands:
            # An earlier prompt may hold a command that was taken for a later one.
            for turn in Turn.objects.filter(pk__in=self.given).select_related("message", "reply"):
                self._redact_record(turn, TurnReplay.of(turn), self._fragments(self.given[turn.pk]))
        self._trials_delete()

    def left(self) -> Iterator[tuple[str, object, bool]]:
        """Read the given turns again: yield what is read, its id, and whether a trace is left."""
        for turn in Turn.objects.filter(pk__in=self.given).select_related("message", "reply"):
            found = self._fragments(self.given[turn.pk])
            replay = TurnReplay.of(turn)
            kept = self._kept(turn, replay)
            yield "turn", turn.pk, any(self._cleaned(turn, replay, found))
            texts = [("message", turn.reply_id, turn.reply.content)] if turn.reply else []
            texts += [("part", part.pk, part.content) for part in turn.parts.all()]
            for what, key, text in texts:
                yield what, key, bool(found.cut(text, kept)[1])

    def _redact_turn(self, turn: Turn, keys: set[str]) -> None:
        self.given[turn.pk] = keys
        found = self._fragments(keys)
        self._redact_command(turn)
        # Its card may have been taken out meanwhile.
        replay = TurnReplay.objects.filter(pk=turn.pk).first() or TurnReplay(turn=turn)
        is_changed = self._redact_record(turn, replay, found)
        kept = self._kept(turn, replay)
        removed = self._redact_reply(turn, found, kept)
        if self._redact_parts(turn, found, kept) or removed or is_changed:
            self.redacted.add(turn.pk)
            self._sweep.rewritten.add(str(turn.turn_id))
            self._sweep.recorder.record(ChangeKind.REPLAY, turn.pk)
            self._sweep.count_once(Turn, turn.pk)
        for work in ExtractionWork.objects.filter(turn=turn.pk).exclude(error=""):
            if found.are_in(work.error):
                ExtractionWork.objects.filter(pk=work.pk).update(error=MARK)
                self._sweep.count_once(ExtractionWork, work.pk)
        self._lineage.hand_on(turn, keys, removed)

    def _fragments(self, keys: set[str]) -> Fragments:
        return Fragments(text for key in keys for text in self._lineage.texts_by_id[key])

    def _kept(self, turn: Turn, replay: TurnReplay) -> Callable[[], Sequence[Kept]]:
        """Return what else the answer may have its words from: all else that it was given."""
        own = [turn.message.content] if turn.message is not None else []

        @cache
        def kept() -> list[Kept]:
            given = [entry.get("content") or "" for entry in [*replay.prompt, *replay.recalled]]
            listed = Memory.objects.filter(pk__in=replay.shown).values_list("content", flat=True)
            return kept_sentences([*given, *listed, *own])

        return kept

    def _redact_command(self, turn: Turn) -> None:
        """Redact a command that quotes a text which it listed, such as a /search."""
        message = turn.message
        if message is None or "command" not in message.metadata:
            return
        listed = self._fragments(self._lineage.listed(TurnReplay.of(turn)))
        if listed.are_in(message.content):
            before = message.content
            command_redact(self._sweep, message)
            self._replaced["user", before] = message.content
            self._own_words.pop(message.session_id, None)
            self._commands = True

    def _redact_record(self, turn: Turn, replay: TurnReplay, found: Fragments) -> bool:
        """Redact the turn and its replay; return whether there was anything to redact."""
        of_turn, of_replay = self._cleaned(turn, replay, found)
        if of_turn:
            Turn.objects.filter(pk=turn.pk).update(**of_turn)
        if of_replay:
            TurnReplay.objects.filter(pk=turn.pk).update(**of_replay)
        for row, fields in ((turn, of_turn), (replay, of_replay)):
            for name, value in fields.items():
                setattr(row, name, value)
        return bool(of_turn or of_replay)

    def _cleaned(
        self, turn: Turn, replay: TurnReplay, found: Fragments
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the fields of the turn and of its replay that change, without the texts."""
        wholes = {each["content"] for each in entries_of(replay.recalled) if self._goes(each)}
        if turn.session_id is not None:
            wholes |= self._sweep.summaries[turn.session_id]
        # A passage holds the beginnings of messages, and it is no longer known of which.
        passage = replay.left_out.get("passage", "")
        left_out = {**replay.left_out, "passage": ""} if passage else replay.left_out
        wholes = {each for whole in wholes | {passage} for each in (whole, without_notice(whole))}
        longest_first = sorted(wholes - {"", MARK}, key=len, reverse=True)
        texts = {
            _words(text) for key in self.given[turn.pk] for text in self._lineage.texts_by_id[key]
        }
        prompt = [self._line(turn, line, found, longest_first, texts) for line in replay.prompt]
        prompt = names_removed(prompt, replay.recalled, goes=self._goes)
        recalled = [self._recalled(entry, found) for entry in replay.recalled]
        of_turn = {name: found.cleaned(getattr(turn, name)) for name in TURN_TEXTS}
        of_replay = {"prompt": prompt, "recalled": recalled, "left_out": left_out}
        return _changed(turn, of_turn), _changed(replay, of_replay)

    def _line(
        self,
        turn: Turn,
        entry: dict[str, Any],
        found: Fragments,
        wholes: Sequence[str],
        texts: set[str],
    ) -> dict[str, Any]:
        """Return an entry of a prompt without the erased texts."""
        content = entry.get("content") or ""
        rest = found.cleaned({key: each for key, each in entry.items() if key != "content"})
        if "pictures" in entry:
            rest["pictures"] = [key for key in entry["pictures"] if key not in self._lineage.ids]
        if entry.get("role") == "system":
            for whole in wholes:
                content = content.replace(whole, MARK)
            content = found.quotes_cut(content, single_words=True)
        elif entry.get("role") == "user" and self._is_own(turn, content):
            pass
        elif (key := (str(entry.get("role")), content)) in self._replaced:
            content = self._replaced[key]
        elif _words(content) in texts:
            content = MARK
        else:
            content = found.quotes_cut(content)
        return {**rest, "content": content if content else entry.get("content")}

    def _is_own(self, turn: Turn, content: str) -> bool:
        """Return whether a line of a prompt is a message that stays; a group's names its author."""
        if turn.session_id is None:
            return False
        if turn.session_id not in self._own_words:
            messages = Message.objects.filter(session=turn.session_id, role=Role.USER)
            own = frozenset(messages.values_list("content", flat=True))
            self._own_words[turn.session_id] = own
        own = self._own_words[turn.session_id]
        return content in own or content.partition(": ")[2] in own

    def _goes(self, entry: dict[str, Any]) -> bool:
        key = entry.get("id") or entry.get("message_id")
        return str(key) in self._lineage.ids

    def _recalled(self, entry: dict[str, Any], found: Fragments) -> dict[str, Any]:
        """Return a recalled text, or a neighbour of one, as it may stay in the record."""
        entry = {**entry}
        if self._goes(entry):
            entry["content"] = MARK
            entry.pop(CLIENT_NAME, None)
            entry.pop(SENDER_NAME, None)
        elif entry.get("role") not in (None, Role.USER):
            text = entry["content"]
            replaced = self._replaced.get(("assistant", text))
            entry["content"] = replaced or found.quotes_cut(text)
        for name in BESIDE:
            if name in entry:
                entry[name] = self._recalled(entry[name], found)
        return entry

    def _redact_reply(
        self, turn: Turn, found: Fragments, kept: Callable[[], Sequence[Kept]]
    ) -> list[str]:
        """Redact the answer itself; return what was cut out of it."""
        reply = turn.reply
        if reply is None:
            return []
        left, removed = found.cut(reply.content, kept)
        if removed:
            self._replaced["assistant", reply.content] = left
            self._replaced["assistant", without_notice(reply.content)] = left
            self._sweep.retext(reply, ChangeKind.ANSWER, left)
            self._sweep.retold(self._chat_id, removed)
        form = reply.metadata.get(FORM, {})
        calls = form.get(TOOL_CALLS, [])
        cleaned = [_call_cleaned(call, found) for call in calls]
        if cleaned != calls:
            metadata = {**reply.metadata, FORM: {**form, TOOL_CALLS: cleaned}}
            Message.objects.filter(pk=reply.pk).update(metadata=metadata)
            self._sweep.count_once(Message, reply.pk)
        return removed

    def _redact_parts(
        self, turn: Turn, found: Fragments, kept: Callable[[], Sequence[Kept]]
    ) -> bool:
        """Redact the parts of the answer, and empty the webhooks' bodies that quote them."""
        is_changed = False
        for part in OutboundPart.objects.filter(turn=turn.pk):
            left, removed = found.cut(part.content, kept)
            if removed:
                is_changed = True
                self._sweep.recorder.record(ChangeKind.PART, part.pk, part.content, left=left)
                OutboundPart.objects.filter(pk=part.pk).update(content=left)
                self._sweep.count_once(OutboundPart, part.pk)
        ids = turn.parts.exclude(provider_message_id=None).values_list("provider_message_id")
        about = InboundDelivery.objects.filter(provider=turn.provider, subject_id__in=ids)
        holding = [each.pk for each in about if _quotes(found, each)]
        self._sweep.empty_deliveries(InboundDelivery.objects.filter(pk__in=holding))
        return is_changed

    def _trials_delete(self) -> None:
        """Delete the trials of redacted answers, and those that were given or quote a text."""
        texts = Fragments(self._sweep.plan.texts_by_chat[self._chat_id])
        trials = AnswerTrial.objects.filter(turn__chat=self._chat_id)
        gone = [
            (trial.pk, trial.turn_id)
            for trial in trials.only("turn_id", "recalled", "text").iterator(ROWS_AT_ONCE)
            if trial.turn_id in self.redacted
            or not self._lineage.ids.isdisjoint(objects_named(trial.recalled))
            or texts.are_in(trial.text)
        ]
        for key, turn_id in gone:
            self._sweep.recorder.record(ChangeKind.REPLAY, turn_id)
            self._sweep.count_once(AnswerTrial, key)
        AnswerTrial.objects.filter(pk__in=[key for key, _turn in gone]).delete()


def _changed(row: Turn | TurnReplay, fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value != getattr(row, name)}


def command_redact(sweep: Sweep, message: Message) -> None:
    """Redact the argument of a command such as /search or /forget."""
    command = command_of(message.content, in_group=message.chat.is_group)
    name = command.name if command else message.metadata["command"]
    sweep.retext(message, ChangeKind.COMMAND, f"/{name} {MARK}")
    sweep.empty_deliveries(InboundDelivery.objects.filter(message=message))


def _quotes(found: Fragments, delivery: InboundDelivery) -> bool:
    values = [delivery.raw, delivery.change]
    return bool(found.cleaned(values) != values)


def _words(text: str) -> str:
    return " ".join(text.casefold().split())


def _call_cleaned(call: Mapping[str, Any], found: Fragments) -> dict[str, Any]:
    """Return a call of a tool without the texts that the model wrote into its arguments."""
    kind = str(call.get("type") or "function")
    called = {
        name: each if name == "name" else found.cleaned(each)
        for name, each in call.get(kind, {}).items()
    }
    return {**call, kind: called}
