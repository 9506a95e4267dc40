"""Staff's search in what was said, in any language: by the words as messages are indexed, so that
Hebrew prefixes, niqqud and English endings don't matter; never by meaning or by sound. Where no
word fits, a part of one does, among the newest messages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from operator import and_

from django.db.models import F, Q, QuerySet, Value

from memoryproject.foundation.text.query import informative_terms, query_terms
from memoryproject.foundation.text.terms import word_forms
from memoryproject.foundation.text.tokens import tokenize
from sessions_app.models import Message

# Terms behind these marks are about meaning, sound and roots: see the ground floor's text.terms.
LOOSE = ("=", "@", "*", "?")
AROUND = 80
# Among so many of the newest messages a frequent word is looked for.
RECENT = 5_000
MIN_PART_LENGTH = 2
# So many words of a message are looked through for the place to show.
MAX_WORDS = 5_000

# The newest first, in an order that no index has. By the index of times PostgreSQL would go through
# all messages to those it looks for; without it another index is left: the words', say.
MAX_UNINDEXED_ROWS = (F("received_at") + Value(timedelta())).desc()

_WORD = re.compile(r"\w+(?:['’״׳]\w+)*")


@dataclass(frozen=True)
class Snippet:
    """The place in a text that was found: what stands before it, itself, and after it."""

    before: str
    hit: str
    after: str


def messages_with(text: str) -> Q | None:
    """Messages that hold every word of the text; None where it has no words."""
    words = _wanted(text)
    if not words:
        return None
    return reduce(and_, (Q(terms__overlap=sorted(forms)) for forms in words))


def newest_messages_found(
    messages: QuerySet[Message], text: str, first: int, count: int, *, recent: int = RECENT
) -> list[Message]:
    """Those of the messages that hold every word of the text, from the ``first`` of the newest
    on; revoked ones are found by nobody."""
    wanted = messages_with(text)
    if wanted is None:
        return []
    found = messages.filter(wanted, revoked_at__isnull=True).select_related("chat").defer("terms")
    # A frequent word stands among the newest. PostgreSQL doesn't know which one is rare, and would
    # look for it through all messages by their time.
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
    """Messages that hold this very text, if only as a part of a word, such as the end of an order's
    number: among the newest ``recent``, since no index helps. None where the text is one letter."""
    if len(text) < MIN_PART_LENGTH and text.isalnum():
        return None
    since = messages.order_by("-received_at").values_list("received_at", flat=True)
    late = since[recent - 1 : recent].first()
    wanted = Q(content__icontains=text, revoked_at__isnull=True)
    return wanted if late is None else wanted & Q(received_at__gte=late)


def snippet_of(content: str, text: str) -> Snippet:
    """Around the first word of the content that the text asks for; else its beginning."""
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
    """For each telling word the index terms that count as it."""
    found = []
    for term in informative_terms(query_terms(text)):
        forms = {form for form, _ in term.alternatives if not form.startswith(LOOSE)}
        if forms:
            found.append(forms)
    return found


def _forms_of(word: str) -> set[str]:
    forms = set()
    for token in tokenize(word):
        known = word_forms(token)
        forms |= {known.word, *("~" + form for form in known.bare + known.parts)}
    return forms


def _tail(text: str) -> str:
    return text if len(text) <= AROUND else "…" + text[-AROUND:]


def _head(text: str) -> str:
    return text if len(text) <= 2 * AROUND else text[: 2 * AROUND] + "…"
