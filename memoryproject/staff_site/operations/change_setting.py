"""The form of settings that may be changed while the server runs, and the page with one of them."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters

from memoryproject.environment import Boolean, Choice
from memoryproject.foundation.audit.audit_events import staff_actor
from memoryproject.foundation.errors.stored_errors import translate_error
from memoryproject.settings_table import CHANGEABLE, OWN_SETTINGS
from memoryproject.staff_site.operations.provider_test import operations_page
from memoryproject.staff_site.operations.settings_in_force import (
    origin_shown,
    stored_shown,
    value_shown,
)
from sessions_app import stored_settings
from sessions_app.models import StoredSetting
from sessions_app.trials.change_trial_page import TRIED_SETTINGS, setting_try

# Pages that a value is copied from put these around it; nobody sees them.
INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
CONFLICT, UNFIT = 409, 422


class SettingsForm(forms.Form):
    """A field for each of some settings, named as they are, with what is stored.

    The field of a secret is empty; left so, the secret stays. A field is disabled where .env or the
    environment wins. ``labels``: by name, of the settings that the form takes where no others are
    named; by default the setting's own name.
    """

    labels: ClassVar[Mapping[str, Any]] = {}

    seen = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, data: Any = None, *, names: Iterable[str] = ()) -> None:
        super().__init__(data)
        self.of = tuple(names) or tuple(self.labels)
        self.initial["seen"] = stored_settings.settings_seen(self.of)
        stored = StoredSetting.objects.in_bulk(self.of)
        for name in self.of:
            self.fields[name] = setting_field(name, stored.get(name))
            self.fields[name].label = self.labels.get(name, name)
        self.status = 200
        self.removes = False

    def texts(self) -> dict[str, str]:
        """Return the typed values by name, without secrets that stay as they are."""
        if self.removes:
            return dict.fromkeys(self.of, "")
        typed = {
            name: INVISIBLE.sub("", self.cleaned_data[name]).strip()
            for name in self.of
            if not self.fields[name].disabled
        }
        return {name: text for name, text in typed.items() if text or not OWN_SETTINGS[name].secret}

    def store(self, request: HttpRequest, **more: str) -> bool:
        """Store what was typed, and ``more``; return whether it is stored.

        The form has the errors, and the HTTP status of its page in ``status``.
        """
        self.status = UNFIT
        if not self.is_valid():
            return False
        try:
            stored_settings.settings_store(
                texts={**more, **self.texts()},
                actor=staff_actor(request),
                seen=(self.of, self.cleaned_data["seen"]),
            )
        except stored_settings.InvalidSettingsError as error:
            for name, text in error.errors.items():
                self.add_error(name if name in self.fields else None, translate_error(text))
            return False
        except stored_settings.ChangedMeanwhileError:
            self.add_error(None, _("Somebody else changed this meanwhile. Load the page again."))
            self.status = CONFLICT
            return False
        self.status = 200
        return True


def setting_field(name: str, stored: StoredSetting | None) -> forms.CharField | forms.ChoiceField:
    """Return the field of a setting. ``stored``: what is stored of it."""
    setting = OWN_SETTINGS[name]
    elsewhere = stored_settings.is_set_elsewhere(name)
    text = stored_settings.stored_text(name, stored.value) if stored and not setting.secret else ""
    shown = value_shown(name, getattr(settings, name))
    if isinstance(setting, Boolean | Choice) and not elsewhere:
        words = setting.choices if isinstance(setting, Choice) else ("true", "false")
        default = _("%(value)s (default)") % {"value": value_shown(name, setting.default)}
        choices = [("", default), *((word, word) for word in words)]
        return forms.ChoiceField(choices=choices, initial=text, required=False)
    field = forms.CharField(
        initial=shown if elsewhere else text,
        required=False,
        disabled=elsewhere,
        max_length=stored_settings.MAX_CHARACTERS,
        widget=forms.TextInput(attrs={"dir": "auto", "autocomplete": "off", "spellcheck": "false"}),
    )
    if elsewhere:
        field.help_text = _("Set in %(origin)s, which wins.") % {"origin": origin_shown(name)}
    elif setting.secret:
        field.widget = forms.PasswordInput(attrs={"dir": "ltr", "autocomplete": "new-password"})
        if unread := stored_settings.stored_problems().get(name):
            field.help_text = translate_error(unread)
        elif stored is not None:
            field.help_text = _("%(stored)s. Leave it empty to keep it.") % {
                "stored": stored_shown(stored)
            }
    elif setting.default not in (None, "", [], {}, frozenset()):
        field.widget.attrs["placeholder"] = value_shown(name, setting.default)
    return field


@sensitive_post_parameters()
def change_setting_page(request: HttpRequest, name: str) -> HttpResponseBase:
    """Show the form of a setting; store what was typed, or remove what is stored."""
    if name not in CHANGEABLE:
        raise Http404
    form = SettingsForm(request.POST or None, names=[name])
    form.removes = request.POST.get("do") == "remove"
    if "ask" in request.POST and name in TRIED_SETTINGS and form.is_valid():
        return setting_try(request, name, form.texts()[name])
    if request.method == "POST" and form.store(request):
        messages.success(request, _("The setting is in use within two seconds."))
        return redirect(f"{reverse('admin:operations_settings')}#{name}")
    stored = StoredSetting.objects.filter(pk=name).first()
    context = {
        "form": form,
        "field": form[name],
        "name": name,
        "meaning": OWN_SETTINGS[name].meaning,
        "value": value_shown(name, getattr(settings, name)),
        "origin": origin_shown(name),
        "elsewhere": stored_settings.is_set_elsewhere(name),
        "stored": stored and stored_shown(stored),
        "may_try": name in TRIED_SETTINGS,
    }
    return operations_page(request, "setting", title=name, context=context, status=form.status)
