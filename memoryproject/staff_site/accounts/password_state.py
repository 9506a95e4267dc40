"""Show whether an account has a password, instead of parts of its hash."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.hashers import is_password_usable
from django.forms import Widget
from django.utils.html import format_html
from django.utils.translation import gettext as _
from unfold.forms import UserChangeForm


class PasswordState(Widget):
    read_only = True

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> Any:
        usable = bool(value) and is_password_usable(value)
        text = _("A password is set.") if usable else _("No password is set.")
        return format_html('<div class="readonly">{}</div>', text)

    def id_for_label(self, id_: str | None) -> str:
        """Return nothing: there is no field to which a label could lead."""
        return ""


class StaffUserForm(UserChangeForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["password"].widget = PasswordState()
