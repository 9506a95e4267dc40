"""What is corrupt in vectors and their index is found, and made again."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from memories_app.models import EmbeddingModel, MemoryEmbedding
from memories_app.vector_search import index_name

# An index is made beside the others' transactions, so it takes real ones.
from tests.embedding.reembedding import FACT, FACTS, OLD, ask, run
from tests.loopback.openai_server import OpenAIServer
from tests.memories.bulk import memories_store
from tests.world import CLIENT, World

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("at_first_wordllama"),
]


def test_recovery_002_vectors_and_index_come_back_from_the_stored_texts(world: World) -> None:
    """RECOVERY-002: what is corrupt is found, and made again."""
    world.say(CLIENT, "My daughter likes walnuts")
    memories_store([FACT, *FACTS[:50]])
    run(rebuild_index=True)
    assert run(check=True)["problems"] == []
    before = vectors()

    MemoryEmbedding.objects.update(vector=[1.0] * 256)
    with pytest.raises(CommandError, match="--rebuild"):
        call_command("memories_reembed", check=True, stdout=(printed := StringIO()))
    assert "aren't those of their texts" in printed.getvalue()
    done = run(rebuild=True)

    assert done["memories"] == 51
    assert done["index_made"]
    assert vectors() == before
    assert run(check=True)["problems"] == []
    assert ask()[0].similarity is not None


def vectors() -> dict[Any, list[float]]:
    rows = MemoryEmbedding.objects.values_list("memory_id", "vector")
    return {key: list(vector) for key, vector in rows}


def test_recovery_002_a_missing_or_broken_index_is_found_and_made_again() -> None:
    memories_store([FACT])
    for damage in (
        f"DROP INDEX IF EXISTS {index_name(OLD)}",
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = "
        f"to_regclass('{index_name(OLD)}')",
    ):
        with connection.cursor() as cursor:
            cursor.execute(damage)
        with pytest.raises(CommandError, match="--rebuild-index"):
            call_command("memories_reembed", check=True, stdout=StringIO())

        assert run(rebuild_index=True) == {"index_made": True}
        assert run(check=True)["index"] == "valid"


def store_beside_the_index(texts: list[str]) -> None:
    """Memories that the index doesn't know of."""
    ready = f"UPDATE pg_index SET indisready = %s WHERE indexrelid = '{index_name(OLD)}'::regclass"
    with connection.cursor() as cursor:
        cursor.execute(ready, [False])
    memories_store(texts)
    with connection.cursor() as cursor:
        cursor.execute(ready, [True])


def test_recovery_002_an_index_that_lost_its_entries_is_found() -> None:
    run(rebuild_index=True)
    store_beside_the_index(FACTS[:20])

    with pytest.raises(CommandError, match="--rebuild-index"):
        call_command("memories_reembed", check=True, stdout=(printed := StringIO()))

    assert "leads astray from 20 of 20" in printed.getvalue()
    run(rebuild_index=True)
    assert run(check=True)["problems"] == []


def test_a_few_texts_that_the_index_does_not_reach_are_told_and_no_damage() -> None:
    """As happens to a whole index, where many texts are equally far from each other."""
    run(rebuild_index=True)
    memories_store(FACTS[:16])
    store_beside_the_index(["My daughter likes walnuts", "My daughter really likes walnuts"])

    found = run(check=True)

    assert (found["astray"], found["looked_from"]) == (2, 18)
    assert found["problems"] == []


def test_recovery_002_vectors_of_a_wrong_size_are_found() -> None:
    memories_store([FACT])
    MemoryEmbedding.objects.update(vector=[1.0, 2.0])

    with pytest.raises(CommandError):
        call_command("memories_reembed", check=True, stdout=(printed := StringIO()))

    assert "1 vectors of memories_app_memoryembedding have a wrong size" in printed.getvalue()


def test_a_rebuild_takes_other_dimensions(settings: Any, use_openai: OpenAIServer) -> None:
    """A local server's model was changed under its name, and that is what is wanted."""
    settings.EMBEDDING_MODEL = "local-model"
    memories_store([FACT])
    run(keep_old=0)
    EmbeddingModel.objects.filter(state="active").update(dimensions=768)

    done = run(rebuild=True)

    assert done["memories"] == 1
    assert EmbeddingModel.objects.get(state="active").dimensions == 384
    assert run(check=True)["problems"] == []


def test_without_a_model_check_says_what_to_do() -> None:
    EmbeddingModel.objects.all().delete()

    with pytest.raises(CommandError, match="--init"):
        call_command("memories_reembed", check=True)
