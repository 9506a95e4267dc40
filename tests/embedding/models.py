"""Small models that tests make themselves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from model2vec import StaticModel
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import BertPreTokenizer

WORDS = [
    *("testcorp", "owes", "me", "an", "invoice", "payment", "office", "haifa", "dog", "cat"),
    *("pay", "##ment", "the", "in", "days", "tel", "aviv", "חשבונית", "משרד", "חיפה"),
]
# Letters that a model meets alone, as English ones meet Hebrew: they say nothing.
HEBREW = "אבגדהוזחטיכלמנסעפצקרשתםןץףך"
LETTERS = [*HEBREW, *(f"##{letter}" for letter in HEBREW)]


def make_model(
    folder: Path, *, dimensions: int = 32, seed: int = 1, words: Sequence[str] = WORDS
) -> str:
    """A model2vec model in this folder; its path."""
    vocabulary = ["[UNK]", *dict.fromkeys([*words, *LETTERS, "7", "##7", "!"])]
    pieces = WordPiece({word: number for number, word in enumerate(vocabulary)}, unk_token="[UNK]")
    tokenizer = Tokenizer(pieces)
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = BertPreTokenizer()
    chance = np.random.default_rng(seed)
    vectors = chance.normal(size=(len(vocabulary), dimensions)).astype(np.float32)
    StaticModel(vectors, tokenizer, normalize=True).save_pretrained(folder)
    return str(folder)
