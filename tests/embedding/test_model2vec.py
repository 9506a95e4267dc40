"""EMBEDDER=model2vec, on a small model that the tests make."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.checks import ERROR, WARNING
from model2vec import StaticModel

from memoryproject.foundation.integrations.embedders.base import Embedder, EmbedderError
from memoryproject.foundation.integrations.embedders.model2vec_embedder import Model2VecEmbedder
from sessions_app.embedding.checks import embedder_is_there
from tests.embedding.models import make_model

PROJECT = Path(__file__).resolve().parents[2]
TEXTS = [
    "TestCorp owes me an invoice",
    "the office in Tel Aviv",
    "החשבונית של משרד חיפה",
    "word that it knows: dog, payment",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def embedder(folder: str) -> Embedder:
    return Model2VecEmbedder(folder)


def test_vectors_are_those_of_the_package_in_length_one(embedder: Embedder, folder: str) -> None:
    theirs = StaticModel.from_pretrained(folder).encode(TEXTS)

    ours = embedder.embed(TEXTS)

    assert embedder.dimensions == 32
    for vector, other in zip(ours, theirs.tolist(), strict=True):
        assert math.hypot(*vector) == pytest.approx(1.0)
        assert vector == pytest.approx(other, abs=1e-5)


def test_a_quantised_model_gives_what_the_package_gives(tmp_path: Path, folder: str) -> None:
    """Its vocabulary shares vectors, by a mapping and with weights."""
    model = StaticModel.from_pretrained(folder)
    size = len(model.tokens)
    quantised = StaticModel(
        model.embedding[: size // 2],
        model.tokenizer,
        normalize=True,
        weights=np.linspace(0.5, 2.0, size, dtype=np.float32),
        token_mapping=np.arange(size) % (size // 2),
    )
    quantised.save_pretrained(tmp_path / "quantised")

    ours = Model2VecEmbedder(str(tmp_path / "quantised")).embed(TEXTS)

    for vector, other in zip(ours, quantised.encode(TEXTS).tolist(), strict=True):
        assert vector == pytest.approx(other, abs=1e-5)


def test_a_long_text_is_not_cut_off(embedder: Embedder) -> None:
    (plain, longer) = embedder.embed(["dog " * 3_000, "dog " * 3_000 + "cat " * 3_000])

    assert plain != pytest.approx(longer, abs=1e-3)


def test_the_id_is_of_the_content_not_of_the_path(folder: str, tmp_path: Path) -> None:
    moved = shutil.copytree(folder, tmp_path / "moved")
    other = make_model(tmp_path / "other", seed=2)
    one = Model2VecEmbedder(folder)

    assert Model2VecEmbedder(str(moved)).model_id == one.model_id
    assert Model2VecEmbedder(other).model_id != one.model_id
    assert one.model_id.startswith("model2vec:")
    assert "/" not in one.model_id


@pytest.mark.parametrize("name", ["nowhere", "./no/where", "/nowhere/at-all", "a/b/c"])
def test_a_missing_folder_is_told_by_the_check(settings: Any, name: str) -> None:
    settings.EMBEDDER = "model2vec"
    settings.EMBEDDING_MODEL = name

    (found,) = embedder_is_there()

    assert found.level == ERROR
    assert f"EMBEDDING_MODEL is {name}" in found.msg


@pytest.mark.parametrize("content", [b"", b"\xff" * 64, b"\x02\0\0\0\0\0\0\0{}"])
def test_damaged_weights_are_told(folder: str, tmp_path: Path, content: bytes) -> None:
    damaged = Path(shutil.copytree(folder, tmp_path / "damaged"))
    (damaged / "model.safetensors").write_bytes(content)

    with pytest.raises(EmbedderError, match="can't be read") as caught:
        Model2VecEmbedder(str(damaged))

    assert caught.value.permanent


@pytest.mark.processes
def test_without_the_package_the_check_says_how_to_install_it(folder: str) -> None:
    """In a Python of its own, in which the package can't be found."""
    code = (
        "import sys; sys.modules['model2vec'] = None\n"
        "from memoryproject.foundation.integrations.embedders.base import EmbedderError\n"
        "from memoryproject.foundation.integrations.embedders import model2vec_embedder\n"
        "try: model2vec_embedder.Model2VecEmbedder(sys.argv[1])\n"
        "except EmbedderError as error: print(error)"
    )

    told = subprocess.run(
        [sys.executable, "-c", code, folder],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert "pip install model2vec" in told


@pytest.mark.processes
def test_a_name_that_cannot_be_downloaded_is_a_warning() -> None:
    """The hub may be back later; until then recall goes by words. Nothing leaves this machine:
    the hub is told to be offline."""
    code = (
        "import os, django; os.environ['HF_HUB_OFFLINE'] = '1'\n"
        "django.setup()\n"
        "from django.conf import settings\n"
        "settings.EMBEDDER = 'model2vec'; settings.EMBEDDING_MODEL = 'nobody/no-such-model'\n"
        "from sessions_app.embedding.checks import embedder_is_there\n"
        "(found,) = embedder_is_there(); print(found.level, found.msg)"
    )

    told = subprocess.run(
        [sys.executable, "-c", code],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "memoryproject.settings"},
    ).stdout

    assert told.startswith(f"{WARNING} EMBEDDING_MODEL is nobody/no-such-model")
