"""Store the facts learned from a turn, if their messages are unchanged when they are stored."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from django.utils import timezone

from memories_app.facts.facts import likeness_of
from memories_app.facts.validation import NewMemory
from memories_app.models import Visibility
from memories_app.store import remember, retract
from memories_app.visibility import scope_of
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.redaction import redact
from memoryproject.foundation.text.characters import fold
from memoryproject.foundation.text.tokenizer import Kind, Token, kind_of, tokenize
from sessions_app.conversations.epochs import Reader, forgetting_wait
from sessions_app.extraction import doubts, extraction_claims, passage, statement_words as lexicon
from sessions_app.extraction.source_text import SourceText, source_text_of
from sessions_app.models import ChatSession, Message

if TYPE_CHECKING:
    from sessions_app.extraction.facts_form import Fact


NOTHING_LEARNED = "nothing worth learning"


class SourceChangedError(Exception):
    """The messages were edited, revoked or forgotten meanwhile: start again."""


@dataclass(frozen=True)
class Outcome:
    """The numbers of facts in the model's answer, by outcome.

    They were learned (or stated again), wait for staff, were said by nobody, had been forgotten, or
    hold a password or the number of a card, which is stored nowhere.
    """

    learned: int = 0
    waiting: int = 0
    unsaid: int = 0
    forgotten: int = 0
    secret: int = 0

    def __str__(self) -> str:
        counts = [f"{count} {name}" for name, count in vars(self).items() if count]
        return ", ".join(counts) or NOTHING_LEARNED


def facts_store(
    *,
    facts: Sequence[Fact],
    source: SourceText,
    lease: extraction_claims.ExtractionLease,
    embedder: Embedder,
    min_confidence: float,
    memory_enabled: bool,
    written_on: date,
) -> Outcome:
    """Store the facts that people said and end the work, in one transaction.

    Raises LeaseLostError and SourceChangedError, and the errors of memories_remember; then nothing
    is stored.
    """
    checked = facts_checked(
        facts=facts, source=source, min_confidence=min_confidence, written_on=written_on
    )
    stated = checked.stated
    new = [each for each in stated if not _was_forgotten(each)]
    waiting = sum(each.proposed for each in new)
    outcome = Outcome(
        learned=len(new) - waiting,
        waiting=waiting,
        unsaid=checked.unsaid,
        forgotten=len(stated) - len(new),
        secret=checked.secret,
    )

    def source_is_current() -> None:
        forgetting_wait(Reader(source.chat_id, sees_all=source.is_owners))
        ChatSession.objects.select_for_update(no_key=True).filter(pk=source.session_id).first()
        lease.lock()
        now = source_text_of(lease.turn_id, memory_enabled=memory_enabled)
        if now is None or (now.chat_id, now.seen) != (source.chat_id, source.seen):
            raise SourceChangedError(f"the messages of turn {lease.turn_id} changed meanwhile")
        if any(map(_was_forgotten, new)):
            raise SourceChangedError("what was learned was forgotten meanwhile")
        lease.finish(str(outcome))

    actor = Actor("system", chat_id=source.chat_id)
    remember.memories_remember(
        memories=new, embedder=embedder, actor=actor, before_storing=source_is_current
    )
    return outcome


def _was_forgotten(new: NewMemory) -> bool:
    """Return whether the fact was forgotten in its scope, so that it isn't learned again."""
    return retract.is_forgotten(content=new.content, scope=scope_of(new.visibility, new.chat_id))


# Check each fact of a model's answer against the message that it quotes.


# The name in a memory's metadata of the reasons why it waits for staff.
TO_REVIEW = "to_review"


@dataclass(frozen=True)
class CheckedFacts:
    """The facts to store, and the numbers of those that nobody said or that hold a secret."""

    stated: Sequence[NewMemory]
    unsaid: int
    secret: int


def facts_checked(
    *, facts: Sequence[Fact], source: SourceText, min_confidence: float, written_on: date
) -> CheckedFacts:
    """Match each fact with the message that holds its quote; keep each statement once.

    A fact that raises a doubt is proposed, with the reasons in its metadata.
    """
    found: dict[str, NewMemory] = {}
    unsaid = secret = 0
    for fact in facts:
        quoted = quoted_in(fact.quote, source.texts)
        if quoted is None:
            unsaid += 1
            continue
        place, quote = quoted
        clause = passage.clause_of(quote, fact.content)
        if holds_secret(fact.content, clause=clause.text, message="\n".join(source.texts)):
            secret += 1
            continue
        message = source.messages[place]
        reasons = [
            *doubts.doubts_of(
                fact.content, clause=clause, is_owners=source.is_owners, written_on=written_on
            ),
            *_other_doubts(fact, message, source, min_confidence),
        ]
        new = NewMemory(
            content=fact.content,
            visibility=str(Visibility.OWNER if source.is_owners else Visibility.CHAT),
            chat_id=source.chat_id,
            type=fact.type,
            source=retract.EXTRACTION,
            source_message_id=message.pk,
            confidence=fact.confidence,
            said_at=min(message.timestamp, timezone.now()),
            speaker=message.sender if source.is_group else "",
            metadata={TO_REVIEW: reasons} if reasons else {},
            proposed=bool(reasons),
        )
        found.setdefault(likeness_of(fact.content).sense, new)
    return CheckedFacts(list(found.values()), unsaid, secret)


def _other_doubts(
    fact: Fact, message: Message, source: SourceText, min_confidence: float
) -> Iterator[str]:
    if fact.confidence < min_confidence:
        yield "confidence"
    their_words = [*source.texts, *source.names]
    if not is_carried(fact.content, texts=their_words, question=source.question):
        yield "other words"
    if has_other_name(fact.content, texts=their_words):
        yield "name"
    # A forwarded message holds the words of others, so it isn't this person's own statement.
    if message.metadata.get("forwarded"):
        yield "forwarded"
    if source.is_late:
        yield "late"


# Check that people said a fact: a quote must occur in their message, and support the fact.

_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_MIN_BEGINNING = 3


def quoted_in(quote: str, texts: Sequence[str]) -> tuple[int, passage.Quote] | None:
    """Return the index of the first text that holds the quote word for word, and the place in it.

    White space and invisible marks don't count. Returns None if no text holds it: nobody said it.
    """
    wanted = passage.without_marks(quote)
    for index, text in enumerate(texts):
        found = passage.quote_place(wanted, passage.without_marks(text))
        if found is not None:
            return index, found
    return None


def is_carried(content: str, *, texts: Iterable[str], question: str) -> bool:
    """Return whether people's own words support a fact.

    At least half of its informative words are theirs (``texts``: their messages and names), and
    none is taken from ``question``, the assistant's words. A fact from a short reply to a question
    isn't supported. Numbers are compared by ``stated_numbers``, in any spelling.
    """
    their_forms, question_forms = _forms(texts), _forms([question])
    informative = [
        token
        for token in tokenize(_DATE.sub(" ", content))
        if kind_of(token) in passage.INFORMATIVE
    ]
    own = [
        token
        for token in informative
        if token.script == "number" or passage.forms_of_token(token) & their_forms
    ]
    others = [token for token in informative if token not in own]
    borrowed = any(passage.forms_of_token(token) & question_forms for token in others)
    return not borrowed and len(own) * 2 >= len(informative) > 0


def has_other_name(content: str, *, texts: Iterable[str]) -> bool:
    """Return whether a fact names somebody or something by a name that people didn't write."""
    their_forms = _forms(texts)
    return any(
        token.capitalised
        and not token.starts_sentence
        and kind_of(token) in (Kind.PLAIN, Kind.NAME)
        and not passage.forms_of_token(token) & their_forms
        and not _is_declined(token, their_forms)
        for token in tokenize(content)
    )


def _is_declined(token: Token, known: set[str]) -> bool:
    """Return whether it may be a known name in another case, as in Russian."""
    beginning = token.text[: max(_MIN_BEGINNING, len(token.text) - 2)]
    return token.script == "other" and any(form.startswith(beginning) for form in known)


def _forms(texts: Iterable[str]) -> set[str]:
    return {
        form for text in texts for token in tokenize(text) for form in passage.forms_of_token(token)
    }


# Recognise facts that hold a password, a key or the number of a card or an account.

# A part of a card's number is longer than the four digits by which cards are told apart.
_LONG_NUMBER = re.compile(r"\d(?:[ \u00a0._/-]{0,3}\d){7,}")
_CARD_LENGTH = re.compile(r"(?<![\d+])\d{4}(?:[ \u00a0._/-]{1,3}\d{4}){2,}(?!\d)")
_VALUE = re.compile(r"[^\s,;:=\"'“”«»]{4,200}")
# After one of these the next word is the secret, also without a digit.
_IS = re.compile(r"\s*(?:[^\W\d_]+\s+){0,3}?(?:is|was|es|era|é|היא|הוא|это|هي|هو|[:=—–-])\s*")
# What follows the name of a secret so closely may be the secret.
_NEAR = 80


def holds_secret(content: str, *, clause: str, message: str) -> bool:
    """Return whether the fact tells a secret of the message, in full or in part."""
    content, clause, message = map(_plain, (content, clause, message))
    for text in (content, clause):
        words = passage.words_of(text)
        if _names_password(text, words):
            return True
        has_digit = any(character.isdigit() for character in text)
        if has_digit and _names_pin(words):
            return True
    if redact.holds_secret(content):
        return True
    if _CARD_LENGTH.search(content):
        return True
    names_card = any(
        word in lexicon.words("payment_cards") for word in passage.words_of(content + " " + clause)
    )
    if names_card and _LONG_NUMBER.search(content):
        return True
    return bool(_values(message) & set(_VALUE.findall(content)))


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", passage.without_marks(text))


def _names_password(text: str, words: list[str]) -> bool:
    folded = fold(text)
    return any(word in lexicon.words("passwords") for word in words) or any(
        phrase in folded for phrase in lexicon.phrases("password_phrases")
    )


def _names_pin(words: list[str]) -> bool:
    if any(word in lexicon.words("pins") for word in words):
        return True
    names_code = any(word in lexicon.words("codes") for word in words)
    return names_code and any(word in lexicon.words("locked") for word in words)


def _values(message: str) -> set[str]:
    """Return the words with a digit that follow the name of a secret, also in another sentence."""
    found: set[str] = set()
    for name in re.finditer(r"[^\W_]+(?:[ -][^\W_]+)?", message):
        words = passage.words_of(name.group())
        if _names_password(name.group(), words) or _names_pin(words):
            near = message[name.end() : name.end() + _NEAR]
            found |= {each for each in _VALUE.findall(near) if re.search(r"\d", each)}
            named = _IS.match(near)
            value = _VALUE.match(near, named.end()) if named else None
            if value:
                found.add(value.group())
    return found
