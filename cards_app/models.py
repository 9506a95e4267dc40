"""The stored memory card of a session (seed 001)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.utils.translation import gettext_lazy as _

from cards_app.memory_card import FIELDS, Card

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise


def _texts(verbose_name: _StrPromise) -> ArrayField[list[str], list[str]]:
    return ArrayField(models.TextField(), verbose_name=verbose_name, default=list, blank=True)


class MemoryCard(models.Model):
    """The card of a session, made from its messages by rules.

    ``session_id`` and ``chat_id`` are plain columns: this app knows no sessions.
    ``source_digest`` is a hash of the card's source and the version of the rules. If it is equal,
    the card isn't made again. ``session_started_at`` orders the cards of a chat.
    """

    session_id = models.UUIDField(verbose_name=_("session"), primary_key=True, editable=False)
    chat_id = models.UUIDField(_("chat id"))
    session_started_at = models.DateTimeField(verbose_name=_("session began"))
    title = models.TextField(_("title"))
    summary_bullets = _texts(_("summary bullets"))
    decisions = _texts(_("decisions"))
    todos = _texts(_("todos"))
    entities = _texts(_("entities"))
    keywords = _texts(_("keywords"))
    notable_quotes = _texts(_("notable quotes"))
    outcome = models.JSONField(
        _("outcome"),
        null=True,
        blank=True,
        help_text=_("What was settled last, what is open, and who has to act."),
    )
    algorithm_version = models.CharField(verbose_name=_("version of the rules"), max_length=16)
    extracted_at = models.DateTimeField(verbose_name=_("made"))
    source_digest = models.CharField(
        _("source digest"), max_length=64, editable=False, help_text=_("SHA-256, hex.")
    )
    last_order = models.PositiveIntegerField(
        _("last order"), help_text=_("Number of the session's last message when the card was made.")
    )
    terms = ArrayField(
        models.TextField(), verbose_name=_("terms"), default=list, blank=True, editable=False
    )

    class Meta:
        verbose_name = _("memory card")
        verbose_name_plural = _("memory cards")
        ordering: ClassVar = ["-session_started_at"]
        indexes: ClassVar = [
            models.Index(fields=["chat_id", "-session_started_at"], name="cards_of_a_chat"),
            models.Index(fields=["-session_started_at"], name="cards_listed"),
            GinIndex(fields=["terms"], name="card_terms"),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def card(self) -> Card:
        """Return the card as it was generated."""
        fields = {name: getattr(self, name) for name in FIELDS if name != "title"}
        return Card(
            title=self.title,
            **{name: tuple(items) for name, items in fields.items()},
            session_id=str(self.session_id),
            outcome=self.outcome,
            algorithm_version=self.algorithm_version,
            extracted_at=self.extracted_at,
        )
