"""Execute the commands that people write, and confirm them."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from django.db import DatabaseError
from django.db.models import Q
from django.utils import timezone

from memories_app.errors import MemoryValidationError
from memories_app.facts.facts import fact_key
from memories_app.facts.validation import MAX_CONTENT, NewMemory
from memories_app.models import Memory, Visibility
from memories_app.store.memory_fields import content_hash
from memories_app.store.remember import memory_remember
from memoryproject.foundation.integrations.embedders.base import Embedder, EmbedderError
from memoryproject.foundation.process.storage import is_disk_full
from memoryproject.foundation.redaction.redact import holds_card_number
from memoryproject.foundation.text.characters import cut_at_word
from sessions_app.conversations import epochs, phrases, plain_words
from sessions_app.conversations.buttons import command_of, is_own_text
from sessions_app.conversations.phrases import text_for
from sessions_app.models import Message, Outcome, Role, Turn
from sessions_app.models.chats import reading_role
from sessions_app.recall.facade import CLIENT_NAME, Hit, Viewer, hit_record, recall
from sessions_app.turns.commands import replies
from sessions_app.turns.commands.forget import FORGET, NOTHING, forget_reply, may_forget
from sessions_app.turns.handing_over import ASKED, PERSON
from sessions_app.turns.reply_store import Draft, handover_draft, help_text
from sessions_app.turns.turn_dependencies import Dependencies

# /remember <fact>: store a memory.


def remember_reply(
    *, turn: Turn, fact: str, embedder: Embedder, is_proposal: bool = False
) -> Draft:
    """Store the fact as a memory, only for the godfather or only for this chat.

    The godfather may say that it is for everyone. ``is_proposal``: staff decide about it first. The
    number of a payment card is refused: staff and prompts would show it.
    """
    language = turn.chat.language
    if not fact:
        return replies.say("remember_usage", language)
    if len(fact) > MAX_CONTENT:
        return replies.say("remember_too_long", language, length=len(fact), most=MAX_CONTENT)
    if holds_card_number(fact):
        return replies.say("remember_card", language)
    owner = replies.is_owners(turn)
    public = plain_words.for_everyone(fact) if owner else ""
    fact = public or fact
    own = Visibility.OWNER if owner else Visibility.CHAT
    try:
        remembered = memory_remember(
            NewMemory(
                content=fact,
                visibility=str(Visibility.PUBLIC if public else own),
                chat_id=turn.chat_id,
                source="command",
                proposed=is_proposal,
                source_message_id=turn.message_id,
                said_at=min(turn.message.timestamp, timezone.now()) if turn.message else None,
                speaker=turn.message.sender if turn.message and turn.chat.is_group else "",
            ),
            embedder=embedder,
            actor=replies.person(turn),
            before_storing=partial(epochs.chats_keep, [turn.chat_id]),
        )
    except (EmbedderError, DatabaseError, MemoryValidationError, epochs.ChatGoneError) as error:
        logger.error("A memory (%s) was not stored: %s", content_hash(fact)[:12], error)
        return replies.failed("remember_failed", language, error)
    text = text_for("remembered", language, content=fact)
    if public:
        text += f" ({text_for('mark_public', language)})"
    replaced = Memory.objects.filter(pk__in=remembered.superseded).order_by("created_at")
    lines = [
        text_for(
            "remember_replaces", language, content=cut_at_word(older.content, replies.MAX_LENGTH)
        )
        for older in replaced
    ]
    return replies.system_text("\n".join([text, *lines]))


logger = logging.getLogger(__name__)
_Command = plain_words.Command | None


def quoting_command(turn: Turn, text: str, command: _Command) -> _Command:
    """Return the command, or the one about the message that this one quotes: "forget this".

    What is quoted is a fact of theirs, or made one memory, as it is or by our confirmation.
    """
    message = phrases.utterance_of(text)
    found = phrases.beginning(message, phrases.QUOTING) if message else []
    if not message or not turn.message or message.end not in (each.size for each in found):
        return command
    key = turn.message.metadata.get("reply_to_id", "-")
    quoted = Message.objects.filter(chat=turn.chat_id, provider_message_id=key, revoked_at=None)
    if found[0].kind == phrases.AFTER_FACT:
        own = quoted.filter(role=Role.USER, sender=turn.message.sender).first()
        fact = own.content if own and is_own_text(own.kind, own.metadata) else ""
        asks = plain_words.asks_in_words(fact) or command_of(fact, in_group=turn.chat.is_group)
        fact = "" if asks else fact.strip()
        return plain_words.Command("remember", fact) if fact or command else None
    answered = Turn.objects.filter(chat=turn.chat_id, parts__provider_message_id=key)
    theirs = Q(source_message_id__in=answered.values("message"))
    for key, text in quoted.values_list("pk", "content"):
        theirs |= Q(source_message_id=key) | Q(fact_key=fact_key(text))
    made = may_forget(turn).filter(theirs).values_list("pk", flat=True)[:2]
    return plain_words.Command(FORGET, made[0].hex) if len(made) == 1 else command


def command_reply(*, turn: Turn, command: plain_words.Command, dependencies: Dependencies) -> Draft:
    """Return the answer to a command; a second run for the same turn has no second effect."""
    language = turn.chat.language
    if command.name == "help":
        names = [help_text(turn, dependencies)]
        names += ["help_everyone"] if names == ["help"] and replies.is_owners(turn) else []
        return replies.system_text("\n".join(text_for(name, language) for name in names))
    if command.name == "reset" and turn.session_id is not None:
        # The session itself ended when the message came in: see intake.
        return replies.say("reset", language)
    length = len(command.argument)
    is_too_long = length > MAX_CONTENT and command.name != "remember"

    def answer() -> Draft:
        if is_too_long:
            # Nothing that is kept is longer, and searching for it would cost much.
            return replies.say("argument_too_long", language, length=length, most=MAX_CONTENT)
        return _memory_command(turn, command, dependencies)

    return _with_memory(turn, command.name, dependencies, answer)


def _with_memory(
    turn: Turn, name: str, dependencies: Dependencies, answer: Callable[[], Draft]
) -> Draft:
    """Return what ``answer`` makes, where memory is on and the database works."""
    if turn.session_id is None or not dependencies.rules.longterm_enabled:
        return _refused(turn.chat.language)
    try:
        return answer()
    except DatabaseError as error:
        if is_disk_full(error):
            raise
        logger.error("/%s failed: %s", name, error)
        return replies.failed("command_failed", turn.chat.language, error)


def _refused(language: str) -> Draft:
    draft = replies.say("memory_disabled", language)
    draft.outcome = Outcome.REFUSED
    return draft


def _memory_command(turn: Turn, command: plain_words.Command, dependencies: Dependencies) -> Draft:
    if command.name == "memories":
        return replies.memories_reply(turn=turn, page=command.argument)
    if command.name == "search":
        return search_reply(turn, command.argument, dependencies)
    if command.name == "forget":
        is_plain = bool(command.language)
        return forget_reply(turn, command.argument, dependencies, is_plain=is_plain)
    if command.name == "export":
        return replies.export_reply(turn=turn)
    fact = plain_words.THAT.sub("", command.argument)
    return remember_reply(turn=turn, fact=fact, embedder=dependencies.embedder)


# Choices: what people press or type where an answer asked.


@dataclass(frozen=True)
class Chosen:
    """The choice that a message makes: the key of an option of the ``question`` of that turn."""

    turn: Turn
    question: Turn
    key: str
    dependencies: Dependencies


def chosen_reply(*, turn: Turn, text: str, dependencies: Dependencies) -> Draft | None:
    """Return the answer to a choice; None for a message that is none.

    A choice of a question that is closed changes nothing, and the answer says so.
    """
    choosing = replies.choice_made(turn, text)
    if choosing is None:
        return None
    handler = CHOICES.get(choosing.asks)
    if choosing.question is None or handler is None:
        return replies.say("choice_closed", turn.chat.language)
    draft = handler(Chosen(turn, choosing.question, choosing.key, dependencies))
    draft.chosen = choosing.key
    return draft


def _forget_chosen(chosen: Chosen) -> Draft:
    """Forget the entry of the question's own list."""
    turn = chosen.turn
    if chosen.key == NOTHING:
        return replies.say("forget_kept", turn.chat.language)
    listed = replies.numbers_listed(chosen.question)
    reply = partial(forget_reply, turn, chosen.key, chosen.dependencies, listed=listed)
    return _with_memory(turn, FORGET, chosen.dependencies, reply)


def _person_chosen(chosen: Chosen) -> Draft:
    """Hand over to a person, or go on."""
    if chosen.key == "yes":
        return handover_draft(chosen.turn, ASKED)
    return replies.say("handover_declined", chosen.turn.chat.language)


# The functions that handle choices, by what the questions ask.
CHOICES: Mapping[str, Callable[[Chosen], Draft]] = {FORGET: _forget_chosen, PERSON: _person_chosen}


# /search <words>: search memories and messages.

MAX_COUNT = 10
# A person who searches reads the list: one hit too many is better than one too few.
LOWER_BAR = 0.5


def search_reply(turn: Turn, words: str, dependencies: Dependencies) -> Draft:
    """Return the memories that match the words, and the messages of this chat that match them."""
    language = turn.chat.language
    if not words:
        return replies.say("search_usage", language)
    found = recall(
        query=words,
        viewer=Viewer(reading_role(turn.user_role, turn.context), turn.chat_id),
        embedder=dependencies.embedder,
        top_k=MAX_COUNT,
        min_similarity=dependencies.rules.min_similarity * LOWER_BAR,
    )
    if found.hits:
        text = text_for("search_found", language, lines=_lines(found.hits, turn))
    else:
        text = text_for("search_none", language)
    if found.degraded:
        text += "\n\n" + text_for("search_degraded", language)
    keys = (hit.id if hit.source == "memory" else None for hit in found.hits)
    draft = replies.system_text(text, listed=dict(enumerate(keys, start=1)))
    # An erasure finds the messages that it lists by this record.
    draft.recalled = [hit_record(hit) for hit in found.hits if hit.source != "memory"]
    return draft


def _lines(hits: list[Hit], turn: Turn) -> str:
    language = turn.chat.language
    ids = replies.short_ids([hit.id for hit in hits if hit.source == "memory"])
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
        lines.append(replies.numbered(number, hit.content, marks))
    return "\n".join(lines)
