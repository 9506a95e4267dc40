"""The access of a chat to the assistant, and its usage."""

from django.conf import settings
from django.db import models
from django.db.models import CASCADE, SET_NULL, Q
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.choices import known, labelled
from sessions_app.models.chats import Chat


class Standing(models.TextChoices):
    """The decision of staff about a chat."""

    NONE = labelled("", _("not decided"))
    ALLOWED = labelled("allowed", _("allowed"))
    BLOCKED = labelled("blocked", _("blocked"))


class StandingReason(models.TextChoices):
    """The reason of the decision. A fixed list: nothing in it has to be erased with a person."""

    NONE = labelled("", _("no reason"))
    CLIENT = labelled("client", _("a client"))
    SPAM = labelled("spam", _("spam"))
    ABUSE = labelled("abuse", _("abuse"))
    COST = labelled("cost", _("writes too much"))
    OTHER = labelled("other", _("another reason"))


class ChatAccess(models.Model):
    """The access of a chat. A chat without a row has used nothing and nobody decided.

    ``opted_out_at``: the person has stopped the assistant. ``marketing_at``: when they last said on
    WhatsApp whether they want marketing messages of ours. ``noticed_turn``: the id of the turn
    whose answer carried the privacy notice. The hour of ``hour_messages`` and ``hour_commands``
    begins with its first message, at ``hour_began_at``; ``hour_told`` says that the chat was told
    of the limit in this hour.

    Every field but ``noticed_turn`` is written with the chat's row locked.
    """

    chat = models.OneToOneField(
        Chat, CASCADE, verbose_name=_("chat"), primary_key=True, related_name="access"
    )
    standing = models.CharField(
        _("standing"), max_length=8, choices=Standing, blank=True, default=Standing.NONE
    )
    reason = models.CharField(
        _("reason"), max_length=8, choices=StandingReason, blank=True, default=StandingReason.NONE
    )
    decided_at = models.DateTimeField(_("decided at"), null=True, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        SET_NULL,
        "+",
        verbose_name=_("decided by"),
        null=True,
        blank=True,
        help_text=_("Removed with the account."),
    )
    opted_out_at = models.DateTimeField(_("opted out at"), null=True, blank=True)
    marketing_stopped = models.BooleanField(
        _("marketing messages stopped"), default=False, db_default=False
    )
    marketing_at = models.DateTimeField(_("marketing messages decided at"), null=True, blank=True)
    noticed_turn = models.BigIntegerField(_("answer with the privacy notice"), null=True)
    hour_began_at = models.DateTimeField(_("start of the hour"), null=True, blank=True)
    hour_messages = models.PositiveIntegerField(_("messages this hour"), default=0)
    hour_commands = models.PositiveIntegerField(_("commands this hour"), default=0)
    hour_told = models.BooleanField(_("notified this hour"), default=False)

    class Meta:
        # The permission is Chat's takeover_chat.
        verbose_name = _("chat access")
        verbose_name_plural = _("chat access")
        default_permissions = ()
        constraints = [known("standing", Standing, "chat_standing_known")]
        indexes = [
            models.Index(
                fields=["standing"], condition=~Q(standing=""), name="chats_with_a_standing"
            ),
            models.Index(
                fields=["opted_out_at"],
                condition=Q(opted_out_at__isnull=False),
                name="chats_opted_out",
            ),
        ]

    def __str__(self) -> str:
        return f"access of {self.chat_id}"


class UsageDay(models.Model):
    """The usage of the chat model by one chat on one day of the business's time zone.

    Answers, summaries and extraction count. ``cost`` is in the currency of MODEL_PRICES, as it was
    at that time; models without a price cost nothing here. ``reached``: the limit that the chat
    reached, one of the day rather than one of an hour. ``told_turn``: the id of the turn whose
    answer told the person so.
    """

    chat = models.ForeignKey(
        Chat, CASCADE, "usage", verbose_name=_("chat"), db_index=False
    )  # the constraint's index serves
    day = models.DateField(_("day"))
    is_owner = models.BooleanField(_("by the owner"), default=False)
    model_calls = models.PositiveIntegerField(_("model calls"), default=0)
    prompt_tokens = models.PositiveBigIntegerField(_("prompt tokens"), default=0)
    completion_tokens = models.PositiveBigIntegerField(_("completion tokens"), default=0)
    cost = models.DecimalField(_("cost"), max_digits=16, decimal_places=8, default=0)
    reached = models.CharField(_("reached limit"), max_length=32, blank=True)
    reached_at = models.DateTimeField(_("reached at"), null=True, blank=True)
    told_turn = models.BigIntegerField(_("answer with the limit notice"), null=True)

    class Meta:
        verbose_name = _("daily usage")
        verbose_name_plural = _("daily usage")
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["chat", "day"], name="usage_once_a_day")]
        indexes = [models.Index(fields=["day"], name="usage_by_day")]

    def __str__(self) -> str:
        return f"usage of {self.chat_id} on {self.day}"

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens
