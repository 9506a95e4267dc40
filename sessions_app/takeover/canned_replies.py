"""Canned replies: texts with placeholders that staff choose in the reply box, and their admin."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django import forms
from django.contrib import admin
from django.db.models import Case, IntegerField, Q, Value, When
from django.db.models.functions import Lower
from django.utils.html import format_html
from django.utils.text import Truncator
from django.utils.translation import gettext as _, gettext_lazy

from sessions_app.models import AssistantProfile, CannedReply, Chat
from sessions_app.presentation.audited_view import RecordedAdmin

PLACEHOLDERS = ("name", "business")
# The list beside the reply box shows no more.
MAX_FOUND = 20
MAX_NAME = 60

_PLACEHOLDER = re.compile(r"[ \t]?\{\s*(\w+)\s*(?:\|([^{}\n]*))?\}")
# Stands for a value that isn't known; no stored text holds it.
_NOTHING = "\x00"
_EMPTY_START = re.compile(rf"^{_NOTHING}[\s,;:!.–—-]*(\w?)", re.MULTILINE)


@dataclass(frozen=True)
class FilledReply:
    """A canned reply with its placeholders filled."""

    name: str
    shortcut: str
    text: str


def canned_search(*, chat: Chat, words: str) -> Sequence[FilledReply]:
    """Return the canned replies whose shortcut begins with the words, or whose name holds them.

    Those found by the shortcut come first.
    """
    if len(words) > MAX_NAME:
        return []
    by_shortcut = Q(shortcut__istartswith=words)
    found = CannedReply.objects.filter(by_shortcut | Q(name__icontains=words)).order_by(
        Case(When(by_shortcut, then=Value(0)), default=Value(1), output_field=IntegerField()),
        Lower("shortcut"),
    )
    rows = list(found[:MAX_FOUND])
    values = placeholder_values(chat) if rows else {}
    return [FilledReply(row.name, row.shortcut, fill(row.text, values)) for row in rows]


def placeholder_values(chat: Chat) -> dict[str, str]:
    """Return the value of each placeholder; an unknown one is empty."""
    profile = AssistantProfile.objects.filter(pk=1).only("name", "business_name").first()
    business = (profile.business_name or profile.name) if profile else ""
    # A group's name is nobody's name.
    name = "" if chat.is_group else " ".join(chat.client_name.split())[:MAX_NAME].strip()
    return {"name": name, "business": business}


def unknown_placeholders(text: str) -> list[str]:
    """Return the placeholders of a text that nothing fills."""
    return [
        found.group().strip()
        for found in _PLACEHOLDER.finditer(text)
        if found.group(1) not in PLACEHOLDERS
    ]


def placeholders_check(text: str) -> None:
    """Raise ValidationError where the text has a placeholder that nothing fills."""
    if unknown := unknown_placeholders(text):
        raise forms.ValidationError(
            _("Nothing fills %(placeholder)s. Use {name} or {business}."),
            params={"placeholder": unknown[0]},
        )


def fill(text: str, values: Mapping[str, str]) -> str:
    """Return the text with its placeholders filled.

    Where a value isn't known, the placeholder's own words after ``|`` stand. Without them it is
    left out with the blank before it, and at the beginning of a line with the punctuation after it:
    "Hello {name}, …" becomes "Hello, …", and "{name}, your …" becomes "Your …".
    """

    def put(found: re.Match[str]) -> str:
        if found.group(1) not in PLACEHOLDERS:
            return found.group()
        blank = found.group()[: -len(found.group().lstrip())]
        value = values.get(found.group(1), "") or (found.group(2) or "").strip()
        return f"{blank}{value}" if value else _NOTHING

    filled = _PLACEHOLDER.sub(put, text)
    started = _EMPTY_START.sub(lambda found: found.group(1).upper(), filled)
    return started.replace(_NOTHING, "")


# Their admin.


SHORTCUT = re.compile(r"[\w-]+")


class CannedReplyForm(forms.ModelForm):  # type: ignore[type-arg]
    def clean_shortcut(self) -> str:
        """Return the shortcut without the "/" that people write before it."""
        shortcut: str = self.cleaned_data["shortcut"].removeprefix("/")
        if not SHORTCUT.fullmatch(shortcut):
            raise forms.ValidationError(_("Use letters, digits, - and _ only."))
        return shortcut

    def clean_text(self) -> str:
        text: str = self.cleaned_data["text"].replace("\r\n", "\n")
        placeholders_check(text)
        return text


@admin.register(CannedReply)
class CannedReplyAdmin(RecordedAdmin):
    recorded_as = "canned_reply"
    form = CannedReplyForm
    list_display = ("name", "shown_shortcut", "beginning")
    fields = ("name", "shortcut", "text")
    search_fields = ("name", "shortcut", "text")
    actions = None

    @admin.display(description=gettext_lazy("shortcut"), ordering="shortcut")
    def shown_shortcut(self, reply: CannedReply) -> str:
        return format_html("<bdi>/{}</bdi>", reply.shortcut)

    @admin.display(description=gettext_lazy("text"))
    def beginning(self, reply: CannedReply) -> str:
        return format_html('<span dir="auto">{}</span>', Truncator(reply.text).chars(100))
