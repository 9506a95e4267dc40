"""The form in which staff change their own notes.

A refused note is shown on a page of its own, with the typed text.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext_lazy

from memoryproject.foundation.admin_kit.stamped_form import StampedForm
from memoryproject.foundation.audit.audit_events import Actor
from sessions_app.inbox.move_markers import ReviewError
from sessions_app.inbox.notes import note_edit
from sessions_app.models import Note
from sessions_app.models.review import MAX_NOTE_LENGTH


class ChangedNoteError(Exception):
    """Another person changed the note meanwhile; the form shows the change."""


class NoteForm(StampedForm):
    """A note on a conversation or a message, guarded against changes by others meanwhile."""

    # The service validates the text.
    text = forms.CharField(
        label=gettext_lazy("The note"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 6, "dir": "auto", "maxlength": MAX_NOTE_LENGTH}),
    )

    class Meta:
        model = Note
        fields = ("text",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # A page has many of these forms, so ids would repeat.
        super().__init__(*args, auto_id=False, **kwargs)

    def save_own(self, *, user: User, actor: Actor) -> bool:
        """Save the note; return False if it was refused, with the reason in the form."""
        if not self.is_valid():
            return False
        try:
            note_edit(
                note_id=self.instance.pk,
                user=user,
                text=self.cleaned_data["text"],
                actor=actor,
                check=self._check,
            )
        except ReviewError as error:
            self.add_error("text", str(error))
        except ChangedNoteError:
            pass
        return not self.errors

    def _check(self, note: Note) -> None:
        """Check the note in its current, locked state."""
        if self.refuse_unseen(NoteForm(instance=note)):
            raise ChangedNoteError
