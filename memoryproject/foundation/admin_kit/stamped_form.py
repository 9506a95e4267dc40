"""Forms that detect changes that others saved since the form was opened.

The form asks before it overwrites such a change, and keeps all typed values.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from datetime import datetime, timezone
from typing import Any

from django import forms
from django.db.models import Model, QuerySet
from django.utils.choices import flatten_choices
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _


class SeenField(forms.Field):
    """Holds the stamp; the form doesn't save it."""

    widget = forms.HiddenInput

    def has_changed(self, initial: Any, data: Any) -> bool:
        return False


class StampedForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form with a stamp of its fields.

    ``seen``: the stamp of the changeable fields, as they were when the form was opened.
    """

    seen = SeenField(required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Made when the form is shown: subclasses may still set initial values before.
        self.initial["seen"] = self.stamp

    def stamp(self) -> str:
        return stamp_of(self.stored())

    def stored(self) -> dict[str, Any]:
        """Return the instance's value of each changeable field when this form was made."""
        return {
            name: _plain(self.get_initial_for_field(field, name))
            for name, field in self.fields.items()
            if name != "seen" and not field.disabled
        }

    def seen_digests(self) -> dict[str, str] | None:
        """Return the digests in the stamp by field, or None if it is missing or damaged."""
        try:
            return dict(read_stamp(str(self.cleaned_data["seen"] or ""), self.stored()))
        except ValueError:
            return None

    def refuse_unseen(self, now: StampedForm) -> bool:
        """Return whether saving would overwrite an unseen change, and add an error if so.

        ``now``: the form as it would be opened at this moment. Call it if everything else is valid.
        """
        seen = self.seen_digests()
        if seen is None:
            self.ask_damaged(now)
            return True
        there = {name: digest_of(value) for name, value in now.stored().items()}
        mine = {name: digest_of(_plain(self.cleaned_data[name])) for name in there}
        theirs = [name for name in there if there[name] not in (seen[name], mine[name])]
        if theirs:
            self.ask_again(now, theirs, [name for name in there if mine[name] != seen[name]])
        return bool(theirs)

    def ask_again(
        self, now: StampedForm, theirs: Collection[str], touched: Collection[str]
    ) -> None:
        """Ask again, because somebody else changed the fields ``theirs``.

        Typed values, in ``touched``, stay next to the stored value; other fields show the stored
        value. The form gets a new stamp, so that saving again is a decision.
        """
        names = ", ".join(str(self[name].label) for name in theirs)
        message = _(
            "Somebody else saved this meanwhile and changed: %(fields)s. Nothing of yours is "
            "saved yet: look at what is marked, and save again."
        )
        self.add_error(None, message % {"fields": names})
        for name, value in now.stored().items():
            if name not in touched:
                self._show(name, value)
            if name in theirs and name in touched:
                text = _("Somebody else changed this meanwhile. Now it is:")
                self.add_error(name, forms.ValidationError(self._beside(text, name, value)))
            elif name in theirs:
                self.add_error(name, _("Somebody else changed this meanwhile, to what is here."))
        self._show("seen", now.stamp())

    def ask_damaged(self, now: StampedForm) -> None:
        """Show the stored value of each differing field, because the seen values are unknown."""
        message = _(
            "This page is damaged: it doesn't say what stood here when it was opened. Nothing is "
            "saved yet: look at what is marked, and save again."
        )
        given = {name: _plain(self.cleaned_data[name]) for name in now.stored()}
        self.add_error(None, message)
        for name, value in now.stored().items():
            if digest_of(given[name]) != digest_of(value):
                shown = self._beside(_("What is stored:"), name, value)
                self.add_error(name, forms.ValidationError(shown))
        self._show("seen", now.stamp())

    def _show(self, name: str, value: Any) -> None:
        """Show a value instead of the posted one."""
        field: Any = self.fields[name]
        field.bound_data = lambda _data, _initial: value

    def _beside(self, text: str, name: str, value: Any) -> SafeString:
        shown = _display_value(self.fields[name], value)
        return format_html('{} <span class="said" dir="auto">{}</span>', text, shown)


class ConflictCheckedForm(StampedForm):
    """A form that checks for conflicts under a lock that holds until its transaction ends.

    It checks after everything else is valid, so that slow validation is over by then.
    """

    def full_clean(self) -> None:
        super().full_clean()
        if self.is_bound and not self.instance._state.adding and not self.errors:
            self.guard()

    def guard(self) -> None:
        """Lock the row and check for conflicts. Call it in the transaction that saves."""
        rows = type(self.instance)._base_manager.select_for_update(no_key=True)
        row = rows.filter(pk=self.instance.pk).first()
        if row is None:
            self.add_error(None, _("Somebody else removed this meanwhile."))
        elif not self.refuse_unseen(type(self)(instance=row)):
            self._take_over(row)

    def _take_over(self, row: Model) -> None:
        """Copy the columns that the form doesn't hold from the locked row. Saving keeps them."""
        mine = self.stored()
        for field in row._meta.concrete_fields:
            if field.name not in mine:
                setattr(self.instance, field.attname, getattr(row, field.attname))


def conflict_checked(form: type[forms.BaseModelForm[Any]]) -> type[forms.BaseModelForm[Any]]:
    """Return the form class with a stamp, or unchanged if it has one already."""
    if issubclass(form, StampedForm):
        return form
    return type(f"Guarded{form.__name__}", (ConflictCheckedForm, form), {})


def _plain(value: Any) -> Any:
    """Return a value that can be compared: rows become sorted keys."""
    if isinstance(value, Model):
        return value.pk
    if isinstance(value, QuerySet) or (
        isinstance(value, list) and value and isinstance(value[0], Model)
    ):
        return sorted(row.pk for row in value)
    return value


def _display_value(field: forms.Field, value: Any) -> str:
    """Return a value as its field displays it."""
    prepared = field.prepare_value(value)
    # The admin wraps its widgets for related rows.
    widget: Any = getattr(field.widget, "widget", field.widget)
    if hasattr(widget, "choices"):
        shown = widget.format_value(prepared)
        chosen = {shown} if isinstance(shown, str) else {str(each) for each in shown}
        choices: list[tuple[Any, Any]] = list(flatten_choices(widget.choices))
        return ", ".join(str(word) for key, word in choices if str(key) in chosen) or "–"
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return "–" if prepared in (None, "", []) else str(prepared)


# Stamps of a form's values at the time it was opened, to detect changes by others.


def stamp_of(values: Mapping[str, Any]) -> str:
    """Return a digest of each value, by field name, for a hidden input."""
    return json.dumps({name: digest_of(value) for name, value in values.items()})


def read_stamp(text: str, names: Collection[str]) -> Mapping[str, str]:
    """Return the digests by name. Raises ValueError if it is no stamp of exactly these fields."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict) or set(read) != set(names):
        raise ValueError("This is no stamp of these fields.")
    return {name: str(value) for name, value in read.items()}


def digest_of(value: Any) -> str:
    """Return the digest of a plain form value, with browser line ends and whole seconds."""
    if isinstance(value, str):
        value = value.replace("\r\n", "\n")
    elif isinstance(value, datetime):
        value = value.astimezone(timezone.utc).replace(microsecond=0).isoformat()
    plain = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(plain.encode(errors="surrogatepass")).hexdigest()[:20]
