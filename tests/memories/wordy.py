"""Many texts of made-up words, a few of them frequent and most rare; and the truth about which
of them answer best, by a pass over all of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import numpy as np
from django.db import connection
from django.db.models import Avg, Count, QuerySet

from memories_app.models import Memory
from memories_app.ranking.corpus_stats import IN_USE, Effort, TermStats, term_stats_find
from memories_app.ranking.lexical_search import (
    best_share,
    held_counts,
    matches_find,
    terms_fetch,
)
from memories_app.ranking.ranking import MATCHING, rank
from memories_app.ranking.searched_texts import Question, SearchedTexts, WordSearch
from memories_app.ranking.stored_texts import StoredTexts
from memoryproject.foundation.integrations.embedders.base import Calibration
from memoryproject.foundation.retrieval.reranking import CountedTexts, match_matrix, relevance_of
from memoryproject.foundation.retrieval.subqueries import query_parts, words_of
from memoryproject.foundation.text.terms import IndexedText, index_text

SYLLABLES = (
    "ba",
    "ko",
    "ri",
    "mu",
    "te",
    "lo",
    "sha",
    "vi",
    "ne",
    "da",
    "pra",
    "sto",
    "gil",
    "fen",
)
WORDS = 6_000
# So near to each other are the frequencies of the most frequent words.
FLATNESS = 4
FILLERS = ("the", "is", "with", "for", "about")
FIRST = 10
COLUMNS = (
    "memory_id, content, content_hash, type, category, tags, visibility, chat_id, source, "
    "metadata, status, pinned, told_count, last_told_at, created_at, updated_at, fact_key, "
    "likeness, terms, term_count"
)


class Wordy:
    """Texts and questions; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.words = [self._word() for _ in range(WORDS)]
        self._weights = [1 / (place + FLATNESS) for place in range(WORDS)]
        self._indexed = {word: index_text(word) for word in (*self.words, *FILLERS)}

    def _word(self) -> str:
        return "".join(self._random.choice(SYLLABLES) for _ in range(4))

    def text(self) -> tuple[str, IndexedText]:
        """A text as it is indexed: of 4 to 14 words, some of them fillers."""
        words = self._random.choices(self.words, self._weights, k=self._random.randint(3, 11))
        words += self._random.choices(FILLERS, k=self._random.randint(1, 3))
        terms = [term for word in words for term in self._indexed[word].terms]
        return " ".join(words), IndexedText(terms, len(words))

    def questions(self) -> Iterator[str]:
        """With frequent words alone, with rare ones, with both, with none that is there."""
        at = self.words
        yield f"what about {at[0]}?"
        yield f"the {at[0]} with {at[1]} and {at[2]}"
        yield f"{at[1]} {at[3]} {at[4]} {at[6]} {at[9]}"
        yield f"where is the {at[4_000]}?"
        yield f"{at[0]} {at[900]} {at[2_500]}"
        yield f"{at[2]} {at[5]} {at[30]} {at[90]}"
        yield f"when is the {at[8]} of {at[40]}, and what does {at[700]} say about {at[3]}?"
        yield " ".join([*at[:20], *at[1_000:1_020], "is about the", *at[3_000:3_010]])
        yield "nothing zzyzzyx of this is there"


def memories_fill(count: int, seed: int = 1, visibility: str = "owner") -> Wordy:
    """Memories, and what PostgreSQL knows of them."""
    wordy = Wordy(seed)
    # Which texts are sampled goes by their ids: they are the same each time, or a test would
    # pass on one day and fail on the next.
    ids = random.Random(f"{seed} {count}")
    rows = f"COPY {Memory._meta.db_table} ({COLUMNS}) FROM STDIN"
    with connection.cursor() as cursor:
        with cursor.copy(rows) as copy:
            for number in range(count):
                text, indexed = wordy.text()
                seen = ("fact", "", "{}", visibility, None, "", "{}", "active", False, 1)
                times = ("now", "now", "now")
                found_by = (f"made-up {seed} {number}", "{}", indexed.terms, indexed.length)
                copy.write_row((_random_id(ids), text, "", *seen, *times, *found_by))
        cursor.execute("ANALYZE" if connection.in_atomic_block else "VACUUM ANALYZE")
    return wordy


def _random_id(ids: random.Random) -> UUID:
    return UUID(int=ids.getrandbits(128), version=4)


def held_by_all(question: str, scope: QuerySet[Any]) -> TermStats:
    """The truth: every text is passed over."""
    words = words_of(query_parts(question))
    matches = matches_find(words, scope)
    figures = scope.order_by().aggregate(texts=Count("pk"), length=Avg("term_count"))
    length = float(figures["length"] or 0.0)
    return TermStats(matches, held_counts(words, matches), figures["texts"], length)


def held_with(question: str, scope: QuerySet[Any], effort: Effort = IN_USE) -> TermStats:
    asked = query_parts(question)
    return term_stats_find(asked, words_of(asked), scope, effort=effort)


def best_keys(question: str, texts: SearchedTexts, found: WordSearch | None = None) -> list[UUID]:
    """The first texts by words alone. found: of these words, by default what the texts find."""
    asked = query_parts(question)
    calibration = Calibration(midpoint=0.3, slope=10.0)
    by_words = Question(asked, [None] * len(asked), "none", calibration)
    return texts.ids(rank(by_words, texts, top_k=FIRST, found=found).texts)


def stored(scope: QuerySet[Any]) -> StoredTexts:
    return StoredTexts(scope, model="none", near=0.3)


def found_by(question: str, held: TermStats) -> WordSearch:
    """What a search that knows these words of the scope looks at."""
    asked = query_parts(question)
    words = words_of(asked)
    queries = [held.weigh(text, words) for text in asked]
    best = sorted(
        (match for match in held.matches if match.keys),
        key=lambda match: best_share(match, words, asked, queries),
        reverse=True,
    )
    keys = [key for match in best for key in match.keys][:MATCHING]
    counts = [held.frequencies_of(text, words) for text in asked]
    return WordSearch(words, keys, queries, counts, held.texts)


def share_of_best(
    question: str,
    scope: QuerySet[Any],
    effort: Effort = IN_USE,
    *,
    texts: SearchedTexts | None = None,
) -> float:
    """Of the truly best ten the share that is found. Others that are as good will do.

    texts: where to search the scope, in the database by default.
    """
    truth = held_by_all(question, scope)
    best = _true_scores(
        question, truth, scope, best_keys(question, stored(scope), found_by(question, truth))
    )
    if not best:
        return 1.0
    # The effort in use is that of the product itself.
    found = None if effort == IN_USE else found_by(question, held_with(question, scope, effort))
    keys = best_keys(question, stored(scope) if texts is None else texts, found)
    as_good = [
        score for score in _true_scores(question, truth, scope, keys) if score >= min(best) - 1e-9
    ]
    return min(1.0, len(as_good) / len(best))


def held_of_best(question: str, scope: QuerySet[Any], effort: Effort = IN_USE) -> bool:
    """Whether all of the truly best ten are among those that are looked at."""
    truth = held_by_all(question, scope)
    best = best_keys(question, stored(scope), found_by(question, truth))
    matches = held_with(question, scope, effort).matches
    return set(best) <= {key for match in matches for key in match.keys}


def _true_scores(
    question: str, truth: TermStats, scope: QuerySet[Any], keys: Sequence[UUID]
) -> list[float]:
    asked = query_parts(question)
    words = words_of(asked)
    queries = [truth.weigh(text, words) for text in asked]
    rows = terms_fetch(list(words.of_terms()), scope, keys).values()
    texts = CountedTexts.of([Counter(terms) for _, terms in rows], [length for length, _ in rows])
    scores = [relevance_of(query, match_matrix(query, texts)) for query in queries]
    return [float(score) for score in np.max(scores, axis=0)]
