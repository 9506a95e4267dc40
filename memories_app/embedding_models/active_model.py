"""The active embedding model: record the first one, and switch to another one."""

from __future__ import annotations

import logging

from django.db import IntegrityError, transaction
from django.utils import timezone

from memories_app.models import EmbeddingModel, EmbeddingState
from memoryproject.foundation.integrations.embedders.base import Embedder, WrongDimensionsError

logger = logging.getLogger(__name__)


def model_first(*, embedder: Embedder, kind: str, name: str) -> EmbeddingModel:
    """Return the active model. If there is none, the embedder's model becomes active.

    kind, name: EMBEDDER and EMBEDDING_MODEL. Raises EmbedderError if the embedder has to ask
    for its dimensions and the request fails.
    """
    active = EmbeddingModel.objects.filter(state=EmbeddingState.ACTIVE).first()
    if active is not None:
        return active
    recorded = EmbeddingModel.objects.filter(model_id=embedder.model_id).first()
    model = recorded or _new(embedder, kind, name)
    model.state = str(EmbeddingState.ACTIVE)
    model.activated_at = timezone.now()
    try:
        with transaction.atomic():
            model.save()
    except IntegrityError:
        # Another process created it first.
        return EmbeddingModel.objects.get(state=EmbeddingState.ACTIVE)
    logger.info("The embedding model %s is the first one here.", model.model_id)
    return model


def model_verify(*, model: EmbeddingModel, embedder: Embedder) -> None:
    """Check the embedder's dimensions against the record.

    Raises WrongDimensionsError if they differ, EmbedderError if the embedder doesn't answer.
    """
    if embedder.dimensions != model.dimensions:
        raise WrongDimensionsError(
            model.model_id, given=embedder.dimensions, known=model.dimensions
        )


def model_begin(*, embedder: Embedder, kind: str, name: str) -> EmbeddingModel:
    """Return the record of the embedder's model: the active one, or one in preparation.

    An earlier run may have started the preparation. An unfinished preparation of another
    model is abandoned.

    Raises WrongDimensionsError where the model is recorded with other dimensions.
    """
    model = EmbeddingModel.objects.filter(model_id=embedder.model_id).first()
    if model is not None:
        model_verify(model=model, embedder=embedder)
        if model.state == str(EmbeddingState.ACTIVE):
            logger.info("The embedding model %s is in use already.", model.model_id)
            return model
    else:
        model = _new(embedder, kind, name)
    with transaction.atomic():
        given_up = EmbeddingModel.objects.filter(state=EmbeddingState.BUILDING)
        given_up.exclude(model_id=model.model_id).update(
            state=EmbeddingState.RETIRED, retired_at=timezone.now(), cleared_at=None
        )
        model.kind, model.name = kind, name
        model.state = str(EmbeddingState.BUILDING)
        model.retired_at = model.cleared_at = None
        model.save()
    return model


def model_switch(*, model: EmbeddingModel) -> EmbeddingModel | None:
    """Let recall use this model from now on; return the model that was active before.

    The caller's transaction makes it one step.
    """
    with transaction.atomic():
        now = timezone.now()
        before = EmbeddingModel.objects.select_for_update(no_key=True).filter(
            state=EmbeddingState.ACTIVE
        )
        old = before.first()
        if old is not None:
            old.state, old.retired_at, old.cleared_at = str(EmbeddingState.RETIRED), now, None
            old.save(update_fields=["state", "retired_at", "cleared_at"])
        model.state, model.activated_at = str(EmbeddingState.ACTIVE), now
        model.save(update_fields=["state", "activated_at"])
    return old


def _new(embedder: Embedder, kind: str, name: str) -> EmbeddingModel:
    return EmbeddingModel(
        model_id=embedder.model_id,
        kind=kind,
        name=name,
        dimensions=embedder.dimensions,
        calibration_midpoint=embedder.calibration.midpoint,
        calibration_slope=embedder.calibration.slope,
    )
