"""The checklist of permissions, with a field that finds one among hundreds."""

from __future__ import annotations

from typing import Any

from django.forms import Media
from django.forms.widgets import Script
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget


class PermissionList(UnfoldAdminCheckboxSelectMultipleWidget):  # type: ignore[misc]
    """Checkboxes with a search field above them; without scripts, the checkboxes alone."""

    @property
    def media(self) -> Media:
        # Deferred: it looks for the list, which comes after the page's head.
        script: Any = Script("dashboard/permissions.js", defer=True)
        return Media(css={"all": ["dashboard/permissions.css"]}, js=[script])

    def render(
        self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: Any = None
    ) -> SafeString:
        return format_html(
            '<div class="permission-list" data-find="{}" data-none="{}">{}</div>',
            _("Find a permission"),
            _("No permission matches."),
            super().render(name, value, attrs, renderer),
        )
