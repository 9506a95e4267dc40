"""Texts for the benchmark of the staff's pages: English and Hebrew, a few words very frequent and
most rare, as in any language; with all that the product stores of a text."""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from memories_app.facts.facts import fact_key, likeness_of
from memoryproject.foundation.text.terms import index_text

# ruff: noqa: SIM905 words are read more easily so
ENGLISH = (
    "the to and a of in is you for it that on I with we be this have at can my will your me not "
    "please are so if but was they do or from as when our by what how there about an all just out "
    "he she need no up would call meeting time order new order price today tomorrow invoice send "
    "thanks office delivery week payment address number morning phone back email monday sunday "
    "table coffee paid pay discount contract client late open closed supplier receipt group lunch "
    "dinner birthday cake bakery opening hours warranty parking menu allergy reservation project"
).split()
HEBREW = (
    "את של על לא זה אני הוא עם כי יש גם אם מה כל רק אבל היא או אין לי היה כמה בסדר אנחנו אפשר "
    "תודה היום מחר בבקשה שלום הזמנה מחיר פגישה חשבונית כתובת טלפון משרד משלוח תשלום שבוע בוקר "
    "ערב ראשון שני שלישי רביעי חמישי שישי קפה שולחן לקוח ספק חוזה קבלה הנחה עוגה מאפייה פתוח סגור "
    "שעות יום הולדת קבוצה צהריים אחריות חניה תפריט אלרגיה פרויקט לקבל לשלם להתקשר לשלוח לבדוק"
).split()
SYLLABLES = "ba ko ri mu te lo sha vi ne da pra sto gil fen zor tal mi".split()
HEBREW_SYLLABLES = "בר קו רי מו תל לו שא וי נה דג פר סט גל פן זו טל מי".split()
OWN_WORDS = 12_000
# So near to each other are the frequencies of the most frequent words.
FLATNESS = 2.7
HEBREW_SHARE = 0.4
PROCESSES = 2

COMMON, HEBREW_WORD, RARE, NOTHING = "invoice", "חשבונית", "zyqorvane", "nothingofthisisthere"


@dataclass(frozen=True)
class Text:
    """A text as it is stored."""

    content: str
    terms: list[str]
    length: int
    fact_key: str
    likeness: list[str]


class Language:
    """Frequent words that there are, and a long tail of words that could be."""

    def __init__(self, words: list[str], syllables: list[str], chance: random.Random) -> None:
        tail = ("".join(chance.choices(syllables, k=3)) for _ in range(OWN_WORDS))
        self.words = list(dict.fromkeys([*words, *tail]))
        self.weights = list(accumulate(1 / (n + FLATNESS) for n in range(len(self.words))))
        self.chance = chance

    def sentence(self) -> str:
        count = min(80, 2 + int(self.chance.expovariate(1 / 9)))
        return " ".join(self.chance.choices(self.words, cum_weights=self.weights, k=count))


def texts_made(count: int, seed: int = 7) -> Iterator[Text]:
    """So many; the first holds the rare word, which no other does."""
    chance = random.Random(seed)
    english = Language(ENGLISH, SYLLABLES, chance)
    hebrew = Language(HEBREW, HEBREW_SYLLABLES, chance)
    said = [
        _said(hebrew if chance.random() < HEBREW_SHARE else english, chance) for _ in range(count)
    ]
    said[0] = f"{RARE} {said[0]}"
    # Call this before the database is used: the processes share what this one has open.
    with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
        yield from pool.imap(text_prepared, said, chunksize=500)


def _said(language: Language, chance: random.Random) -> str:
    text = language.sentence()
    text = text[0].upper() + text[1:] + chance.choice((".", "?", "!", ""))
    if chance.random() < 0.1:
        text += f" {chance.randrange(1, 28)}/{chance.randrange(1, 13)}/2026"
    if chance.random() < 0.05:
        text += f" {chance.randrange(10, 5_000)} ₪"
    return text


def text_prepared(content: str) -> Text:
    """With the product's own functions."""
    indexed = index_text(content)
    return Text(
        content, indexed.terms, indexed.length, fact_key(content), likeness_of(content).keys
    )


def rows_of(texts: Iterable[Text]) -> Iterator[tuple[object, ...]]:
    """As rows of ``bench_text``."""
    for number, text in enumerate(texts):
        yield (number, text.content, text.terms, text.length, text.fact_key, text.likeness)
