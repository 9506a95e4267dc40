"""Forms in which staff search for what they want to forget, and confirm it."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta
from typing import Any

from django import forms
from django.utils.timezone import get_current_timezone
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _

from sessions_app.forgetting.find_matches import MEMORY, MESSAGE, Wanted
from sessions_app.models import Chat, ForgetItem, ForgetRun, ForgottenKind
from sessions_app.models.receipts import MAX_REQUEST_NUMBER, Requester
from sessions_app.presentation.chat_page import contact_typed

# The confirmation word of each language.
WORDS = {"en": "FORGET", "he": "לשכוח"}
# Copying an address can copy direction marks with it.
_MARKS = dict.fromkeys(
    map(ord, "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
)


def word_now() -> str:
    """Return the confirmation word of the page's language."""
    return WORDS.get((get_language() or "en")[:2], WORDS["en"])


FIELD = {"class": "field-input"}
TEXT = {**FIELD, "dir": "auto"}


def _day_field(label: Any) -> forms.DateField:
    widget = forms.DateInput(attrs={**FIELD, "type": "date"})
    return forms.DateField(label=label, required=False, widget=widget)


class SearchForm(forms.Form):
    words = forms.CharField(
        label=gettext_lazy("Words"),
        max_length=500,
        widget=forms.TextInput(attrs={**TEXT, "type": "search"}),
        error_messages={"required": gettext_lazy("Say what it is about.")},
    )
    kinds = forms.MultipleChoiceField(
        label=gettext_lazy("Look in"),
        choices=[(MEMORY, gettext_lazy("memories")), (MESSAGE, gettext_lazy("messages"))],
        initial=[MEMORY, MESSAGE],
        widget=forms.CheckboxSelectMultiple,
    )
    how = forms.ChoiceField(
        label=gettext_lazy("Find by"),
        choices=[
            ("words", gettext_lazy("words: everything that holds all of them, in any form")),
            ("meaning", gettext_lazy("meaning: what is nearest to it")),
        ],
        initial="words",
        widget=forms.RadioSelect,
    )
    chat = forms.CharField(
        label=gettext_lazy("Only in the chat"),
        required=False,
        max_length=255,
        widget=forms.TextInput(attrs=TEXT),
        help_text=gettext_lazy("The contact's name or number. Needed for messages by meaning."),
    )
    since = _day_field(gettext_lazy("From"))
    until = _day_field(gettext_lazy("To"))

    def clean_chat(self) -> Chat | None:
        return contact_typed(self.cleaned_data["chat"])

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        by_meaning = cleaned.get("how") == "meaning" and cleaned.get("kinds") == [MESSAGE]
        if by_meaning and "chat" not in self.errors and cleaned.get("chat") is None:
            text = _("Messages are found by meaning within one chat only: say which.")
            self.add_error("chat", text)
        since, until = cleaned.get("since"), cleaned.get("until")
        if since and until and since > until:
            self.add_error("until", _("This day comes before the first one."))
        return cleaned

    def wanted(self) -> Wanted:
        """Return the criteria of the valid form; days are in the business's time zone."""
        given = self.cleaned_data
        chat = given["chat"]
        return Wanted(
            words=given["words"],
            kinds=tuple(given["kinds"]),
            by_meaning=given["how"] == "meaning",
            chat_id=chat.pk if chat else None,
            since=_midnight(given["since"]),
            until=_midnight(given["until"], days=1),
        )


def _midnight(day: Any, *, days: int = 0) -> datetime | None:
    if day is None:
        return None
    try:
        return datetime.combine(day + timedelta(days=days), time.min, get_current_timezone())
    except OverflowError:
        return None


class ConfirmForm(forms.Form):
    """Form that confirms a run.

    ``wanted`` is the text to type: the number of a single person, otherwise the word.
    """

    typed = forms.CharField(
        max_length=300,
        widget=forms.TextInput(attrs={**TEXT, "autocomplete": "off", "size": 32}),
        error_messages={"required": gettext_lazy("Nothing was typed, so nothing is erased.")},
    )

    requester = forms.ChoiceField(
        label=gettext_lazy("Who asked for it"),
        choices=Requester.choices,
        required=False,
        widget=forms.Select(attrs=FIELD),
    )
    request_number = forms.RegexField(
        label=gettext_lazy("Request number"),
        # Not a text: a receipt is kept for good and holds nothing of what was erased.
        regex=r"^[A-Za-z0-9א-ת/_.#-]+$",
        required=False,
        max_length=MAX_REQUEST_NUMBER,
        widget=forms.TextInput(attrs={**TEXT, "autocomplete": "off", "size": 20}),
        error_messages={
            "invalid": gettext_lazy(
                "A number, without blanks: letters, digits and / _ . # - only. Nothing is erased."
            )
        },
    )

    def __init__(self, *args: Any, run: ForgetRun, **options: Any) -> None:
        super().__init__(*args, **options)
        self.person = person_of(run)
        self.wanted = self.person.shown_number if self.person else word_now()

    def clean_typed(self) -> str:
        typed = str(self.cleaned_data["typed"]).translate(_MARKS).strip().casefold()
        if self.person is None:
            right = {word.casefold() for word in WORDS.values()}
        else:
            right = {self.wanted.casefold(), self.person.whatsapp_chat.casefold()}
        if typed not in right and _digits(typed) not in map(_digits, right):
            raise forms.ValidationError(_("That isn't what has to be typed. Nothing is erased."))
        return typed


def _digits(typed: str) -> str:
    """Return a number without what people write between its digits; other texts as they are."""
    return re.sub(r"[-+ ().]", "", typed) if re.fullmatch(r"[-+ ().\d]{7,30}", typed) else typed


def person_of(run: ForgetRun) -> Chat | None:
    """Return the chat of a run that forgets exactly one whole person."""
    if run.total != 1:
        return None
    item = ForgetItem.objects.filter(run=run, kind=str(ForgottenKind.CHAT)).first()
    return Chat.objects.filter(pk=item.object_id).first() if item else None
