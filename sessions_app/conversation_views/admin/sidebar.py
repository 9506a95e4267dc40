"""Build the sidebar of a conversation: what is known of its people, and the work of staff."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest

from cards_app.models import MemoryCard
from memories_app.search.facade import memories_for_staff
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.inbox.facade import SAID, news_count, place_marked, snoozes_in_force
from sessions_app.inbox.presentation import SNOOZE_CHOICES, NoteForm, staff_choices
from sessions_app.models import (
    Assignment,
    Bookmark,
    Chat,
    Label,
    Message,
    Note,
    ReviewedMark,
    Snooze,
)
from sessions_app.models.review import MAX_NOTE_LENGTH
from sessions_app.presentation.links import chat_lists, list_address

SHOWN = 8
NOTES = 50


def sidebar_context(request: HttpRequest, chat: Chat) -> dict[str, Any]:
    """Return addresses, memories and cards, as far as the user may see them."""
    user = request.user
    found: dict[str, Any] = {"addresses": chat.addresses.all(), "links": chat_lists(chat, user)}
    if user.has_perm("memories_app.view_memory"):
        memories = memories_for_staff().filter(chat_id=chat.pk, status="active")
        found["memories"] = memories.order_by("-pinned", "-created_at")[:SHOWN]
        found["all_memories"] = list_address("memories_app_memory", chat_id__exact=chat.pk)
    if user.has_perm("cards_app.view_memorycard"):
        found["cards"] = MemoryCard.objects.filter(chat_id=chat.pk)[:SHOWN]
        found["all_cards"] = list_address("cards_app_memorycard", q=chat.pk)
    return found


def review_of(request: HttpRequest, chat: Chat, user: User) -> dict[str, Any]:
    """Return the state of the review.

    ``about``: the message for a new note.
    """
    mark = ReviewedMark.objects.filter(chat=chat).select_related("reviewed_by").first()
    since = news_count({chat.pk: place_marked(mark)}, SAID, 1) if mark else {}
    assignment = Assignment.objects.filter(chat=chat).select_related("assignee").first()
    snooze = Snooze.objects.filter(chat=chat).first()
    in_force = snoozes_in_force().filter(chat=chat).first()
    labels = list(Label.objects.filter(chat_labels__chat=chat))
    notes = Note.objects.filter(chat=chat).select_related("message")[: NOTES + 1]
    return {
        "mark": mark,
        # What came back after a snooze is open again.
        "is_reviewed": mark is not None and not since and snooze is None,
        "snooze": in_force,
        "snoozes": SNOOZE_CHOICES,
        "assignee": assignment.assignee if assignment else None,
        "staff": staff_choices(also=assignment.assignee_id if assignment else None),
        "labels": labels,
        "other_labels": list(Label.objects.exclude(pk__in=[label.pk for label in labels])),
        "notes": [
            (note, NoteForm(instance=note) if note.author_id == user.pk else None)
            for note in notes[:NOTES]
        ],
        "has_more_notes": len(notes) > NOTES,
        "longest_note": MAX_NOTE_LENGTH,
        "is_bookmarked": Bookmark.objects.filter(chat=chat, user=user, message=None).exists(),
        "about": _about(request, chat),
        "here": request.get_full_path(),
    }


def _about(request: HttpRequest, chat: Chat) -> Message | None:
    key = uuid_or_none(request.GET.get("note"))
    if key is None:
        return None
    return Message.objects.filter(chat=chat, pk=key).defer("terms").first()
