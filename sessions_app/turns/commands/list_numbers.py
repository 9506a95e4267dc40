"""Numbers of list entries: "/forget 2" means entry 2 of the list that the person has just seen."""

from __future__ import annotations

import re
import unicodedata
from datetime import timedelta
from uuid import UUID

from django.db.models import QuerySet

from memories_app.models import Memory
from memories_app.visibility import memories_in_order, memories_visible
from sessions_app.conversations.facade import text_for
from sessions_app.models import Turn
from sessions_app.models.chats import SPEAKER
from sessions_app.models.turns import TurnState
from sessions_app.turns.commands.replies import is_owners, lines_of, list_of, say, system_text
from sessions_app.turns.reply_store import LISTED, Draft

VALID_FOR = timedelta(minutes=10)
# Of a chat in which much is said, the answers after a list are looked at up to here.
LOOKED_AT = 100
WORDS_FOR_NUMBER = {
    *("no", "nr", "num", "number", "numbers", "item", "entry", "memory", "the", "and"),
    *("st", "nd", "rd", "th", "numéro", "numero", "número", "nummer", "номер", "رقم"),
    *("מספר", "מס", "סעיף", "פריט", "זיכרון", "את", "ה", "ו"),
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
    return senders[0] == senders[1] != ""


# /memories [page]: list what is remembered.

A_PAGE = 10
PAGE = re.compile(r"[1-9]\d{0,5}")


def visible_to(turn: Turn) -> QuerySet[Memory]:
    """Return the memories that the author of the message may see."""
    return memories_visible(is_owner=is_owners(turn), is_staff=False, chat_id=turn.chat_id)


def memories_reply(*, turn: Turn, page: str) -> Draft:
    """Return a page of what is remembered; the first page where no number is given."""
    language = turn.chat.language
    memories = memories_in_order(visible_to(turn)).defer("terms")
    count = memories.count()
    if not count:
        return say("memories_none", language)
    pages = -(-count // A_PAGE)
    wanted = int(page) if PAGE.fullmatch(page) else 0 if page else 1
    if not 1 <= wanted <= pages:
        return say("memories_no_page", language, pages=pages)
    start = (wanted - 1) * A_PAGE
    listed = list(memories[start : start + A_PAGE])
    lines = lines_of(listed, turn, first=start + 1)
    text = text_for("memories", language, count=str(count), lines=lines)
    if pages > 1:
        text += "\n\n" + text_for("memories_page", language, page=str(wanted), pages=str(pages))
        if wanted < pages:
            text += text_for("memories_next", language, next=str(wanted + 1))
    return system_text(text, listed=list_of(listed, first=start + 1))
