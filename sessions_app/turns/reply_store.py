"""Store an answer, its replay record and its parts; make those answers that need no model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from memoryproject.foundation.bulk_rows import sent_together
from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.llm.base import ChatModel, OfflineChatModel
from memoryproject.foundation.integrations.whatsapp import markdown, outgoing_text
from memoryproject.foundation.integrations.whatsapp.base import WhatsAppProvider
from sessions_app.conversations import history_queries, session_lifecycle
from sessions_app.conversations.epochs import EpochSnapshot, epoch_check, forgetting_wait
from sessions_app.conversations.message_store import NewMessage
from sessions_app.conversations.phrases import text_for
from sessions_app.conversations.plain_words import small_talk, without_mention
from sessions_app.extraction.facade import extraction_request
from sessions_app.history.chat_memory import ChatMemoryService
from sessions_app.hours import hours_of
from sessions_app.hours_answers import hours_answer
from sessions_app.limits.intake import word_for
from sessions_app.models import ChatSession, Message, OutboundPart, Turn, TurnReplay
from sessions_app.models.deliveries import PartState
from sessions_app.models.messages import APOLOGY, OFFERED, Role
from sessions_app.models.turns import HANDOVER, Outcome, TurnState, turn_move
from sessions_app.turns import handing_over, questions, turn_claims
from sessions_app.turns.turn_dependencies import Dependencies, TurnWork


def reply_store(
    work: TurnWork, draft: "Draft", epoch: EpochSnapshot | None = None, *, may_learn: bool = False
) -> Turn:
    """Store the answer of a turn and return the turn; from then on it only has to be sent.

    Its first part is ``sending`` already, unless staff have blocked the chat: the call comes next.
    ``epoch``: what had been forgotten when the answer was begun, None where it uses no memory.
    ``may_learn``: a worker may learn from the turn. Raises LeaseLostError and
    ForgottenMeanwhileError, and then nothing is stored.
    """
    begun, lease, memory = work.turn, work.lease, work.dependencies.chat_memory
    question, provider = draft.question, work.dependencies.providers[begun.provider]
    if question and not questions.has_buttons(question, provider, is_group=begun.chat.is_group):
        draft.text = question.text_with_numbers(draft.text)
    learn = work.dependencies.learn if may_learn else None
    # The rows are locked: updates find them as they were read, and what is known isn't read again.
    with transaction.atomic():
        with sent_together():
            if epoch is not None:
                forgetting_wait(epoch.reader)
            if draft.handover:
                # Chat before session: the order in which all code locks.
                turn_claims.chat_locked(lease.row.chat_id)
            turn = lease.lock_with_session()
            seen = None
            if turn.chat_id == begun.chat_id:
                turn.chat, seen = begun.chat, turn.epochs
            if epoch is not None:
                epoch_check(epoch, seen=seen)
            if turn.message_id == begun.message_id:
                turn.message = begun.message
            parts = parts_of(draft, provider)
            stored: dict[str, Any] = {"error": draft.error, "outcome": draft.outcome}
            if context := _context_of(draft, len(parts)):
                stored["context"] = {**turn.context, **context}
            state = TurnState.REPLIED if turn_claims.is_blocked(turn) else TurnState.SENDING
            if (session := turn.session) is None:
                stored["unstored_reply"] = draft.text
            else:
                stored["reply"] = message_store(turn, session, draft, memory, answers=turn.message)
            work.parts = parts_store(turn, parts, is_sending=state == TurnState.SENDING)
            replay_store(turn, draft)
            turn_move(turn, state, lease_until=lease.until(), not_before=None, **stored)
        session_lifecycle.answer_stored(turn)
        if draft.handover:
            handing_over.hand_over(turn, draft.handover)
        if learn is not None and extraction_request(turn):
            # No answer waits for a queue that is down: the sweep finds what is due.
            transaction.on_commit(lambda: learn(turn.chat_id), robust=True)
    return turn


def _context_of(draft: "Draft", parts: int) -> dict[str, Any]:
    """Return what the turn's context holds of the draft; the last of its ``parts`` asks."""
    context: dict[str, Any] = {}
    if draft.listed:
        context[LISTED] = {str(number): key and str(key) for number, key in draft.listed.items()}
    if draft.question:
        context |= draft.question.as_context(parts)
    if draft.chosen:
        context[questions.CHOSEN] = draft.chosen
    if draft.handover:
        context[HANDOVER] = draft.handover
    return context


def parts_store(
    turn: Turn, texts: Sequence[str], *, is_sending: bool = False
) -> list[OutboundPart]:
    """Store the parts to send, in this order, and return them.

    ``is_sending``: the first of them is sent as soon as they are committed. Call it in the
    transaction that stores the answer.
    """
    of_turn = {"turn": turn, "provider": turn.provider, "number_id": turn.number_id}
    parts = [
        OutboundPart(number=number, content=text, **of_turn)
        for number, text in enumerate(texts, start=1)
    ]
    if is_sending:
        parts[0].state, parts[0].started_at = PartState.SENDING, timezone.now()
    return OutboundPart.objects.bulk_create(parts)


def parts_of(draft: "Draft", provider: WhatsAppProvider) -> list[str]:
    """Return the draft's text as the provider sends it."""
    text = draft.text if draft.is_system_text else markdown.to_whatsapp(draft.text)
    return outgoing_text.split_text(text, provider.text_limit) or [draft.text]


def message_store(
    turn: Turn,
    session: ChatSession,
    draft: "Draft",
    chat_memory: ChatMemoryService,
    *,
    answers: Message | None,
) -> Message:
    """Store the draft as the assistant's message, which ``answers`` another one."""
    now = timezone.now()
    metadata: dict[str, Any] = {"system_text": True} if draft.is_system_text else {}
    if draft.outcome == Outcome.FAILED:
        metadata[APOLOGY] = True
    if draft.question:
        metadata[OFFERED] = list(draft.question.options.values())
    new = NewMessage(
        role=Role.ASSISTANT,
        content=draft.text,
        timestamp=now,
        sender="assistant",
        recipient=turn.chat.whatsapp_chat,
        provider=turn.provider,
        number_id=turn.number_id,
        answers=answers,
        was_received=False,
        metadata=metadata,
    )
    (stored,) = chat_memory.append(session=session, new=[new], role=turn.user_role, now=now)
    return stored


def replay_store(turn: Turn, draft: "Draft") -> None:
    """Store the replay record, in the place of that of an earlier answer to this turn."""
    names = "prompt recalled left_out summary_id model prompt_tokens completion_tokens timings"
    record = {name: getattr(draft, name) for name in names.split()}
    shown = [str(key) for key in draft.listed.values() if key]
    # A trigger removes the earlier one. Rows that may conflict return nothing to wait for.
    replay = TurnReplay(turn=turn, shown=shown, **record)
    TurnReplay.objects.bulk_create([replay], ignore_conflicts=True)


# An answer that is made but not stored yet, with its replay record.


# The name in a turn's context.
LISTED = "listed"


@dataclass
class Draft:
    """An answer that is not stored yet.

    ``is_system_text``: the text is one of ours (a confirmation, an apology, a list of what is
    remembered), not a model's: it is not knowledge and never recalled. ``uses_memory``: it may
    hold memories or messages that were stored when it was made. ``listed``: the entries of its
    numbered list, each with its memory if it is one. ``is_apology``: there is no answer, and the
    text says so; ``is_outside``: for a cause that has nothing to do with the message.
    ``handover``: why the conversation goes to a person now. The other fields go into the turn as
    they are.

    ``question``: what the answer asks. People press a button or a row of a list where WhatsApp has
    them, else they type a number or a title. A feature that asks back makes

        Draft(text, question=Question("person", {"yes": "Yes", "no": "No"}))

    and puts a function under "person" into ``CHOICES`` of commands/dispatch.py. It is called once,
    for the question that is open, with the key that was chosen ("yes"), and returns the next draft.
    Titles have at most 20 characters, and hold nothing that could be erased: they come back as
    the person's message. ``chosen``: the choice that the draft answers.
    """

    text: str
    is_system_text: bool = False
    uses_memory: bool = True
    listed: Mapping[int, UUID | None] = field(default_factory=dict)
    question: questions.Question | None = None
    chosen: str = ""
    is_apology: bool = False
    is_outside: bool = False
    handover: str = ""
    prompt: list[dict[str, Any]] = field(default_factory=list)
    recalled: list[dict[str, Any]] = field(default_factory=list)
    left_out: dict[str, Any] = field(default_factory=dict)
    summary_id: UUID | None = None
    model: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    timings: dict[str, int] = field(default_factory=dict)
    error: str = ""
    outcome: str = Outcome.ANSWERED


# Answers where no model is configured, or none can be reached.

ACKNOWLEDGED = "👍"
# So many questions may follow one about the hours: "and on Sunday?".
MAX_EARLIER = 5


def is_offline(chat_model: ChatModel) -> bool:
    """Return whether no model is configured: answers are made from memory alone."""
    return chat_model.name == OfflineChatModel.name


def recital(lines: str, language: str, heading: str = "recital") -> str:
    """Return an answer that is made of recalled texts alone, one on each of ``lines``.

    heading: the name of the text before them.
    """
    return (
        f"{text_for(heading, language)}\n{lines}" if lines else text_for("recital_none", language)
    )


def small_talk_reply(turn: Turn, text: str, dependencies: Dependencies) -> Draft | None:
    """Return the answer to small talk, in its language; None for every other message."""
    text = without_mention(text) if turn.chat.is_group else text
    profile = history_queries.profile_current()
    talk = small_talk(text, name=profile.name, language=turn.chat.language)
    if talk is None:
        return None
    kind, language = talk
    language = turn.chat.fixed_language or language
    name = profile.name
    if profile.business_name:
        name = f"{name} ({profile.business_name})" if name else profile.business_name
    if kind == "acks":
        answer = ACKNOWLEDGED
    elif kind == "thanks":
        answer = text_for("welcome", language)
    elif kind == "greeting" and name:
        answer = text_for("greeting", language, assistant=name)
    else:
        answer = text_for(help_text(turn, dependencies), language)
    return Draft(
        text=answer, is_system_text=True, uses_memory=False, model=dependencies.chat_model.name
    )


def hours_reply(turn: Turn, text: str) -> str:
    """Return the answer to a question about the opening hours alone; "" for other messages."""
    profile, chat = history_queries.profile_current(), turn.chat
    text = without_mention(text) if chat.is_group else text
    hours = hours_of(profile)
    now, fixed = timezone.now(), chat.fixed_language
    if hours is None:
        return ""
    asks = turn.message or Message(order_num=0)
    earlier = Message.objects.filter(session=asks.session_id, order_num__lt=asks.order_num)
    own = earlier.filter(role=Role.USER).order_by("-order_num")
    before = own.values_list("content", flat=True)[:MAX_EARLIER]
    answer = hours_answer(
        text, hours=hours, now=now, language=chat.language, fixed=fixed, before=before
    )
    return answer or ""


# Answers that are texts of ours: apologies, and what is said instead of an answer.


def handover_draft(turn: Turn, reason: str) -> Draft:
    """Return the answer with which a conversation goes to a person."""
    text = handing_over.handover_text(turn, reason)
    return Draft(text=text, is_system_text=True, uses_memory=False, handover=reason)


def offer_person(draft: Draft, turn: Turn) -> None:
    """Let the answer ask whether a person is wanted."""
    language = turn.chat.language
    draft.text = f"{draft.text}\n\n{text_for('handover_offer', language)}"
    choices = {key: text_for(key, language) for key in ("yes", "no")}
    draft.question = questions.Question(handing_over.PERSON, choices)


def say(
    name: str, turn: Turn, *, error: str = "", outcome: str = Outcome.ANSWERED, **values: str
) -> Draft:
    """Return one of our texts as the answer."""
    text = text_for(name, turn.chat.language, **values)
    return Draft(text=text, is_system_text=True, error=error, outcome=outcome)


def notice_draft(name: str, turn: Turn, dependencies: Dependencies) -> Draft:
    """Return the system text that answers the message instead of the model."""
    limits = dependencies.limits
    words = limits.stop_words if name == "opted_in" else limits.start_words
    reason = turn.context.get("reason")
    error = ErrorText(reason) if reason else ""
    outcome = Outcome.REFUSED if reason else Outcome.ANSWERED
    word = word_for(turn.chat.language, words)
    return say(name, turn, error=error, outcome=outcome, word=word)


def help_text(turn: Turn, dependencies: Dependencies) -> str:
    """Return the name of the text that offers only what works at the moment."""
    if turn.session_id is None:
        return "help_without_memory"
    return "help" if dependencies.rules.longterm_enabled else "help_without_longterm"
