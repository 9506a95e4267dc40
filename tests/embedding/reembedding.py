"""What the tests of memories_reembed share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from memories_app.models import EmbeddingModel
from memories_app.vector_search import index_drop
from sessions_app.embedding.choice import embedder
from sessions_app.recall.facade import MEMORIES, Hit, Viewer, recall

# An index is made beside the others' transactions, so it takes real ones.
OLD = "wordllama-256"
NEW = "openai:text-embedding-3-small"
FACT = "TestCorp owes me an invoice"
FACTS = [f"Comp{number} has office {number} in street {number}" for number in range(600)]
OWNER = Viewer(user_role="godfather")


@pytest.fixture
def at_first_wordllama(transactional_db: None) -> Iterator[None]:
    """The model in use; its index, and those that a test makes, go with the test."""
    embedder()
    yield
    for model_id in EmbeddingModel.objects.values_list("model_id", flat=True):
        index_drop(model_id=model_id)


def run(**options: Any) -> dict[str, Any]:
    printed = StringIO()
    call_command("memories_reembed", json=True, stdout=printed, **options)
    found: dict[str, Any] = json.loads(printed.getvalue())
    return found


def ask(question: str = "TestCorp's invoice") -> list[Hit]:
    return recall(query=question, viewer=OWNER, embedder=embedder(), sources=[MEMORIES]).hits
