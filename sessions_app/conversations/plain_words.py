"""What a message in plain words is: a command, a question, small talk, or a wish for a person.

A message is a command only if all of it is one: where that is doubtful, it isn't.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from memoryproject.foundation.text.characters import shows_nothing
from sessions_app.conversations.phrases import (
    AFTER_FACT,
    COMMANDS,
    DENIALS,
    EVERYONE,
    FORGET_OWN,
    MAX_LENGTH,
    MAX_OPENERS,
    OPENERS,
    PERSON_END,
    SMALL_TALK,
    WISHES,
    Phrase,
    Utterance,
    after_thanks,
    asked_of_people,
    beginning,
    command_starts,
    is_for_service,
    languages,
    phrases_at,
    phrases_in,
    size_at,
    utterance_of,
    without_polite,
    words_of,
)

NAMES = ("remember", "memories", "search", "forget", "reset", "export", "help")

# Our texts have marks of direction before the slash, where they stand in Hebrew or Arabic.
COMMAND = re.compile(r"[\s\u200e\u200f\u2066-\u2069]*/([^\s/]+)(?:\s+(.*))?\s*", re.DOTALL)
_AFTER_WORD = ".:,;!?؟،"

LEADING_MENTION = re.compile(r"\A\s*@\S+\s+")
# What others have said; the quotation mark inside a Hebrew abbreviation is none.
QUOTATION = re.compile(r'(?<!\w)["“„«][^"“”„«»]*["“”»](?!\w)|^>.*$', re.MULTILINE)


@dataclass(frozen=True)
class Command:
    """A parsed command.

    ``name`` is one of ``NAMES``; ``argument`` is the text after it, without surrounding spaces.
    ``language``: that of its words; "" for the English one with its slash, or one of several.
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
    command = _slash_word(found[1]) if found else None
    if found is None or command is None:
        return plain_command(text)
    name, argument = command.name, (found[2] or "").strip()
    if name == "reset" and (argument or found[1][-1] in _AFTER_WORD):
        # It ends the session, so nothing but exactly this word is taken for it.
        return None
    return replace(command, argument="" if shows_nothing(argument) else argument)


def _slash_word(written: str) -> Command | None:
    """Return the command whose word this is, in English or another language."""
    word = _bare(written) or _bare(written.rstrip(_AFTER_WORD))
    return _slash_words().get(word) if word else None


def _bare(written: str) -> str:
    """Return the folded word without apostrophes; "" for what isn't one word alone."""
    whole = re.sub("['’ʼ]", "", written)
    words = words_of(whole)
    is_one = len(words) == 1 and words[0].end - words[0].start == len(whole)
    return words[0].text if is_one else ""


@cache
def _slash_words() -> dict[str, Command]:
    found = {name: Command(name) for name in NAMES}
    for language, data in languages().items():
        for name, written in data.get("commands", {}).items():
            for word in map(_bare, written):
                is_shared = word in found and found[word].language != language
                found[word] = Command(name, language="" if is_shared else language)
    return found


def without_mention(text: str) -> str:
    """Return the text of a message in a group without the mention at its beginning."""
    return LEADING_MENTION.sub("", text)


# Plain words.

MAX_FORGET_WORDS = 8
MIN_FACT_WORDS = 2
MIN_STEM = 4
# A command begins within so many words.
MAX_LEAD = 16
# A wish is made of so many phrases, or fewer.
MAX_RUN = 6
# Signs that end a clause, where a space follows.
CLAUSE_SIGNS = ".,;:!?،؛؟।"
# Between a fact and the command after it.
SIGNS_AFTER_FACT = ".,;:!،؛।–—\n"
# "/remember that …": the word is no part of the fact.
THAT = re.compile(
    r"^(?:(?:that|dass|daß|que|che|что|що|أن|ان|ki|कि|bahwa)[,:]? (?=\S{1,40} )"
    r"|ש(?=(?:אני|אנחנו|יש|אין)(?!\w)|ה[א-ת]{3}))",
    re.IGNORECASE,
)
# What may stand between the words of a command and its fact.
BETWEEN = " \t\n,:;.–—'’ʼ\u200e\u200f"
# A Hebrew prefix may have a hyphen after it, and the dot of its letter.
AFTER_PREFIX = BETWEEN + "-־\u05c1\u05c2"
# Skin tones, joiners and marks that change no sign's meaning.
IGNORED_SIGNS = "\ufe0f\u200d🏻🏼🏽🏾🏿!."
ACK_SIGNS = "👍🙏👌❤💪👏✅😊🙂🎉😀😃😄🤝💯"


def bare_words(text: str) -> str:
    """Return the words of a short message without those of politeness: "yes please" is a yes."""
    bare = without_polite(utterance_of(text) or Utterance("", (), 0))
    return " ".join(word.text for word in bare.words[: bare.end])


def plain_command(text: str) -> Command | None:
    """Return the command that the message surely gives in plain words, or None."""
    message = utterance_of(text)
    if message is None:
        return None
    begins = any(word.text in command_starts() for word in message.words[:MAX_LEAD])
    found = begins and (_command(message) or _command(without_polite(message)))
    return found or _fact_then_command(message)


def _fact_then_command(message: Utterance) -> Command | None:
    """Return the command that follows its fact: "I eat no nuts, please remember that"."""
    for start in range(MIN_FACT_WORDS, message.end):
        last = message.words[start - 1]
        gap = message.text[last.end : message.words[start].start]
        if " - " not in gap and not any(sign in gap for sign in SIGNS_AFTER_FACT):
            continue
        found = phrases_in(message, start, (AFTER_FACT,))
        phrase = next((each for each in found if start + each.size == message.end), None)
        if phrase is None or message.holds_question():
            continue
        clause, first = message._replace(end=start), 0
        while size := size_at(clause, first, (*OPENERS, "greeting")):
            first += size
        rest = [word.text for word in clause.words[first:start]]
        if rest and not _asks_for(rest, phrase.language) and _is_fact(clause, phrase, first, rest):
            fact = message.text[clause.words[first].start : last.end]
            return Command("remember", fact, phrase.language)
    return None


def _asks_for(words: Sequence[str], language: str) -> bool:
    """Return whether words begin like a question, a wish, a denial or another command."""
    found = phrases_at(words, ("asking", "wish", *DENIALS, *COMMANDS))
    # "I" alone begins a wish in Hindi, and much else.
    return any(
        each.language == language and (each.kind != "wish" or each.size > 1) for each in found
    )


def for_everyone(fact: str) -> str:
    """Return a fact without the words that say that all may know it; "" where none say so.

    Only a colon right behind them says so: "for clients that owe us: no credit" is about some, and
    for the owner alone.
    """
    words = words_of(fact[:MAX_LENGTH])
    for phrase in phrases_at([word.text for word in words], (EVERYONE,)):
        rest = fact[words[phrase.size - 1].end :].lstrip()
        if rest.startswith((":", "：")):
            return rest[1:].strip()
    return ""


def _command(message: Utterance) -> Command | None:
    place, is_asked = 0, False
    for _ in range(MAX_OPENERS + 1):
        phrases = phrases_in(message, place)
        for phrase in phrases:
            argument = _argument(message, phrase, place, phrases, is_asked=is_asked)
            if argument is not None:
                name = phrase.kind.partition("_")[0]
                return Command(name, argument, phrase.language)
        opener = next(iter(phrases_in(message, place, kinds=OPENERS)), None)
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
    message = Utterance(text, words, len(words))
    place, found = 0, list[Phrase]()
    while place < len(words):
        phrases = phrases_in(message, place, kinds=(*SMALL_TALK, "closers", *OPENERS))
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
    message = utterance_of(text[:MAX_LENGTH])
    return message is not None and (
        message.holds_question() or "¿" in text or bool(beginning(message, ("asking",)))
    )


def asks_to_forget(text: str) -> bool:
    """Return whether something is to be forgotten, perhaps of others: "forget about the dog"."""
    message = utterance_of(text[:MAX_LENGTH])
    found = beginning(message, FORGET_OWN[:1]) if message else []
    if message is None or not found or message.holds_question():
        return False
    rest = [word.text for word in message.words[found[0].size : message.end]]
    return bool(rest) and _is_memory(rest, frozenset(), found)


def wants_person(text: str) -> bool:
    """Return whether the message is a wish to talk to a human, and not to the assistant."""
    # Who quotes a wish doesn't have it, unless nothing else is said.
    text = own if words_of(own := QUOTATION.sub(" ; ", text)) else text
    # Who tells a long story wishes it at the beginning or at the end.
    end = text[MAX_LENGTH:][-MAX_LENGTH // 2 :].partition(". ")[2]
    return any(_wishes(*clause) for part in (text, end) for clause in _clauses(part))


def denies(text: str) -> bool:
    """Return whether the message says that the last answer was wrong, or no answer."""
    return any(_denies(*clause) for each in (text, after_thanks(text)) for clause in _clauses(each))


def _clauses(text: str) -> Iterator[tuple[Utterance, Collection[int], bool]]:
    """Yield each clause, where it may begin, and whether it is all that is said.

    It begins at its first word, or after each of its opening words.

    Then the same without closing words and without those of politeness.
    """
    message = utterance_of(text[:MAX_LENGTH])
    if message is None:
        return
    whole = message._replace(end=len(message.words))
    for part in (whole, message, without_polite(message)):
        begin = 0
        while begin < part.end:
            end = part.broken_at(begin, CLAUSE_SIGNS)
            clause = Utterance(part.text, part.words[begin:end], end - begin)
            starts = [0]
            while size := size_at(clause, starts[-1], (*OPENERS, "greeting", "acks")):
                starts.append(starts[-1] + size)
            yield clause, starts, begin == 0 and end == part.end
            begin = end


def _wishes(clause: Utterance, starts: Collection[int], is_all: bool) -> bool:
    for begin in range(clause.end):
        is_start = begin in starts
        if size_at(clause, begin, ("person",)) or (is_start and _ends_with_person(clause, begin)):
            return True
        spoken = {phrase.language for phrase in phrases_in(clause, begin, WISHES)}
        if any(_is_wish(clause, begin, each, is_start, is_all and is_start) for each in spoken):
            return True
    return False


def _ends_with_person(clause: Utterance, begin: int) -> bool:
    """Return whether it asks for a person and says no more: not for one "whom I can pay"."""
    is_end = begin + size_at(clause, begin, (PERSON_END,)) == clause.end
    return is_end and not clause.text[clause.words[-1].end :].lstrip().startswith(",")


def _is_wish(clause: Utterance, begin: int, language: str, is_start: bool, is_all: bool) -> bool:
    """Return whether the words from ``begin`` on are a wish that is made of several phrases."""
    kinds, place = set[str](), begin
    for _ in range(MAX_RUN):
        found = phrases_in(clause, place, WISHES[1:]) if place < clause.end else []
        phrase = next((each for each in found if each.language == language), None)
        if phrase is None:
            break
        kinds.add(phrase.kind)
        place += phrase.size
    if "someone" not in kinds:
        return False
    words = languages()[language]
    if begin and clause.words[begin - 1].text in words["negations"] | words["not_wishers"]:
        return False
    if place < clause.end and clause.words[place].text in words["not_after"]:
        return False
    if "contact" in kinds and ("wish" in kinds or is_start):
        return True
    # "Anyone?" alone asks whether somebody is there.
    is_all = is_all and not {word.text for word in clause.words} <= languages()[language]["anybody"]
    is_wish = place == clause.end and ("wish" in kinds or is_all)
    return is_wish and not is_for_service(clause, begin, words)


def _denies(clause: Utterance, starts: Collection[int], is_all: bool) -> bool:
    if any(size_at(clause, place, ("denial",)) for place in range(clause.end)):
        return True
    sizes = {start: size_at(clause, start, ("denial_only",)) for start in starts}
    # A single word says so only where nothing else is said.
    shortest = 1 if is_all else 2
    return any(start + size == clause.end and size >= shortest for start, size in sizes.items())


def _argument(
    message: Utterance, phrase: Phrase, place: int, alike: Sequence[Phrase], *, is_asked: bool
) -> str | None:
    """Return the argument of the command, or None where this is surely no command.

    alike: this phrase and those of other languages.
    """
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
    # Where the verb comes last, a phrase may have no words before the argument.
    gap = message.text[message.words[first - 1].end : start] if first else ""
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
        return argument if is_detail and _is_memory(rest, mine, alike) else None
    if phrase.kind == "remember_colon" and ":" not in gap and not for_everyone(argument):
        return None
    # What is no fact in one of the languages that share the words is none.
    shared = [each for each in alike if each[1:] == phrase[1:]]
    return argument if all(_is_fact(message, each, first, rest) for each in shared) else None


def _is_fact(message: Utterance, phrase: Phrase, first: int, rest: Sequence[str]) -> bool:
    language = languages()[phrase.language]
    if len(rest) < MIN_FACT_WORDS or message.broken_at(first, ".!;") < message.end:
        return False
    if asked_of_people(message, phrase.language, rest):
        return False
    if phrase.kind != "remember_fact":
        return True
    return any(word in language["fact_words"] or word[:1].isdigit() for word in rest)


def _is_memory(rest: Sequence[str], mine: frozenset[str], alike: Sequence[Phrase]) -> bool:
    if len(rest) > MAX_FORGET_WORDS:
        return False
    # Languages share words: "забудьте" is of two. But "se" is "if" in Italian alone.
    if any(not languages()[each.language]["not_memories"].isdisjoint(rest) for each in alike):
        return False
    # A word says whose it is by itself, or by its end ("*ي").
    ends = [f"*{word[-1]}" for word in rest if len(word) >= MIN_STEM]
    return not mine or not mine.isdisjoint([*rest, *ends])


def _of_signs(text: str, language: str) -> tuple[str, str] | None:
    signs = [sign for sign in text if not sign.isspace() and sign not in IGNORED_SIGNS]
    if not signs or len(signs) > MIN_STEM:
        return None
    if all(sign == "👋" for sign in signs):
        return "greeting", language or "en"
    return ("acks", language or "en") if all(sign in ACK_SIGNS for sign in signs) else None
