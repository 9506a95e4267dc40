"""Gather all that the replay page of an answer shows, with a constant number of queries."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _, pgettext_lazy

from memories_app.models import Memory
from memories_app.review.presentation import VISIBILITIES, memory_link, type_label
from memories_app.store.retract import EXTRACTION
from memoryproject.foundation.admin_kit.display import shown_mark, shown_table
from memoryproject.foundation.errors.stored_errors import translate_error
from memoryproject.foundation.integrations.llm.base import PICTURE_TOKENS
from memoryproject.foundation.text.characters import estimate_tokens
from sessions_app.extraction.facade import NOTHING_LEARNED, turn_with_merged
from sessions_app.models import ExtractionWork, Message, Turn, TurnReplay
from sessions_app.models.messages import AUTHOR, Role
from sessions_app.models.turns import APOLOGY_FOR, TurnState
from sessions_app.presentation.links import message_address
from sessions_app.presentation.message_kinds import SOMEBODY, kind_of, names_of, person_of
from sessions_app.turns.admin import state_labels, turn_filters
from sessions_app.turns.admin.recalled import recalled_rows
from sessions_app.turns.prompt import fence_split

UNANSWERED = (TurnState.PENDING, TurnState.RUNNING)
# Shown unfolded: the question with the messages just before it.
UNFOLDED = 2


@dataclass(frozen=True)
class Utterance:
    """A message, if it is still stored.

    ``gone`` says in words why there is no text.
    """

    kind: str
    text: str
    link: str = ""
    gone: str = ""

    @property
    def kind_shown(self) -> str:
        """Return what it is in words; empty for plain text."""
        kind = kind_of(self.kind)
        return str(kind.name) if kind else ""


@dataclass(frozen=True)
class PromptLine:
    """A message that went to the model.

    ``before``, ``data`` and ``after``: the text before the fence, the data inside it and the text
    after it, where the message has a fence. ``pictures``: the addresses of those that it came with.
    ``person``: the name of the chat's person, where it is known.
    """

    role: str
    tokens: int
    unfolded: bool
    before: str
    data: str = ""
    after: str = ""
    pictures: Sequence[str] = ()
    person: str = ""

    @property
    def role_shown(self) -> str:
        if self.role == Role.USER and self.person:
            return self.person
        return str(dict(Role.choices).get(self.role, self.role))


def replay_of(turn: Turn) -> dict[str, Any]:
    """Return a turn with everything that explains it.

    ``turn`` comes with its chat, message, reply and replay; the replay comes with its summary.
    """
    replay = TurnReplay.of(turn)
    spans = state_labels.spans_of(turn)
    recalled = recalled_rows(replay.recalled)
    learned, learning = ("", "") if turn.by_hand else learning_of(turn)
    return {
        "turn": turn,
        "record": replay,
        "question": None if turn.by_hand else question_of(turn),
        "answer": answer_of(turn),
        "author": _author(turn),
        "awaited": turn.state in UNANSWERED,
        "state": str(state_labels.STATES.get(turn.state, turn.state)),
        "state_class": state_labels.tone_of(turn),
        "means": state_labels.state_means(turn),
        "trouble": state_labels.trouble_means(turn),
        "merged_into": _merged_into(turn),
        "prompt": prompt_lines(replay.prompt, person=person_of(turn.chat)),
        "recalled": recalled,
        "kept": sum(row.in_prompt for row in recalled),
        "left_out": _left_out(replay.left_out),
        "passage": str(replay.left_out.get("passage", "")),
        "summary": replay.summary,
        "summary_link": message_address(replay.summary),
        "spans": spans,
        "whole": state_labels.duration(sum(span.ms for span in spans)) if spans else "",
        "cost": turn_filters.cost_shown_of(replay),
        "parts": list(turn.parts.order_by("number").defer("content")),
        "learned": learned,
        "learning": learning,
    }


def question_of(turn: Turn) -> Utterance:
    """Return the message that the turn answers, or for which it sends an apology."""
    if apologised := turn.context.get(APOLOGY_FOR):
        rows = Turn.objects.select_related("message").filter(chat=turn.chat_id)
        turn = rows.filter(turn_id=apologised).first() or turn
    message = turn.message
    kind = str(turn.context.get("kind", "text"))
    if message is None:
        gone = "" if turn.unstored_text else _("It isn't kept: memory is off, or it was erased.")
        return Utterance(kind, turn.unstored_text, gone=gone)
    if message.revoked_at:
        return Utterance(message.kind, "", message_address(message), _("deleted by the sender"))
    return Utterance(message.kind, message.content, message_address(message))


def answer_of(turn: Turn) -> Utterance | None:
    """Return what the turn answered, if anything is stored of it."""
    reply = turn.reply
    if reply is None:
        return Utterance("text", turn.unstored_reply) if turn.unstored_reply else None
    if reply.revoked_at:
        return Utterance(reply.kind, "", message_address(reply), _("deleted by the sender"))
    return Utterance(reply.kind, reply.content, message_address(reply))


def _author(turn: Turn) -> str:
    """Return the name of the staff member who wrote the reply.

    The name is empty where the assistant wrote it, and where the account was deleted.
    """
    if not turn.by_hand:
        return ""
    key = turn.context.get(AUTHOR)
    return names_of([key]).get(key) or str(SOMEBODY) if isinstance(key, int) else str(SOMEBODY)


def _merged_into(turn: Turn) -> str:
    key = turn.context.get("merged_into")
    found = Turn.objects.filter(turn_id=key).values_list("pk", flat=True).first() if key else None
    return reverse("admin:sessions_app_turn_change", args=[found]) if found else ""


def prompt_lines(
    entries: Sequence[dict[str, Any]], *, all_unfolded: bool = False, person: str = ""
) -> list[PromptLine]:
    """Return the messages of a prompt, with their fenced data set apart."""
    last = len(entries)
    return [
        replace(
            _prompt_line(entry, unfolded=all_unfolded or (place > last - UNFOLDED and place > 1)),
            person=person,
        )
        for place, entry in enumerate(entries, start=1)
    ]


def _prompt_line(entry: dict[str, Any], *, unfolded: bool) -> PromptLine:
    calls = [
        str(call.get("function") or call.get("custom", "")) for call in entry.get("tool_calls", ())
    ]
    text = "\n".join([*filter(None, [str(entry.get("content") or "")]), *calls])
    role = str(entry.get("role", ""))
    found = fence_split(text) if role == "system" else None
    if found is None:
        pictures = [
            reverse("admin:sessions_app_message_media", args=[key])
            for key in entry.get("pictures", ())
            if key
        ]
        tokens = estimate_tokens(text) + PICTURE_TOKENS * len(pictures)
        return PromptLine(role, tokens, unfolded, text, pictures=pictures)
    return PromptLine(role, estimate_tokens(text), unfolded, found.before, found.data, found.after)


def _left_out(record: dict[str, Any]) -> list[str]:
    """Return sentences that say what the budget left out."""

    def number(name: str) -> int:
        value = record.get(name, 0)
        return value if isinstance(value, int) and not isinstance(value, bool) else 0

    sentences = []
    if until := number("messages_until"):
        text = _("The conversation up to message no. %(n)d did not fit any more.")
        sentences.append(text % {"n": until})
    if until := number("summarized_until"):
        sentences.append(_("A summary told what was said up to message no. %(n)d.") % {"n": until})
    if record.get("passage"):
        sentences.append(_("The messages between the summary and the history were shortened."))
    counts = ((text, number(name)) for name, text in state_labels.LEFT_OUT.items())
    sentences += [text % {"n": count} for text, count in counts if count]
    if record.get("answer_cut"):
        sentences.append(_("The end of the answer: it was longer than may be written or sent."))
    if record.get("recall_degraded"):
        sentences.append(_("A part of memory could not be searched at that moment."))
    return sentences


# Show what was learned from a turn, and whether the extraction succeeded.

_OUTCOMES = {
    "learned": pgettext_lazy("facts", "learned"),
    "waiting": pgettext_lazy("facts", "waiting"),
    "unsaid": pgettext_lazy("facts", "unsaid"),
    "forgotten": pgettext_lazy("facts", "forgotten"),
    "secret": pgettext_lazy("facts", "dropped as a password or card number"),
}


def learning_of(turn: Turn) -> tuple[str, str]:
    """Return what was learned from the turn, and how the extraction went.

    Where there are memories, a note that nothing was to be learned would contradict them: they are
    from an earlier try, or came with the messages.
    """
    rows = _learned_rows(turn)
    work = ExtractionWork.objects.filter(turn=turn).first()
    if not rows:
        return _("Nothing learned"), _learning_state(work)
    titles = (_("memory"), _("type"), _("visible to"), _("confidence"))
    says_nothing = work is None or (work.outcome == NOTHING_LEARNED and not work.due)
    return shown_table(titles, rows), "" if says_nothing else _learning_state(work)


def _learned_rows(turn: Turn) -> list[tuple[str, ...]]:
    """Return the memories that come from the turn's messages, in their stored words."""
    messages = Message.objects.filter(turn__in=turn_with_merged(turn)).values("pk")
    memories = Memory.objects.filter(
        tellings__source=EXTRACTION, tellings__source_message_id__in=messages
    )
    return [
        (
            memory_link(memory),
            type_label(memory.type),
            str(VISIBILITIES.get(memory.visibility, memory.visibility)),
            "–" if memory.confidence is None else f"{memory.confidence:g}",
        )
        for memory in memories.distinct().order_by("created_at", "memory_id").defer("terms")
    ]


def _learning_state(work: ExtractionWork | None) -> str:
    """Return whether the extraction is due, its results in numbers, or why it failed."""
    if work is None:
        return _("Learning was off")
    if work.error:
        state = _("will be tried again") if work.due else _("given up")
        return shown_mark(f"{state}: {translate_error(work.error)}", "bad")
    return _("A worker will do it.") if work.due else _outcome(work.outcome)


def _outcome(noted: str) -> str:
    """Translate the parts of a result such as "2 learned, 1 waiting"; keep other texts."""
    parts = [part.partition(" ") for part in noted.split(", ")]
    if not all(count.isdecimal() and name in _OUTCOMES for count, _space, name in parts):
        return _("nothing worth learning") if noted == NOTHING_LEARNED else noted
    return ", ".join(f"{count} {_OUTCOMES[name]}" for count, _space, name in parts)
