"""The replay record of an answer: all data that explains the answer."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from sessions_app.models.messages import Message
from sessions_app.models.turns import Turn

# The ids of the memories from which an answer was made, and of those that it lists.
RECALLED_IDS = "jsonb_path_query_array(recalled, '$[*].id') || shown"


class TurnReplay(models.Model):
    """The replay record of a turn.

    ``prompt``: the messages sent to the model. ``recalled``: memories, messages and cards with
    their scores. ``shown``: the ids of the memories that the answer lists. ``left_out``: counts
    of texts that the token budget left out. ``timings`` are in milliseconds.

    The row is stored with the answer. A turn without an answer has none: read it with
    ``TurnReplay.of``.
    """

    turn = models.OneToOneField(
        Turn,
        verbose_name=_("answer"),
        primary_key=True,
        on_delete=models.CASCADE,
        related_name="replay",
    )
    prompt = models.JSONField(_("prompt"), default=list, blank=True)
    recalled = models.JSONField(_("recalled"), default=list, blank=True)
    shown = models.JSONField(_("shown"), default=list, blank=True)
    left_out = models.JSONField(_("left out"), default=dict, blank=True)
    summary = models.ForeignKey(
        Message,
        verbose_name=_("summary"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    model = models.CharField(_("model"), max_length=128, blank=True)
    prompt_tokens = models.PositiveIntegerField(_("prompt tokens"), null=True, blank=True)
    completion_tokens = models.PositiveIntegerField(_("completion tokens"), null=True, blank=True)
    timings = models.JSONField(_("timings"), default=dict, blank=True)

    class Meta:
        verbose_name = _("replay")
        verbose_name_plural = _("replays")
        # The permissions on a turn apply to its replay.
        default_permissions = ()
        indexes: ClassVar = [
            models.Index(fields=["model", "-turn"], condition=~Q(model=""), name="turns_by_model"),
            # Finds the answers that mentioned a memory, when it is forgotten.
            GinIndex(
                models.Func(models.F("recalled"), models.F("shown"), template=f"({RECALLED_IDS})"),
                name="turns_telling",
            ),
        ]

    def __str__(self) -> str:
        return f"replay of turn {self.turn_id}"

    @classmethod
    def of(cls, turn: Turn) -> TurnReplay:
        """Return the turn's replay, an empty unsaved one if none is stored."""
        try:
            return turn.replay
        except cls.DoesNotExist:
            return cls(turn=turn)
