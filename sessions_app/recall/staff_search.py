"""Search messages for staff, by words, in any language.

Words match as messages are indexed, so Hebrew prefixes, niqqud and English endings don't
matter. Meaning and sound are not searched. If no word matches, a part of a word may match among
the newest messages.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from operator import and_
from typing import Any
from uuid import UUID

from django.db.models import F, OuterRef, Q, QuerySet, Subquery, Value

from memories_app.models import Memory, Visibility
from memories_app.visibility import memories_for_staff
from memoryproject.foundation.retrieval.query import informative_terms, query_terms
from memoryproject.foundation.text import terms, tokenizer
from sessions_app.models import Chat, Message

# Terms with these prefixes stand for meaning, sound and roots: see text.terms in the library.
LOOSE = ("@",)
AROUND = 80
# Limit of newest messages in which a frequent word is searched.
RECENT = 5_000
MIN_PART_LENGTH = 2
# Limit of words of a message that are searched for the snippet.
MAX_WORDS = 5_000

# Newest first, in an order that no index has. With the index of times PostgreSQL would scan all
# messages; without it another index is used, such as that of the words.
MAX_UNINDEXED_ROWS = (F("received_at") + Value(timedelta())).desc()

_WORD = re.compile(r"\w+(?:['’״׳]\w+)*")


@dataclass(frozen=True)
class Snippet:
    """The match in a text: the text before it, the match itself, and the text after it."""

    before: str
    hit: str
    after: str


def messages_with(text: str) -> Q | None:
    """Return the messages that hold every word of the text; None if it has no words."""
    words = _wanted(text)
    if not words:
        return None
    return reduce(and_, (Q(terms__overlap=sorted(forms)) for forms in words))


def newest_messages_found(
    messages: QuerySet[Message], text: str, first: int, count: int, *, recent: int = RECENT
) -> list[Message]:
    """Return the newest messages that hold every word of the text, starting at ``first``.

    Revoked messages are never found.
    """
    wanted = messages_with(text)
    if wanted is None:
        return []
    found = messages.filter(wanted, revoked_at__isnull=True).select_related("chat").defer("terms")
    # A frequent word occurs among the newest messages. PostgreSQL doesn't know which word is
    # rare, and would scan all messages by time.
    since = messages.order_by("-received_at").values_list("received_at", flat=True)
    late = since[recent : recent + 1].first()
    newest = found.order_by("-received_at", "-order_num")
    if late is None:
        return list(newest[first : first + count])
    among = list(newest.filter(received_at__gte=late)[first : first + count])
    if len(among) == count:
        return among
    by_words = found.order_by(MAX_UNINDEXED_ROWS, "-order_num")
    return list(by_words[first : first + count])


def messages_with_parts(
    messages: QuerySet[Message], text: str, *, recent: int = RECENT
) -> Q | None:
    """Return the messages that hold this exact text, even as a part of a word.

    An example is the end of an order number. Only the newest ``recent`` are scanned, since no
    index helps. None if the text is a single letter.
    """
    if len(text) < MIN_PART_LENGTH and text.isalnum():
        return None
    since = messages.order_by("-received_at").values_list("received_at", flat=True)
    late = since[recent - 1 : recent].first()
    wanted = Q(content__icontains=text, revoked_at__isnull=True)
    return wanted if late is None else wanted & Q(received_at__gte=late)


def messages_searched(text: str, first: int, count: int) -> tuple[list[Message], bool]:
    """Return the newest messages with these words in all chats, starting at ``first``.

    If no word matches, a part of a word may; the second value says so.
    """
    messages = Message.objects.all()
    found = newest_messages_found(messages, text, first, count)
    if found:
        return found, False
    part = messages_with_parts(messages, text)
    if part is None:
        return [], False
    newest = messages.filter(part).select_related("chat").defer("terms")
    found = list(newest.order_by("-received_at", "-order_num")[first : first + count])
    return found, bool(found)


def snippet_of(content: str, text: str) -> Snippet:
    """Return the text around the first word that matches; else the beginning."""
    forms = set().union(*_wanted(text))
    for place, found in enumerate(_WORD.finditer(content)):
        if place == MAX_WORDS:
            break
        if not forms.isdisjoint(_forms_of(found[0])):
            start, end = found.span()
            return Snippet(_tail(content[:start]), content[start:end], _head(content[end:]))
    at = content.casefold().find(text.casefold())
    if at >= 0:
        end = at + len(text)
        return Snippet(_tail(content[:at]), content[at:end], _head(content[end:]))
    return Snippet("", "", _head(content))


def _wanted(text: str) -> list[set[str]]:
    """Return for each significant word the index terms that match it."""
    found = []
    for term in informative_terms(query_terms(text)):
        forms = {form for form in term.forms if not form.startswith(LOOSE)}
        if forms:
            found.append(forms)
    return found


def _forms_of(word: str) -> set[str]:
    forms = set()
    for token in tokenizer.tokenize(word):
        known = terms.word_forms(token)
        forms |= {known.word, *("~" + form for form in known.bare + known.parts)}
    return forms


def _tail(text: str) -> str:
    return text if len(text) <= AROUND else "…" + text[-AROUND:]


def _head(text: str) -> str:
    return text if len(text) <= 2 * AROUND else text[: 2 * AROUND] + "…"


# Read memories with the chats that they came from, which their own app doesn't know.


def memories_named(within: Q | None = None) -> QuerySet[Any]:
    """Return all memories, each with ``whatsapp_chat``.

    ``within``: only of chats for which this holds of ``chat_id``; the names of other chats are
    never shown.
    """
    chats = Chat.objects.filter(pk=OuterRef("chat_id"))
    named: QuerySet[Memory] = memories_for_staff().defer("terms", "likeness")
    if within is not None:
        named = named.filter(within)
    return named.annotate(whatsapp_chat=Subquery(chats.values("whatsapp_chat")[:1]))


# What a recall shows of a memory beside its text.
SHOWN = (
    *("chat_id", "type", "category", "tags", "visibility", "metadata", "whatsapp_chat"),
    *("client_name", "source", "said_at", "valid_from", "valid_until", "namespace", "key", "value"),
)


def memories_shown(memory_ids: Sequence[UUID]) -> dict[UUID, dict[str, Any]]:
    """Return by id what recall shows of these memories beside their texts."""
    if not memory_ids:
        return {}
    chat = Chat.objects.filter(pk=OuterRef("chat_id"))
    memories = Memory.objects.filter(pk__in=memory_ids).annotate(
        whatsapp_chat=Subquery(chat.values("whatsapp_chat")),
        client_name=Subquery(chat.values("client_name")),
    )
    return {row.pop("pk"): row for row in memories.values("pk", *SHOWN)}


def memories_for_bound(reach: Q) -> Q:
    """Return the memories for a viewer bound to some chats: those of the chats, and public ones.

    ``reach``: the chats of the viewer.
    """
    return reach | Q(visibility=Visibility.PUBLIC)
