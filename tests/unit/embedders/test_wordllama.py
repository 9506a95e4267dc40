"""The default embedder: what it knows, and that it asks nobody."""

from __future__ import annotations

import importlib.util
import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from memoryproject.foundation.integrations.embedders import wordllama
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from tests.tables import table

EMBEDDER = WordLlamaEmbedder()

UNKNOWN = {
    "Hebrew": "מה המצב עם החשבונית של הלקוח מחודש שעבר?",
    "Arabic": "مرحبا، متى تفتحون المتجر اليوم؟",
    "Russian": "Привет, сколько стоит доставка сегодня?",
    "Ukrainian": "Скільки коштує доставка сьогодні?",
    "Greek": "Πόσο κοστίζει η αποστολή σήμερα;",
    "Chinese": "今天送货多少钱？",
    "Japanese": "配達はいくらですか",
    "Korean": "오늘 배송비가 얼마인가요?",
    "Thai": "วันนี้ค่าส่งเท่าไหร่",
    "Hindi": "आज डिलीवरी कितने की है?",
}

NO_NETWORK = """
import logging, sys

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        print("network:", event, arguments)
        raise SystemExit(3)

sys.addaudithook(refuse)
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
vector = WordLlamaEmbedder().embed(["Where is the invoice?"])[0]
print(len(vector), len(logging.getLogger().handlers), logging.getLogger().level)
"""


def cosine(left: str, right: str) -> float:
    one, two = EMBEDDER.embed([left, right])
    return sum(a * b for a, b in zip(one, two, strict=True))


def test_it_is_an_embedder_of_256_dimensions() -> None:
    embedder: Embedder = EMBEDDER
    assert (embedder.model_id, embedder.dimensions) == ("wordllama-256", 256)
    vectors = embedder.embed(["Dana owes TestCorp 5,000", "hi"])
    assert [len(vector) for vector in vectors] == [256, 256]
    assert [math.hypot(*vector) for vector in vectors] == pytest.approx([1.0, 1.0])


def test_related_texts_are_nearer_than_unrelated_ones() -> None:
    question = "What's the status with TestCorp?"
    related = cosine(question, "TestCorp owes me ₪5,000 from invoice INV-001")
    assert related > cosine(question, "The shop opens on Sunday at nine") + 0.3


def test_a_text_has_the_same_vector_alone_in_company_and_from_threads() -> None:
    texts = ["short", "a much longer text about the delivery of an order " * 20, "third"]
    together = EMBEDDER.embed(texts)
    assert [EMBEDDER.embed([text])[0] for text in texts] == together
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: WordLlamaEmbedder().embed(texts), range(16)))
    assert all(result == together for result in results)


@pytest.mark.parametrize("text", ["", "   \n", "😀👍"])
def test_nothing_to_embed_is_the_zero_vector_and_not_covered(text: str) -> None:
    assert EMBEDDER.embed([text]) == [[0.0] * 256]
    assert EMBEDDER.coverage(text) == 0.0


def test_no_texts_give_no_vectors() -> None:
    assert EMBEDDER.embed([]) == []


def test_the_matrix_is_the_packages_file_which_all_processes_share() -> None:
    spec = importlib.util.find_spec("wordllama")
    assert spec is not None
    assert spec.origin is not None
    weights = Path(spec.origin).resolve().parent / "weights" / "l2_supercat_256.safetensors"
    matrix = wordllama._model().matrix
    assert isinstance(matrix, np.memmap)
    assert (matrix.mode, Path(str(matrix.filename)).resolve()) == ("r", weights)
    assert np.array_equal(matrix, load_file(weights)["embedding.weight"])


def test_hostile_text_is_embedded_too() -> None:
    for text in ("a\x00b", "lone \ud800 surrogate", "<unk></s>", "x" * 200_000):
        assert math.hypot(*EMBEDDER.embed([text])[0]) == pytest.approx(1.0)
        assert 0.0 <= EMBEDDER.coverage(text) <= 1.0


@table(
    "text",
    [
        "Where is the invoice for last month's order?",
        "Dana owes TestCorp ₪5,000 from invoice INV-001 👍",
        "INV-001",
        "TestCorp",
        "12345",
        "OK",
    ],
)
def test_english_names_codes_and_numbers_are_known(text: str) -> None:
    assert EMBEDDER.coverage(text) == 1.0


@table("language", UNKNOWN)
def test_other_scripts_are_unknown_with_numbers_or_without(language: str) -> None:
    assert EMBEDDER.coverage(UNKNOWN[language]) < 0.1
    assert EMBEDDER.coverage(UNKNOWN[language] + " 50,000 2025") < 0.1


@pytest.mark.processes
def test_loading_asks_no_network_and_leaves_logging_alone() -> None:
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    environment = {name: text for name, text in os.environ.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-c", NO_NETWORK],
        capture_output=True,
        text=True,
        env={**environment, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    # 30 is WARNING, the level of a root logger that nobody configured.
    assert (done.returncode, done.stdout.strip()) == (0, "256 0 30"), done.stdout + done.stderr
