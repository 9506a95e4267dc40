"""Ratings of answers by staff; nothing of them reaches WhatsApp or a model."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from sessions_app.models.turns import Turn


class RatingReason(models.TextChoices):
    """The reason of a bad rating. No typed text: it would quote the person, and need erasing."""

    WRONG = "wrong", _("It says something wrong")
    OUTDATED = "outdated", _("It was right once")
    UNKNOWN = "unknown", _("It doesn't know what it should")
    BESIDE = "beside", _("It doesn't answer the question")
    TELLS = "tells", _("It tells what it shouldn't")
    TONE = "tone", _("The tone or the language is wrong")
    PERSON = "person", _("A person should have answered")


class AnswerRating(models.Model):
    """A staff member's opinion of an answer: one of each, which may change.

    ``user_name`` outlives the account. ``is_open``: the answer is bad, and nobody has said since
    that it is resolved.
    """

    turn = models.ForeignKey(
        Turn, verbose_name=_("answer"), on_delete=models.CASCADE, related_name="ratings"
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    user_name = models.CharField(_("user name"), max_length=150)
    is_good = models.BooleanField(_("good"))
    reason = models.CharField(_("reason"), max_length=16, choices=RatingReason.choices, blank=True)
    is_open = models.BooleanField(_("open"))
    rated_at = models.DateTimeField(_("rated at"))

    class Meta:
        verbose_name = _("answer rating")
        verbose_name_plural = _("answer ratings")
        # The permissions on conversations apply.
        default_permissions = ()
        ordering: ClassVar = ["rated_at", "id"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["turn", "user"], name="one_rating_a_user"),
            models.CheckConstraint(
                condition=Q(reason__in=["", *RatingReason.values]), name="rating_reason_known"
            ),
            models.CheckConstraint(
                condition=Q(is_good=False) | Q(is_open=False, reason=""), name="good_is_not_open"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["-turn"], condition=Q(is_open=True), name="ratings_open"),
            models.Index(fields=["is_good", "-turn"], name="ratings_by_kind"),
        ]

    def __str__(self) -> str:
        return f"rating of turn {self.turn_id}"


class AnswerResolved(models.Model):
    """Staff have resolved an answer that was to be reviewed."""

    turn = models.OneToOneField(
        Turn,
        verbose_name=_("answer"),
        primary_key=True,
        on_delete=models.CASCADE,
        related_name="resolved",
    )
    resolved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("resolved by"),
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    resolved_at = models.DateTimeField(_("resolved at"))

    class Meta:
        verbose_name = _("resolved answer")
        verbose_name_plural = _("resolved answers")
        default_permissions = ()

    def __str__(self) -> str:
        return f"turn {self.turn_id} is resolved"
