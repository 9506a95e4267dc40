"""The forms of the login and of the second factor."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _


class CodeForm(forms.Form):
    """A code of the app, or a backup code."""

    code = forms.CharField(
        label=_("Code"),
        max_length=64,
        widget=forms.TextInput(
            attrs={
                "autocomplete": "one-time-code",
                "autofocus": True,
                "autocapitalize": "none",
                "spellcheck": "false",
                "dir": "ltr",
            }
        ),
    )


class PasswordForm(forms.Form):
    """The user's own password once more: a person who finds an open session doesn't know it."""

    password = forms.CharField(
        label=_("Password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password", "dir": "ltr"}),
    )


class ProofForm(PasswordForm, CodeForm):
    """The password and a code, for actions that would lower the protection."""

    field_order = ("password", "code")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        del self.fields["code"].widget.attrs["autofocus"]
