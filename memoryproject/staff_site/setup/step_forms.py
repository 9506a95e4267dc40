"""The forms of the set-up's steps."""

import json
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar
from zoneinfo import available_timezones

from django import forms
from django.conf import settings
from django.conf.locale import LANG_INFO
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _, gettext_lazy

from memoryproject import environment, settings_table
from memoryproject.foundation.audit.audit_events import staff_edit_record
from memoryproject.foundation.integrations.whatsapp.registry import PROVIDERS
from memoryproject.foundation.text.phone_numbers import number_shown
from memoryproject.staff_site.operations import change_setting
from memoryproject.staff_site.setup.steps import LABELS
from sessions_app.conversations import epochs, history_queries
from sessions_app.models import AssistantProfile
from sessions_app.stored_settings import is_set_elsewhere

MAX_NUMBERS = 20
# The languages in which people are answered: sessions_app/conversations/languages.
LANGUAGES = ("en", "he", "ar", "de", "es", "fr", "hi", "id", "it", "pt", "ru", "tr", "uk")
# Servers of models: their names, addresses, and the name of a model there as an example.
PRESETS: dict[str, tuple[str, str, str]] = json.loads(
    Path(__file__).with_name("model_servers.json").read_text(encoding="utf-8")
)


def owner_id(text: str, country: str) -> str:
    """Return the WhatsApp id of a number in any spelling, or of an id as it is.

    ``country``: of a number without its country code, as ISO 3166 writes it. Raises
    ValidationError.
    """
    import phonenumbers  # noqa: PLC0415 slow to import

    if environment.WHATSAPP_ID.fullmatch(text):
        return text
    number = f"+{text[2:]}" if text.startswith("00") else text
    # With or without the plus, and as people of the country dial it.
    for form, region in ((number, country or None), (f"+{number.lstrip('+')}", None)):
        try:
            parsed = phonenumbers.parse(form, region)
        except phonenumbers.NumberParseException:
            continue
        # The browser guesses the country: a zero that isn't dialled there belongs to another one.
        fits = not parsed.italian_leading_zero or phonenumbers.is_valid_number(parsed)
        if fits and phonenumbers.is_possible_number(parsed) and not parsed.extension:
            digits = phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.E164)
            return f"{digits.removeprefix('+')}@c.us"
    raise forms.ValidationError(
        _("%(number)s is no telephone number. Write it with its country code, or choose a country.")
        % {"number": text[:40]}
    )


def _countries() -> list[tuple[str, Any]]:
    import phonenumbers  # noqa: PLC0415 slow to import

    found = sorted(phonenumbers.SUPPORTED_REGIONS)
    codes = [(each, phonenumbers.country_code_for_region(each)) for each in found]
    return [("", _("in the number")), *((each, f"{each} +{code}") for each, code in codes)]


class OwnerForm(change_setting.SettingsForm):
    """Takes the owner's numbers in any spelling."""

    labels = LABELS["owner"]

    country = forms.ChoiceField(
        label=gettext_lazy("Country"),
        choices=_countries,
        required=False,
        help_text=gettext_lazy("For a number that is written without its country code."),
    )

    def __init__(self, data: Any = None) -> None:
        super().__init__(data)
        field = self.fields["GODFATHER_PHONE"]
        ids = sorted(settings.GODFATHER_PHONE)
        field.initial = ", ".join(map(number_shown, ids))
        field.required = not field.disabled
        field.help_text = field.help_text or _(
            "Such as +972 50 123 4567. Several are separated by commas."
        )
        field.widget.attrs.update({"inputmode": "tel", "autocomplete": "tel", "dir": "ltr"})

    def clean(self) -> dict[str, Any]:
        """Write each number as an id."""
        cleaned: dict[str, Any] = super().clean() or {}
        typed = change_setting.INVISIBLE.sub("", cleaned.get("GODFATHER_PHONE") or "")
        numbers = [word.strip() for word in re.split(r"[,;\n]", typed) if word.strip()]
        if numbers and not self.fields["GODFATHER_PHONE"].disabled:
            try:
                ids = [owner_id(each, cleaned["country"]) for each in numbers[:MAX_NUMBERS]]
                cleaned["GODFATHER_PHONE"] = ",".join(dict.fromkeys(ids))
            except forms.ValidationError as error:
                self.add_error("GODFATHER_PHONE", error)
        return cleaned


class ProfileForm(forms.ModelForm):  # type: ignore[type-arg]
    """The part of the profile that a new business fills in first."""

    main_language = forms.ChoiceField(
        label=gettext_lazy("Main language of your clients"),
        choices=[(code, LANG_INFO[code]["name_local"].capitalize()) for code in LANGUAGES],
        help_text=gettext_lazy("Each person is answered in the language that they write."),
    )
    was = forms.CharField(widget=forms.HiddenInput, required=False)

    class Meta:
        model = AssistantProfile
        fields = ("business_name", "business_facts", "opening_hours")
        widgets: ClassVar = {
            "business_name": forms.TextInput(attrs={"dir": "auto"}),
            "business_facts": forms.Textarea(attrs={"rows": 4, "dir": "auto"}),
            "opening_hours": forms.Textarea(attrs={"rows": 2, "dir": "auto"}),
        }

    def __init__(self, data: Any = None, *, instance: AssistantProfile) -> None:
        super().__init__(data, instance=instance)
        self.initial["was"] = instance.updated_at.isoformat() if instance.updated_at else ""
        self.initial["main_language"] = instance.languages.partition(",")[0].strip()

    def save_now(self) -> list[str]:
        """Save what was typed; return the names of the changed fields."""
        first = self.cleaned_data["main_language"]
        others = [code.strip() for code in self.instance.languages.split(",")]
        self.instance.languages = ", ".join(dict.fromkeys([first, *filter(None, others)]))[:64]
        changed = [name for name in self.changed_data if name != "was"]
        if changed:
            self.instance.save()
        return ["languages" if name == "main_language" else name for name in changed]


class BusinessForm(change_setting.SettingsForm):
    """The business's time zone, with the fields of its profile in ``profile``."""

    labels = LABELS["business"]

    def __init__(self, data: Any = None) -> None:
        super().__init__(data)
        self.profile = ProfileForm(data, instance=history_queries.profile_current())
        self.fields["BUSINESS_TIME_ZONE"].widget.attrs.update({"list": "zones", "dir": "ltr"})

    @property
    def zones(self) -> Sequence[str]:
        return sorted(zone for zone in available_timezones() if "/" in zone)

    def store(self, request: HttpRequest, **more: str) -> bool:
        """Store both parts, or none."""
        self.status = change_setting.UNFIT
        with transaction.atomic():
            stored = epochs.profile_locked()
            seen = stored.updated_at.isoformat()
            self.profile = ProfileForm(self.data, instance=stored)
            if not self.profile.is_valid():
                return False
            if self.profile.cleaned_data["was"] not in ("", seen):
                text = _("Somebody else changed this meanwhile. Load the page again.")
                self.profile.add_error(None, text)
                self.status = change_setting.CONFLICT
                return False
            if not super().store(request, **more):
                return False
            fields = self.profile.save_now()
            staff_edit_record(request, "profile.update", "profile", stored.pk, fields)
        return True


class ModelForm(change_setting.SettingsForm):
    """The server of the chat model. A preset gives the address where none is typed."""

    labels = LABELS["model"]

    preset = forms.ChoiceField(
        label=gettext_lazy("Which server"),
        choices=[("", gettext_lazy("another")), *((key, row[0]) for key, row in PRESETS.items())],
        required=False,
    )

    def texts(self) -> dict[str, str]:
        found = super().texts()
        preset = PRESETS.get(self.cleaned_data["preset"])
        if preset and not found.get("OPENAI_BASE_URL", "-"):
            found["OPENAI_BASE_URL"] = preset[1]
        moves = found.get("OPENAI_BASE_URL", settings.OPENAI_BASE_URL) != settings.OPENAI_BASE_URL
        if moves and not self.fields["OPENAI_API_KEY"].disabled:
            # No server is sent the key of another one.
            found.setdefault("OPENAI_API_KEY", "")
        return found

    def clean(self) -> dict[str, Any]:
        """Require a model's name, whose default is OpenAI's."""
        cleaned: dict[str, Any] = super().clean() or {}
        is_openai = cleaned.get("preset") == "openai" or not (
            cleaned.get("preset") or cleaned.get("OPENAI_BASE_URL")
        )
        if not cleaned.get("OPENAI_MODEL") and not is_openai and not self.errors:
            self.add_error("OPENAI_MODEL", _("Write the model's name, as its server calls it."))
        return cleaned

    def store(self, request: HttpRequest, **more: str) -> bool:
        return super().store(request, **changeable({"CHAT_MODEL": "openai"}), **more)


class CloudForm(change_setting.SettingsForm):
    """What Meta's pages show of an app."""

    provider = "cloud"
    labels = LABELS["cloud"]
    # What the provider sends us back: made here, to be pasted there.
    token = "WHATSAPP_CLOUD_VERIFY_TOKEN"  # noqa: S105 its name

    def clean(self) -> dict[str, Any]:
        """Refuse what is plainly no id or token: a telephone number, a whole header."""
        cleaned: dict[str, Any] = super().clean() or {}
        # A disabled field has words about what is set elsewhere.
        for name in (each for each in self.of if not self.fields[each].disabled):
            typed = change_setting.INVISIBLE.sub("", cleaned.get(name) or "").strip()
            if "_ID" in name and not re.fullmatch(r"[0-9, ]*", typed):
                self.add_error(name, _("This id has only digits; it isn't the telephone number."))
            elif settings_table.OWN_SETTINGS[name].secret and re.search(r"[^\s,]\s+[^\s,]", typed):
                self.add_error(name, _("There is a space in it: copy the value alone."))
        return cleaned

    def store(self, request: HttpRequest, **more: str) -> bool:
        record = PROVIDERS[self.provider]
        ours = {"WHATSAPP_PROVIDER": self.provider}
        if record.url_setting not in self.of:
            # The demo may have left the address of its stand-in.
            ours[record.url_setting] = ""
        if not getattr(settings, self.token):
            ours[self.token] = secrets.token_urlsafe(24)
        return super().store(request, **changeable(ours), **more)


class GreenForm(CloudForm):
    """What Green API's console shows of an instance."""

    provider = "green"
    labels = LABELS["green"]
    token = "GREEN_API_WEBHOOK_TOKEN"  # noqa: S105 its name


def changeable(texts: dict[str, str]) -> dict[str, str]:
    """Return those of the settings that .env and the environment leave to us."""
    return {name: text for name, text in texts.items() if not is_set_elsewhere(name)}


FORMS: dict[str, type[change_setting.SettingsForm]] = {
    "owner": OwnerForm,
    "business": BusinessForm,
    "model": ModelForm,
    "cloud": CloudForm,
    "green": GreenForm,
}
