"""Build the answers of commands: lists of memories, /memories and /export.

"/forget 2" means entry 2 of the list that the person has just seen.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Min, Q, QuerySet

from cards_app.models import MemoryCard
from memories_app.models import Memory, Visibility
from memories_app.visibility import memories_for_staff, memories_in_order, memories_visible
from memoryproject.foundation.audit.audit_events import Actor, audit_record
from memoryproject.foundation.errors.stored_errors import error_text
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import address_forms
from memoryproject.foundation.text.characters import cut_at_word
from sessions_app.conversations import buttons, phrases, plain_words
from sessions_app.conversations.phrases import text_for
from sessions_app.models import GODFATHER, Chat, Message, Outcome, Role, Turn, TurnState
from sessions_app.models.chats import SPEAKER, actor_in, reading_role
from sessions_app.recall.facade import name_in_label
from sessions_app.turns.questions import CHOSEN, QUESTION, Question, question_of
from sessions_app.turns.reply_store import LISTED, Draft

SHORT_ID = 8
MAX_LENGTH = 300


def say(name: str, language: str, **values: object) -> Draft:
    """Return one of our texts as the answer.

    It is not knowledge and never recalled.
    """
    return system_text(text_for(name, language, **{key: str(each) for key, each in values.items()}))


def system_text(
    text: str, *, listed: Mapping[int, UUID | None] | None = None, question: Question | None = None
) -> Draft:
    """Return a text that is put together from our texts.

    ``listed``: the entries of its numbered list, each with its memory if it is one. ``question``:
    what it asks.
    """
    return Draft(
        text=text, is_system_text=True, model="command", listed=listed or {}, question=question
    )


def list_of(memories: Sequence[Memory], *, first: int = 1) -> dict[int, UUID | None]:
    """Return the memories by the numbers that ``lines_of`` gives them."""
    return {number: memory.pk for number, memory in enumerate(memories, start=first)}


def failed(name: str, language: str, error: Exception) -> Draft:
    """Return one of our texts, with the error for staff."""
    draft = say(name, language)
    draft.outcome = Outcome.FAILED
    draft.error = error_text(error)
    return draft


def person(turn: Turn) -> Actor:
    """Return the actor who wrote the message."""
    return actor_in(turn.chat_id, turn.context)


def is_owners(turn: Turn) -> bool:
    """Return whether the command may use and change the memories of all chats."""
    return reading_role(turn.user_role, turn.context) == GODFATHER


def short_ids(ids: Sequence[UUID]) -> dict[UUID, str]:
    """Return the first eight digits of each id, or as many more as make it unique."""
    length = SHORT_ID
    while len({memory_id.hex[:length] for memory_id in ids}) < len(set(ids)):
        length += 4
    return {memory_id: memory_id.hex[:length] for memory_id in ids}


def lines_of(memories: Sequence[Memory], turn: Turn, *, first: int = 1) -> str:
    """Return the memories as a numbered list, with the details that identify them."""
    language = turn.chat.language
    ids = short_ids([memory.pk for memory in memories])
    names = _chat_names(memories, turn)
    lines = []
    for number, memory in enumerate(memories, start=first):
        marks = [ids[memory.pk]]
        if memory.visibility == str(Visibility.PUBLIC):
            marks.append(text_for("mark_public", language))
        if who := names.get(memory.pk) or names.get(memory.chat_id):
            marks.append(text_for("mark_of_chat", language, who=who))
        if memory.pinned:
            marks.append(text_for("mark_pinned", language))
        lines.append(numbered(number, memory.content or str(memory), marks))
    return "\n".join(lines)


def numbered(number: int, content: str, marks: Iterable[str]) -> str:
    """Return one entry of a numbered list.

    Marks stand on a line of their own, so that they don't mix with a Hebrew text.
    """
    text = cut_at_word(" ".join(content.split()), MAX_LENGTH)
    return f"{number}. {text}\n    {' · '.join(marks)}"


def _chat_names(memories: Sequence[Memory], turn: Turn) -> dict[UUID | None, str]:
    """Return the names of other chats, which only the godfather sees; in a group by memory."""
    if turn.chat.is_group:
        sources = {memory.source_message_id: memory.pk for memory in memories}
        written = Message.objects.filter(chat=turn.chat_id, pk__in=sources.keys() - {None})
        names = written.values_list("pk", "metadata__sender_name")
        return {sources[key]: name_in_label(name) for key, name in names if name}
    if not is_owners(turn):
        return {}
    others = {memory.chat_id for memory in memories if memory.chat_id} - {turn.chat_id}
    chats = Chat.objects.filter(pk__in=others)
    return {chat.pk: name_in_label(chat.shown_name) for chat in chats}


# Numbers of list entries.


VALID_FOR = timedelta(minutes=10)
# Of a chat in which much is said, the answers after a list are looked at up to here.
LOOKED_AT = 100
WORDS_FOR_NUMBER = {
    *("no", "nr", "num", "number", "numbers", "item", "entry", "memory", "the", "and"),
    *("st", "nd", "rd", "th", "numéro", "numero", "número", "nummer", "numara", "номер"),
    *("nomor", "رقم", "מספר", "מס", "סעיף", "סעיפ", "פריט", "זיכרון", "את", "ה", "ו"),
}
MIN_PHONE_DIGITS = 7
MIN_PHONE_GROUP = 4
_WORD = re.compile(r"[^\W\d_]+")
_DIGITS = re.compile(r"\d+")
_JOINED = re.compile(r"\d+(?:[-./()]+\d+)*")
# Two entries: one line may be a sentence that begins with a number.
_NUMBERED_LIST = re.compile(r"^\W{0,9}\d{1,3}[.)](?s:.*?)^\W{0,9}\d{1,3}[.)]", re.MULTILINE)


def numbers_in(text: str) -> list[int] | None:
    """Return the numbers of a text that is nothing but numbers, or None for another text.

    A word for "number", signs and the digits of any script don't matter. A phone number, or a date
    that is as long, is another text.
    """
    plain = "".join(_plain(each) for each in unicodedata.normalize("NFKC", text)).lower()
    if any(word not in WORDS_FOR_NUMBER for word in _WORD.findall(plain)):
        return None
    groups = _DIGITS.findall(plain)
    if not groups or _is_long_number(plain, groups):
        return None
    return [int(group) for group in groups]


def _number_named(text: str) -> list[int] | None:
    """Return the number that a text names in words: "number two please", "the second one"."""
    number = _numbers_named().get(_without_words_for_number(plain_words.bare_words(text)))
    return [number] if number else None


def _without_words_for_number(text: str) -> str:
    words = (word.text for word in phrases.words_of(text))
    return " ".join(word for word in words if word not in WORDS_FOR_NUMBER)


@cache
def _numbers_named() -> dict[str, int]:
    return {
        _without_words_for_number(name): number
        for data in phrases.languages().values()
        for number, names in enumerate(data["ordinals"], start=1)
        for name in names
    }


def _plain(character: str) -> str:
    """Return a digit of any script as an ASCII digit; leave out invisible marks."""
    digit = unicodedata.decimal(character, None)
    if digit is not None:
        return str(digit)
    return "" if unicodedata.category(character) in ("Cf", "Me", "Mn") else character


def _is_long_number(plain: str, groups: list[str]) -> bool:
    joined = (sum(map(str.isdigit, run)) for run in _JOINED.findall(plain))
    if plain.lstrip().startswith("+") or max(joined) >= MIN_PHONE_DIGITS:
        return True
    is_phone = len(groups[0]) > 1 and groups[0].startswith("0")
    is_phone |= any(len(group) >= MIN_PHONE_GROUP for group in groups)
    return is_phone and sum(map(len, groups)) >= MIN_PHONE_DIGITS


def list_shown(turn: Turn) -> dict[int, UUID | None] | None:
    """Return the memories of the list to which a number in this message refers, by their numbers.

    It is the last list that was sent to the same person in the same chat within ten minutes. None
    stands for an entry that is no memory. Return None without such a list, and where a later answer
    has a list of another kind.
    """
    since = turn.asked_at - VALID_FOR
    earlier = Turn.objects.filter(
        chat_id=turn.chat_id, provider=turn.provider, pk__lt=turn.pk, finished_at__gte=since
    )
    for each in earlier.select_related("message", "reply").order_by("-pk")[:LOOKED_AT]:
        if not _is_same_person(each, turn):
            continue
        if LISTED in each.context:
            # An answer that may not have arrived was perhaps not seen.
            is_seen = each.state == TurnState.SENT
            return _numbered(each.context[LISTED]) if is_seen else None
        if each.reply is not None and _NUMBERED_LIST.search(each.reply.content):
            return None
    return None


def numbers_listed(turn: Turn) -> dict[int, UUID | None]:
    """Return the memories that a turn's answer listed, by their numbers."""
    return _numbered(turn.context.get(LISTED, {}))


def _numbered(listed: dict[str, str | None]) -> dict[int, UUID | None]:
    return {int(number): UUID(key) if key else None for number, key in listed.items()}


def _is_same_person(earlier: Turn, turn: Turn) -> bool:
    """Return whether both are answers to one person; what staff write is for all."""
    if earlier.by_hand:
        return True
    if earlier.context.get(SPEAKER) != turn.context.get(SPEAKER):
        return False
    if not turn.chat.is_group:
        return True
    senders = [each.message.sender if each.message else "" for each in (earlier, turn)]
    return senders[1] != "" and senders[0] in address_forms(senders[1])


# Choices that people make, where an answer asked.


# The key of a turn's context for the id of the memory that it forgot.
FORGOTTEN = "forgotten"
# A title or a number with what people write around it.
MAX_TYPED = 30


@dataclass(frozen=True)
class Choosing:
    """A choice that a message makes. ``question``: the turn that asked, None where it is closed."""

    question: Turn | None
    asks: str = ""
    key: str = ""


def choice_made(turn: Turn, text: str) -> Choosing | None:
    """Return the choice that a message makes: by a button of ours, or typed right after a question.

    A question is open for ten minutes, to the person that it was asked, until it is answered, or
    another list or question follows.
    """
    pressed = buttons.button_pressed(turn.message.metadata) if turn.message is not None else None
    if pressed is not None:
        _asks, turn_id, key = pressed
        asking = Turn.objects.filter(turn_id=turn_id, chat_id=turn.chat_id, pk__lt=turn.pk).first()
        question = question_of(asking) if asking is not None else None
        if asking is None or question is None or key not in question.options:
            return Choosing(None)
        is_open = _is_same_person(asking, turn) and not _is_closed(asking, turn)
        return Choosing(asking if is_open else None, question.asks, key)
    typed = plain_words.without_mention(text) if turn.chat.is_group else text
    if len(typed) > MAX_TYPED:
        # Most messages are longer: they cost no query.
        return None
    asking = _before(turn).first()
    question = question_of(asking) if asking is not None else None
    if asking is None or question is None or asking.state != TurnState.SENT:
        return None
    key_typed = question.key_typed(typed, numbers_in(typed) or _number_named(typed))
    if key_typed is None or not _is_same_person(asking, turn):
        return None
    return Choosing(asking, question.asks, key_typed)


def _before(turn: Turn) -> QuerySet[Turn]:
    """Return the chat's turns of the last ten minutes, newest first, without what staff wrote."""
    since = turn.asked_at - VALID_FOR
    earlier = Turn.objects.filter(chat_id=turn.chat_id, pk__lt=turn.pk, finished_at__gte=since)
    return earlier.filter(by_hand=False).select_related("message").order_by("-pk")


def _is_closed(asking: Turn, turn: Turn) -> bool:
    """Return whether the question is too old, or something that ends it came after it."""
    if asking.finished_at is None or asking.finished_at < turn.asked_at - VALID_FOR:
        return True
    ends = (QUESTION, CHOSEN, LISTED, FORGOTTEN)
    later = _before(turn).filter(pk__gt=asking.pk)[:LOOKED_AT]
    return any(
        any(name in each.context for name in ends) and _is_same_person(each, turn) for each in later
    )


# /memories [page]: list what is remembered.

A_PAGE = 10
PAGE = re.compile(r"[1-9]\d{0,5}")


def visible_to(turn: Turn) -> QuerySet[Memory]:
    """Return the memories that the author of the message may see."""
    return memories_visible(is_owner=is_owners(turn), is_staff=False, chat_id=turn.chat_id)


def memories_reply(*, turn: Turn, page: str) -> Draft:
    """Return a page of what is remembered; the first page where no number is given.

    What is remembered of this chat comes first: of everyone there may be much.
    """
    language = turn.chat.language
    visible, own = visible_to(turn).defer("terms"), _own(turn)
    theirs = memories_in_order(visible.filter(own))
    others = memories_in_order(visible.exclude(own))
    first = theirs.count()
    count = first + others.count()
    if not count:
        return say("memories_none", language)
    pages = -(-count // A_PAGE)
    wanted = int(page) if PAGE.fullmatch(page) else 0 if page else 1
    if not 1 <= wanted <= pages:
        return say("memories_no_page", language, pages=pages)
    start = (wanted - 1) * A_PAGE
    rest = max(start - first, 0)
    listed = list(theirs[start : start + A_PAGE])
    listed += others[rest : max(start + A_PAGE - first, 0)]
    lines = lines_of(listed, turn, first=start + 1)
    text = text_for("memories", language, count=str(count), lines=lines)
    if pages > 1:
        text += "\n\n" + text_for("memories_page", language, page=str(wanted), pages=str(pages))
        if wanted < pages:
            text += text_for("memories_next", language, next=str(wanted + 1))
    return system_text(text, listed=list_of(listed, first=start + 1))


# /export: list what is known about the person who asks.


# More would flood a phone; staff can export a longer list.
MAX_EXPORTED = 200
MAX_CARDS = 50
EXPORTED = "exported"


def export_reply(*, turn: Turn) -> Draft:
    """List the memories of this chat and summarize what is stored of the conversation.

    The godfather's list also has the owner's memories. The conversation is given in counts and by
    the titles of its cards. Nothing of other people is included.
    """
    language = turn.chat.language
    rest = "export_rest_godfather" if is_owners(turn) else "export_rest_client"
    memories = memories_in_order(visible_to(turn).filter(_own(turn))).defer("terms")
    count = memories.count()
    listed = list(memories[:MAX_EXPORTED])
    text = text_for(
        "export",
        language,
        memories=_exported_memories(listed, count, turn),
        history=_history(turn),
        rest=text_for(rest, language),
    )
    _export_record(turn, count)
    return system_text(text, listed=list_of(listed))


def _own(turn: Turn) -> Q:
    own = Q(visibility=Visibility.CHAT, chat_id=turn.chat_id)
    if is_owners(turn):
        own |= Q(visibility=Visibility.OWNER)
    return own


def _exported_memories(listed: Sequence[Memory], count: int, turn: Turn) -> str:
    language = turn.chat.language
    if count:
        lines = lines_of(listed, turn)
        if count > len(listed):
            lines += "\n" + text_for("and_more", language, count=str(count - len(listed)))
        text = text_for("export_memories", language, lines=lines)
    else:
        text = text_for("export_no_memories", language)
    old = memories_for_staff().filter(_own(turn)).count() - count
    if old > 0:
        text += "\n\n" + text_for("export_old", language, count=str(old))
    return text


def _history(turn: Turn) -> str:
    language = turn.chat.language
    figures = Message.objects.filter(chat_id=turn.chat_id, revoked_at__isnull=True).aggregate(
        yours=Count("pk", filter=Q(role=Role.USER)),
        ours=Count("pk", filter=Q(role=Role.ASSISTANT)),
        sessions=Count("session", distinct=True),
        since=Min("timestamp"),
    )
    since = figures.pop("since")
    if since is None:
        return text_for("export_no_history", language)
    counts = {name: str(count) for name, count in figures.items()}
    history = text_for("export_history", language, since=f"{since:%Y-%m-%d}", **counts)
    return history + _cards(turn)


def _cards(turn: Turn) -> str:
    """Return the summary cards of earlier sessions, newest first."""
    language = turn.chat.language
    cards = MemoryCard.objects.filter(chat_id=turn.chat_id).order_by("-session_started_at")
    listed = list(cards.only("session_started_at", "title")[:MAX_CARDS])
    if not listed:
        return ""
    lines = [f"- {card.session_started_at:%Y-%m-%d}: {card.title}" for card in listed]
    count = cards.count()
    if count > MAX_CARDS:
        lines.append(text_for("and_more", language, count=str(count - MAX_CARDS)))
    return "\n\n" + text_for("export_cards", language, count=str(count), lines="\n".join(lines))


def _export_record(turn: Turn, count: int) -> None:
    """Record the export once for the turn, however often the turn runs."""
    if EXPORTED in turn.context:
        return
    with transaction.atomic():
        Turn.objects.filter(pk=turn.pk).update(context={**turn.context, EXPORTED: True})
        audit_record("export", person(turn), "chat", turn.chat_id, memories=count, by="command")
