"""Notes of staff, and the form in which they change their own."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django import forms
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy

from memoryproject.foundation.admin_kit.stamped_form import StampedForm
from memoryproject.foundation.audit.audit_events import Actor, audit_record
from sessions_app.conversations.epochs import Reader, forgetting_wait
from sessions_app.inbox.move_markers import ReviewError, chats_lock
from sessions_app.models import Message, Note
from sessions_app.models.review import MAX_NOTE_LENGTH


def note_write(
    *, user: User | None, chat_id: UUID, text: str, actor: Actor, message_id: UUID | None = None
) -> Note:
    """Write a note on a chat, or on one of its messages; ``user`` None: a program's.

    Raises ReviewError for an invalid text, and if the chat or the message doesn't exist (any more).
    """
    text = _checked(text)
    with transaction.atomic():
        # A note may quote a text that is being forgotten: it waits, and then finds the text gone.
        forgetting_wait(Reader(chat_id))
        if not chats_lock([chat_id]):
            raise ReviewError(_("The conversation isn't there any more."))
        if message_id and not Message.objects.filter(chat=chat_id, pk=message_id).exists():
            raise ReviewError(_("The message isn't there any more."))
        note = Note.objects.create(
            chat_id=chat_id,
            message_id=message_id,
            author=user,
            author_name=user.get_username() if user else actor.name,
            text=text,
            created_at=timezone.now(),
        )
        _record("note.write", note, actor)
    return note


def note_edit(
    *,
    note_id: UUID,
    user: User,
    text: str,
    actor: Actor,
    check: Callable[[Note], None] = lambda _note: None,
) -> Note:
    """Change one's own note.

    ``check`` gets the locked note before it is changed; its errors propagate. Raises ReviewError
    for another person's note.
    """
    text = _checked(text)
    with transaction.atomic():
        forgetting_wait(Reader(note_own(note_id=note_id, user=user).chat_id))
        note = _own(Note.objects.select_for_update(), note_id, user)
        check(note)
        if note.text != text:
            note.text, note.edited_at = text, timezone.now()
            note.save(update_fields=["text", "edited_at"])
            _record("note.edit", note, actor)
    return note


def note_delete(*, note_id: UUID, user: User, actor: Actor) -> UUID:
    """Delete one's own note; return its chat's id.

    Raises ReviewError for another person's note.
    """
    with transaction.atomic():
        note = _own(Note.objects.select_for_update(), note_id, user)
        _record("note.delete", note, actor)
        note.delete()
    return note.chat_id


def note_own(*, note_id: UUID, user: User) -> Note:
    """Return one's own note. Raises ReviewError for another person's note."""
    return _own(Note.objects.all(), note_id, user)


def _checked(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\x00", "").strip()
    if not text:
        raise ReviewError(_("Write something first: an empty note tells nobody anything."))
    if len(text) > MAX_NOTE_LENGTH:
        message = _("A note has at most %(most)s characters; this one has %(length)s.")
        raise ReviewError(message % {"most": MAX_NOTE_LENGTH, "length": len(text)})
    return text


def _own(notes: QuerySet[Note], note_id: UUID, user: User) -> Note:
    note = notes.filter(pk=note_id).first()
    if note is None:
        raise ReviewError(_("The note isn't there any more."))
    if note.author_id != user.pk:
        raise ReviewError(_("Only who wrote a note may change or delete it."))
    return note


def _record(action: str, note: Note, actor: Actor) -> None:
    audit_record(
        action, actor, "note", note.pk, message=note.message_id is not None, chat_id=note.chat_id
    )


# The form. A refused note is shown on a page of its own, with the typed text.


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
