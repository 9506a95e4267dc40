"""The assistant's profile, which staff edit, and settings that administrators changed."""

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class AssistantProfile(models.Model):
    """The assistant's profile: one row, with id 1."""

    name = models.CharField(_("name"), max_length=64, default="DeniDin")
    business_name = models.CharField(
        _("business name"),
        max_length=80,
        blank=True,
        help_text=_("Stands for {business} in canned replies. Empty: the assistant's name."),
    )
    persona = models.TextField(
        _("persona"),
        blank=True,
        default=(
            "You help manage business operations and client relationships. "
            "You are friendly, brief and exact."
        ),
        help_text=_("What the assistant does, and its tone."),
    )
    business_facts = models.TextField(
        _("business facts"),
        blank=True,
        help_text=_("Facts for everyone: services, prices, address, policies."),
    )
    opening_hours = models.TextField(
        _("opening hours"),
        blank=True,
        help_text=_("In words, such as “Sunday to Thursday 9:00–18:00”."),
    )
    # Texts as staff write them, by the names of the fields of their form: see sessions_app/hours.
    hours = models.JSONField(
        _("opening hours"), default=dict, db_default={}, blank=True, editable=False
    )
    languages = models.CharField(
        _("languages"),
        max_length=64,
        default="en, he",
        help_text=_(
            "Codes separated by commas. The first one is used when a chat's language isn't known."
        ),
    )
    privacy_notice_en = models.TextField(
        _("privacy notice in English"),
        blank=True,
        help_text=_("Stands before the first answer to each person. Empty: nothing is added."),
    )
    privacy_notice_he = models.TextField(
        _("privacy notice in Hebrew"),
        blank=True,
        help_text=_("For chats in Hebrew. Empty: the English one is sent."),
    )
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta:
        verbose_name = _("assistant's profile")
        verbose_name_plural = _("assistant's profile")
        constraints = [models.CheckConstraint(condition=Q(id=1), name="one_assistant_profile")]

    def __str__(self) -> str:
        return self.name


# Settings that administrators changed while the server ran.


class StoredSetting(models.Model):
    """A setting that is stored: see sessions_app/stored_settings.py.

    ``value``: as one writes it into .env; that of a secret is encrypted. ``changed_by``: a staff
    member's user name, or a command's.
    """

    name = models.CharField(_("name"), max_length=64, primary_key=True)
    value = models.TextField(_("value"))
    changed_by = models.CharField(_("changed by"), max_length=255)
    changed_at = models.DateTimeField(_("changed at"), default=timezone.now)

    class Meta:
        verbose_name = _("stored setting")
        verbose_name_plural = _("stored settings")
        default_permissions = ()

    def __str__(self) -> str:
        return self.name


class OpeningHours(AssistantProfile):
    """The part of the profile that has a form and a right of its own."""

    class Meta:
        proxy = True
        verbose_name = _("opening hours")
        verbose_name_plural = _("opening hours")

    def __str__(self) -> str:
        return str(_("Opening hours"))
