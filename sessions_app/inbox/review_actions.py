"""Handle the forms with which staff review conversations; they work without scripts, too."""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from memoryproject.foundation.admin_kit import staff_pages
from memoryproject.foundation.admin_kit.undo import (
    UndoError,
    reverses,
    rows_kept,
    rows_of,
    undo_offer,
)
from memoryproject.foundation.audit.audit_events import staff_actor
from memoryproject.foundation.process.narrowing import instance
from memoryproject.foundation.tables import read_table
from sessions_app.inbox import labels, move_markers, notes
from sessions_app.inbox.filters_page import number_of
from sessions_app.inbox.inbox import Do, ReviewRequest, chosen_chats, snooze
from sessions_app.inbox.move_markers import ReviewError
from sessions_app.inbox.notes import NoteForm
from sessions_app.models import Chat, Label, Message, Note
from sessions_app.presentation.links import conversation_address

REVIEW = ("sessions_app.view_chat", "sessions_app.review_chat")
MAX_CHATS = 1_000
_WORDS = read_table(__file__, "words.yaml")


def chat_page(request: HttpRequest, chat_id: UUID) -> HttpResponse:
    """Review one chat; ``do`` names the action and, after a colon, the label or person."""
    if Chat.objects.filter(pk=chat_id).exists():
        return _done(request, [chat_id], {**FOR_MANY, **FOR_ONE}, conversation_address(chat_id))
    _check(request)
    reason = _("The conversation isn't there any more.")
    if request.POST.get("do") == "note" and _typed(request).strip():
        return _note_unkept(request, reason)
    messages.error(request, reason)
    return redirect("admin:sessions_app_chat_changelist")


def chats_page(request: HttpRequest) -> HttpResponse:
    """Review the chats that were ticked in the inbox."""
    chats = chosen_chats(request)[:MAX_CHATS]
    back = reverse("admin:sessions_app_chat_changelist")
    if chats:
        return _done(request, chats, FOR_MANY, back)
    _check(request)
    messages.warning(request, _("Tick the conversations first."))
    return redirect(staff_pages.page_back(request, back))


def note_page(request: HttpRequest, note_id: UUID) -> HttpResponse:
    """Change or delete one's own note. A GET leads to the conversation."""
    user = _check(request)
    actor = staff_actor(request)
    note = Note.objects.filter(pk=note_id).first()
    back = reverse("admin:sessions_app_chat_changelist")
    if note is not None:
        back = conversation_address(note.chat_id)
    if request.method != "POST":
        return redirect(back)
    try:
        if request.POST.get("do") == "delete":
            notes.note_delete(note_id=note_id, user=user, actor=actor)
            messages.success(request, _("The note is deleted."))
        elif request.POST.get("do") == "edit":
            form = NoteForm(request.POST, instance=notes.note_own(note_id=note_id, user=user))
            if not form.save_own(user=user, actor=actor):
                return _note_again(request, form, staff_pages.page_back(request, back))
            messages.success(request, _("The note is changed."))
        else:
            return HttpResponseBadRequest(_("Nobody knows what is to be done."))
    except ReviewError as error:
        if request.POST.get("do") == "edit" and note is None and _typed(request).strip():
            return _note_unkept(request, str(error))
        messages.error(request, str(error))
    return redirect(staff_pages.page_back(request, back))


def _note_again(request: HttpRequest, form: NoteForm, back: str) -> HttpResponse:
    context = {"form": form, "back": back}
    return staff_pages.staff_page(
        request, "admin/sessions_app/chat/note.html", _("It wasn't saved"), context, of=Chat
    )


def _note_unkept(
    request: HttpRequest, reason: str, review: ReviewRequest | None = None
) -> HttpResponse:
    """Show a note that couldn't be stored, so that its text isn't lost.

    It can be stored on the message or the conversation if that still exists, or else copied.
    """
    chat = Chat.objects.filter(pk=review.chat).first() if review else None
    key = review.message if review else None
    message = Message.objects.filter(chat=chat, pk=key).only("pk").first() if chat else None
    context = {
        "reason": reason,
        "text": _typed(request),
        "chat": chat,
        "message": message,
        "lost_message": chat is not None and key is not None and message is None,
        "back": conversation_address(chat.pk, key if message else None) if chat else "",
    }
    return staff_pages.staff_page(
        request, "admin/sessions_app/chat/note_unkept.html", _("It wasn't saved"), context, of=Chat
    )


def _done(request: HttpRequest, chats: list[UUID], known: dict[str, Do], back: str) -> HttpResponse:
    user = _check(request)
    name, _colon, value = request.POST.get("do", "").partition(":")
    do = known.get(name)
    if do is None:
        return HttpResponseBadRequest(_("Nobody knows what is to be done."))
    review = ReviewRequest(request, user, staff_actor(request), chats, value)
    try:
        undo = "chat.review" if name == "reviewed" else ""
        kept = rows_kept(move_markers.review_rows(chats)) if undo else []
        undo_offer(request, do(review), undo, [list(map(str, chats)), kept])
        if name in FOR_ONE and review.message:
            # Return to the message that the action was about.
            back = conversation_address(review.chat, review.message)
    except ReviewError as error:
        if name == "note" and _typed(request).strip():
            return _note_unkept(request, str(error), review)
        messages.error(request, str(error))
    return redirect(staff_pages.page_back(request, back))


@reverses("chat.review", *REVIEW)
def _unreview(request: HttpRequest, data: Any) -> None:
    chats, rows = data
    given: Any = {"user": request.user, "chat_ids": list(map(UUID, chats)), "rows": rows_of(rows)}
    if not move_markers.chats_review_undo(**given, actor=staff_actor(request)):
        raise UndoError(_("Somebody else has reviewed it since."))


def _check(request: HttpRequest) -> User:
    staff_pages.rights_required(request, *REVIEW)
    return instance(request.user, User)


def _assign(review: ReviewRequest) -> str:
    done = labels.chats_assign(**review.of_actor, assignee=_assignee(review), was=review.was())
    if done.kept_by:
        names = ", ".join(dict.fromkeys(done.kept_by))
        text = _WORDS["kept"] % {"count": len(done.kept_by), "names": names}
        if not done.changed:
            raise ReviewError(text)
        messages.warning(review.request, text)
    return str(_WORDS["done"]["assign"] % {"count": done.changed})


def _assignee(review: ReviewRequest) -> User | None:
    who = review.value or review.request.POST.get("assignee", "")
    if who == "nobody":
        return None
    if who == "me":
        return review.user
    found = User.objects.filter(pk=number_of(who)).first()
    if found is None:
        raise ReviewError(_("Say who is to look after it."))
    return found


def _label_of(review: ReviewRequest) -> Label:
    key = review.value or review.request.POST.get("label", "")
    found = Label.objects.filter(pk=number_of(key)).first()
    if found is None:
        raise ReviewError(_("There is no such label, or not any more."))
    return found


def _mark(review: ReviewRequest, *, wanted: bool) -> str:
    labels.bookmark_set(
        user=review.user,
        chat_id=review.chat,
        actor=review.actor,
        wanted=wanted,
        message_id=review.message,
    )
    return _("The bookmark is set.") if wanted else _("The bookmark is taken away.")


def _note(review: ReviewRequest) -> str:
    notes.note_write(
        user=review.user,
        chat_id=review.chat,
        text=_typed(review.request),
        actor=review.actor,
        message_id=review.message,
    )
    return _("The note is kept. Only staff see it.")


# What changes some chats, and returns how many.
_CHANGES: dict[str, Callable[[ReviewRequest], int]] = {
    "reviewed": lambda one: move_markers.chats_review(
        **one.of_user, seen=one.seen(), seen_at=one.seen_at()
    ),
    "unreviewed": lambda one: move_markers.chats_unreview(**one.of_actor),
    "read": lambda one: move_markers.chats_mark_read(**one.of_user),
    "unread": lambda one: move_markers.chats_mark_unread(**one.of_user),
    "label": lambda one: labels.chats_label(**one.of_actor, label=_label_of(one)),
    "unlabel": lambda one: labels.chats_unlabel(**one.of_actor, label=_label_of(one)),
    "unsnooze": lambda one: move_markers.chats_unsnooze(**one.of_actor),
}


def _change(name: str, review: ReviewRequest) -> str:
    return str(_WORDS["done"][name] % {"count": _CHANGES[name](review)})


FOR_MANY: dict[str, Do] = {
    **{name: partial(_change, name) for name in _CHANGES},
    "assign": _assign,
    "snooze": snooze,
}
FOR_ONE: dict[str, Do] = {
    "bookmark": partial(_mark, wanted=True),
    "unbookmark": partial(_mark, wanted=False),
    "note": _note,
}


def _typed(request: HttpRequest) -> str:
    """Return the note's text in the form."""
    return request.POST.get("text", "")


REVIEW_PAGES = {
    "review_many": staff_pages.OwnPage("review/", chats_page, "POST"),
    "review": staff_pages.OwnPage("<uuid:chat_id>/review/", chat_page, "POST"),
    "note": staff_pages.OwnPage("notes/<uuid:note_id>/", note_page),
}
