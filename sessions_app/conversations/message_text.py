"""The text of a stored message for prompts, searches and summaries, and the commands in it.

Commands, questions and small talk are recognised in plain words, too. A message is a command only
if all of it is one: where that is doubtful, it isn't.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet

from memoryproject.foundation.retrieval.subqueries import may_repeat_a_query
from memoryproject.foundation.text.terms import IndexedText, index_text
from sessions_app.conversations.phrases import (
    COMMANDS,
    FORGET_OWN,
    MAX_LENGTH,
    OPENERS,
    SMALL_TALK,
    TEXTS,
    Phrase,
    Word,
    command_starts,
    languages,
    longest_phrase,
    phrases,
    words_of,
)
from sessions_app.models import Message
from sessions_app.models.chats import CLIENT
from sessions_app.models.messages import ASKING, Role, has_token_of


class HistoryMessage(NamedTuple):
    """A message for a prompt: histories are long, and model instances take long to build.

    ``place``: where it stands in the conversation, an answer with its question.
    """

    message_id: UUID
    session_id: UUID
    order_num: int
    role: str
    kind: str
    content: str
    tokens: int
    answers_id: UUID | None
    metadata: Mapping[str, Any]
    place: int

    @classmethod
    def of(cls, message: Message | HistoryMessage) -> HistoryMessage:
        """Return a message that was stored just now, or one that is answered: no answer itself."""
        if isinstance(message, HistoryMessage):
            return message
        return cls(
            message.message_id,
            message.session_id,
            message.order_num,
            message.role,
            message.kind,
            message.content,
            message.tokens,
            message.answers_id,
            message.metadata,
            message.order_num,
        )


StoredText: TypeAlias = Message | HistoryMessage

NAMES = ("remember", "memories", "search", "forget", "reset", "export", "help")

COMMAND = re.compile(rf"\s*/({'|'.join(NAMES)})(?:\s+(.*))?\s*", re.DOTALL | re.IGNORECASE)

LEADING_MENTION = re.compile(r"\s*@\S+\s+")


@dataclass(frozen=True)
class Command:
    """A parsed command.

    ``name`` is one of ``NAMES``; ``argument`` is the text after it, without surrounding spaces.
    ``language``: that of its plain words; "" for one that is written with its slash.
    """

    name: str
    argument: str = ""
    language: str = ""


def parse_command(text: str, *, in_group: bool = False) -> Command | None:
    """Return the command in a message, or None: with its slash, or surely meant in plain words.

    An unknown ``/word`` is a normal message. In a group the command may follow the mention that
    addresses the assistant.
    """
    if in_group:
        text = without_mention(text)
    found = COMMAND.fullmatch(text)
    if found is None:
        return plain_command(text)
    name, argument = found[1].lower(), (found[2] or "").strip()
    if name == "reset" and argument:
        # It ends the session, so nothing but exactly this word is taken for it.
        return None
    return Command(name, argument)


def without_mention(text: str) -> str:
    """Return the text of a message in a group without the mention at its beginning."""
    mention = LEADING_MENTION.match(text)
    return text[mention.end() :] if mention else text


WITH_TEXT_ALONE = ("text", "interactive", "button")


# Said below an answer that was made without all of memory.
NOTICE = "memory_unavailable"


def without_notice(text: str) -> str:
    """Return the text of an answer without the notice below it, which the model didn't write.

    The end of the notice may be cut off.
    """
    answer, _, end = text.rpartition("\n\n")
    begun = end.removesuffix("…").rstrip()
    is_notice = (
        answer and begun and any(notice.startswith(begun) for notice in TEXTS[NOTICE].values())
    )
    return answer if is_notice else text


def text_of(message: StoredText) -> str:
    """Return the message's content; a label if it isn't text.

    The notice below an answer isn't part of it.
    """
    if message.kind in WITH_TEXT_ALONE:
        return without_notice(message.content) if message.role != Role.USER else message.content
    return f"[{message.kind}] {message.content}".strip()


def as_chat_line(message: StoredText, *, is_group: bool) -> tuple[str, str]:
    """Return a stored message as a chat model takes it: its role and its text.

    Content that isn't text is named as such, and in a group each message names its author.
    """
    content = text_of(message)
    name = message.metadata.get("sender_name", "")
    if is_group and name and message.role == Role.USER:
        content = f"{name}: {content}"
    return str(message.role), content


def speaker_of(message: StoredText, *, user_role: str = CLIENT) -> str:
    """Return the speaker; in a group, by name."""
    if message.role != Role.USER:
        return str(message.role)
    return str(message.metadata.get("sender_name") or user_role)


def indexed_of(content: str, metadata: Mapping[str, Any]) -> IndexedText:
    """Return the text by which the message is found.

    In a group the speaker's name is part of it: "What is Dana allergic to?" finds Dana's "I'm
    allergic to walnuts". ``ASKING`` marks a text that asks for something.
    """
    name = metadata.get("sender_name")
    indexed = index_text(f"{name}: {content}" if name and content else content)
    if not may_repeat_a_query(content):
        return indexed
    return replace(indexed, terms=[*indexed.terms, ASKING])


def is_knowledge(message: StoredText) -> bool:
    """Return whether the message holds knowledge: commands and system texts don't."""
    return bool(message.content.strip()) and not (
        {"command", "system_text"} & message.metadata.keys()
    )


# Find the row of a message by the id under which an event names it.

Row = TypeVar("Row", bound=Model)
FIELD = "provider_message_id"


def row_of(
    rows: QuerySet[Row], message_id: str, *, chat_id: UUID | None, chat: str = "chat"
) -> Row | None:
    """Return the row with this id, otherwise the one in the chat whose id has the same token.

    ``chat``: the path from a row to its chat.
    """
    found = rows.filter(**{FIELD: message_id}).first()
    return found or row_by_token(rows, message_id, chat_id=chat_id, chat=chat)


def row_by_token(
    rows: QuerySet[Row], message_id: str, *, chat_id: UUID | None, chat: str = "chat"
) -> Row | None:
    """Return the first row in the chat whose id has the same token."""
    if chat_id is None or not message_id.startswith("wamid."):
        return None
    return rows.filter(has_token_of(FIELD, message_id), **{chat: chat_id}).order_by("pk").first()


# Recognise commands, questions and small talk in plain words.

MAX_OPENERS = 4
MAX_FORGET_WORDS = 8
MIN_FACT_WORDS = 2
# Shorter words before a full stop are taken for abbreviations: "St. 5".
MAX_ABBREVIATION = 3
MIN_STEM = 4
# A command begins within so many words.
MAX_LEAD = 16
# What may stand between the words of a command and its fact.
BETWEEN = " \t\n,:;.–—'’ʼ\u200e\u200f"
# A Hebrew prefix may have a hyphen after it, and the dot of its letter.
AFTER_PREFIX = BETWEEN + "-־\u05c1\u05c2"
GREETING_SIGNS = "👋"
# Skin tones, joiners and marks that change no sign's meaning.
IGNORED_SIGNS = "\ufe0f\u200d🏻🏼🏽🏾🏿!."
ACK_SIGNS = "👍🙏👌❤💪👏✅😊🙂🎉😀😃😄🤝💯"


class _Message(NamedTuple):
    """A message, its words, and the end of those that are no closing words."""

    text: str
    words: Sequence[Word]
    end: int

    def holds_question(self) -> bool:
        """Return whether it asks, apart from a closing "ok?"."""
        closed = self.end < len(self.words)
        text = self.text[: self.words[self.end].start] if closed else self.text
        # A mark inside an address of the web asks nothing.
        return any(sign in "?؟" and not after.isalnum() for sign, after in pairwise(text + " "))

    def broken_at(self, place: int, signs: str) -> int:
        """Return where the words from ``place`` on are divided by a sign with a space after it.

        It is the place of the next word, or ``end`` where none divides them.
        """
        for next_place in range(place + 1, self.end):
            left, right = self.words[next_place - 1], self.words[next_place]
            gap = self.text[left.end : right.start]
            is_short = left.end - left.start <= MAX_ABBREVIATION and not left.text.isdecimal()
            abbreviated = is_short and gap.startswith(". ")
            if "\n" in gap or (any(f"{sign} " in gap for sign in signs) and not abbreviated):
                return next_place
        return self.end


def plain_command(text: str) -> Command | None:
    """Return the command that the message surely gives in plain words, or None."""
    message = _message(text)
    starts = command_starts()
    if message is None or not any(word.text in starts for word in message.words[:MAX_LEAD]):
        return None
    return _command(message) or _command(_without_polite(message))


def _without_polite(message: _Message) -> _Message:
    """Return the message without the words of politeness among its words."""
    kept: list[Word] = []
    place = 0
    while place < message.end:
        polite = next(_phrases_at(message, place, kinds=("polite",)), None)
        if polite is None:
            kept.append(message.words[place])
        place += polite.size if polite else 1
    return message._replace(words=[*kept, *message.words[message.end :]], end=len(kept))


def _command(message: _Message) -> Command | None:
    place, is_asked = 0, False
    for _ in range(MAX_OPENERS + 1):
        for phrase in _phrases_at(message, place):
            argument = _argument(message, phrase, place, is_asked=is_asked)
            if argument is not None:
                name = phrase.kind.partition("_")[0]
                return Command(name, argument, phrase.language)
        opener = next(_phrases_at(message, place, kinds=OPENERS), None)
        if opener is None:
            return None
        is_asked |= opener.kind == "asking_openers"
        place += opener.size
    return None


def small_talk(text: str, *, name: str = "", language: str = "") -> tuple[str, str] | None:
    """Return the kind of small talk, one of ``SMALL_TALK``, and its language; None for the rest.

    ``name``: the assistant's, which may stand in it. ``language``: the chat's, where words are
    those of several languages.
    """
    names = {word.text for word in words_of(name)}
    words = [word for word in words_of(text[:MAX_LENGTH]) if word.text not in names]
    if not words:
        return _of_signs(text, language)
    if len(text) > MAX_LENGTH:
        return None
    message = _Message(text, words, len(words))
    place, found = 0, list[Phrase]()
    while place < len(words):
        phrases = list(_phrases_at(message, place, kinds=(*SMALL_TALK, "closers", *OPENERS)))
        if not phrases:
            return None
        longest = [each for each in phrases if each.size == phrases[0].size]
        talk = [each for each in longest if each.kind in SMALL_TALK] or longest
        found.append(next((each for each in talk if each.language == language), talk[0]))
        place += found[-1].size
    known = [each for each in found if each.kind in SMALL_TALK]
    best = min(known, key=lambda each: SMALL_TALK.index(each.kind), default=None)
    return (best.kind, best.language) if best else None


def asks_in_words(text: str) -> bool:
    """Return whether the message asks something: by its mark, or by its first words."""
    message = _message(text[:MAX_LENGTH])
    if message is None:
        return False
    if message.holds_question() or "¿" in text:
        return True
    place = 0
    for _ in range(MAX_OPENERS + 1):
        if any(_phrases_at(message, place, kinds=("asking",))):
            return True
        opener = next(_phrases_at(message, place, kinds=OPENERS), None)
        if opener is None:
            return False
        place += opener.size
    return False


def _message(text: str) -> _Message | None:
    if len(text) > MAX_LENGTH:
        return None
    words = words_of(text)
    message = _Message(text, words, len(words))
    while message.end > 1:
        sizes = range(min(longest_phrase(), message.end - 1), 0, -1)
        size = next((size for size in sizes if _closes(words[message.end - size : message.end])), 0)
        if not size:
            break
        message = message._replace(end=message.end - size)
    return message


def _closes(words: Sequence[Word]) -> bool:
    found = phrases().get(tuple(word.text for word in words), ())
    return any(phrase.kind in ("closers", "polite") for phrase in found)


def _phrases_at(message: _Message, place: int, kinds: Sequence[str] = COMMANDS) -> Iterator[Phrase]:
    """Yield the phrases that stand at this place, the longest ones first."""
    table = phrases()
    left = tuple(word.text for word in message.words[place : place + longest_phrase()])
    for size in range(len(left), 0, -1):
        yield from (each for each in table.get(left[:size], ()) if each.kind in kinds)


def _argument(message: _Message, phrase: Phrase, place: int, *, is_asked: bool) -> str | None:
    """Return the argument of the command, or None where this is surely no command."""
    language = languages()[phrase.language]
    first = place + phrase.size
    if phrase.kind == "memories":
        return "" if first >= message.end else None
    is_asked |= phrase.kind in FORGET_OWN[1:]
    if phrase.kind == "forget_last":
        if message.words[message.end - 1].text not in language["forget_last_words"]:
            return None
        message = message._replace(end=message.end - 1)
    if first >= message.end or (message.holds_question() and not is_asked):
        return None
    if phrase.kind.startswith("forget"):
        # What follows says why.
        message = message._replace(end=message.broken_at(first, ".!;:,،"))
    rest = [word.text for word in message.words[first : message.end]]
    start = message.words[first].start
    gap = message.text[message.words[first - 1].end : start]
    if phrase.prefix:
        is_attached = rest[0].startswith(phrase.prefix) and phrase.prefix in message.text[start:]
        if not is_attached or rest[0] in language["attached_not"]:
            return None
        rest[0] = rest[0].removeprefix(phrase.prefix)
        start = message.text.index(phrase.prefix, start) + len(phrase.prefix)
    elif not any(map(str.isalnum, gap)):
        # A sign before the first word is a part of it: "$500".
        start -= len(gap)
    end = len(message.text)
    if message.end < len(message.words):
        end = message.words[message.end - 1].end
    argument = message.text[start:end].lstrip(AFTER_PREFIX if phrase.prefix else BETWEEN)
    argument = argument.rstrip().rstrip(".!…?؟ ")
    if phrase.kind == "forget_number":
        return argument if len(rest) == 1 and rest[0].isdecimal() and len(rest[0]) <= 3 else None
    if phrase.kind.startswith("forget"):
        is_detail = phrase.kind not in FORGET_OWN[2:] or not language["details"].isdisjoint(rest)
        mine = language["mine"] if phrase.kind in FORGET_OWN else frozenset()
        return argument if is_detail and _is_memory(rest, mine) else None
    if phrase.kind == "remember_colon" and ":" not in gap:
        return None
    return argument if _is_fact(message, phrase, first, rest) else None


def _is_fact(message: _Message, phrase: Phrase, first: int, rest: Sequence[str]) -> bool:
    language = languages()[phrase.language]
    if len(rest) < MIN_FACT_WORDS or message.broken_at(first, ".!;") < message.end:
        return False
    if any(tuple(rest[:size]) in language["not_facts"] for size in range(1, longest_phrase() + 1)):
        return False
    if phrase.kind != "remember_fact":
        return True
    return any(word in language["fact_words"] or word[:1].isdigit() for word in rest)


def _is_memory(rest: Sequence[str], mine: frozenset[str]) -> bool:
    if len(rest) > MAX_FORGET_WORDS:
        return False
    # Languages share words: "забудьте" is of two.
    if any(word in each["not_memories"] for each in languages().values() for word in rest):
        return False
    return not mine or any(_is_mine(word, mine) for word in rest)


def _is_mine(word: str, mine: frozenset[str]) -> bool:
    """Return whether the word says whose it is: by itself, or by its end ("*ي")."""
    return word in mine or (len(word) >= MIN_STEM and f"*{word[-1]}" in mine)


def _of_signs(text: str, language: str) -> tuple[str, str] | None:
    signs = [sign for sign in text if not sign.isspace() and sign not in IGNORED_SIGNS]
    if not signs or len(signs) > MIN_STEM:
        return None
    if all(sign in GREETING_SIGNS for sign in signs):
        return "greeting", language or "en"
    return ("acks", language or "en") if all(sign in ACK_SIGNS for sign in signs) else None
