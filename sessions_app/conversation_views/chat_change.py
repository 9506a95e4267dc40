"""Change of a chat over REST: what staff change on their pages."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework import serializers

from memoryproject.foundation.audit.audit_events import Actor, audit_record
from memoryproject.foundation.rest_kit.serializers import (
    Choice,
    Items,
    StoredMoment,
    Strict,
    Text,
    Truth,
)
from sessions_app.conversations.phrases import languages
from sessions_app.inbox.labels import chats_assign, chats_label, chats_unlabel
from sessions_app.inbox.move_markers import ReviewError
from sessions_app.models import Chat, Label
from sessions_app.turns.dependencies import max_answer_age
from sessions_app.turns.facade import answer_soon, chat_pause, chat_resume

# Fields of the API and their columns.
COLUMNS = {"name": "staff_name", "language": "fixed_language", "memory_enabled": "memory_enabled"}


class ChangeChatSerializer(Strict):
    name = Text(
        allow_blank=True, max_length=255, help_text="Shown to staff; empty: the one on WhatsApp."
    )
    language = Choice(
        sorted(languages()),
        allow_blank=True,
        help_text="Fixes the language of all that is sent; empty: as the person writes.",
    )
    memory_enabled = Truth(allow_null=True, help_text="null: as ENABLE_MEMORY_SYSTEM says.")
    labels = Items(
        child=Text(max_length=40, trim_whitespace=True),
        max_length=50,
        help_text="In place of those that it has; new ones are made.",
    )
    assignee = Text(
        allow_null=True, max_length=150, help_text="A staff member's login; null: nobody."
    )
    paused = Truth(help_text="true: the assistant doesn't answer. false: it goes on.")
    paused_until = StoredMoment(
        allow_null=True, help_text="With `paused`; null: until somebody ends the pause."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        until = attrs.get("paused_until")
        if until is not None and not attrs.get("paused"):
            raise serializers.ValidationError({"paused_until": "Give it with paused: true."})
        if until is not None and until <= timezone.now():
            raise serializers.ValidationError({"paused_until": "It is past."}, code="past")
        return attrs


def chat_change(chat: Chat, changes: dict[str, Any], *, actor: Actor, by: int | None) -> None:
    """Make the changes of a locked chat, each with its audit event as on the pages of staff.

    ``by``: the staff member's id, if it is one. Raises ReviewError for an unknown assignee.
    """
    changed = [name for name, column in COLUMNS.items() if _is_new(chat, column, changes, name)]
    if changed:
        for name in changed:
            setattr(chat, COLUMNS[name], changes[name])
        chat.language = chat.fixed_language or chat.language
        chat.save(update_fields=[*map(COLUMNS.__getitem__, changed), "language", "updated_at"])
        audit_record(
            action="chat.update",
            actor=actor,
            object_type="chat",
            object_id=chat.pk,
            details={"fields": sorted(COLUMNS[name] for name in changed)},
            chat_id=chat.pk,
        )
    if "labels" in changes:
        _labels_set(chat, changes["labels"], actor)
    if "assignee" in changes:
        login = changes["assignee"]
        assignee = User.objects.filter(username=login).first()
        if login is not None and assignee is None:
            raise ReviewError(f"There is no staff member {login}.")
        chats_assign(chat_ids=[chat.pk], assignee=assignee if login else None, actor=actor)
    if "paused" in changes:
        _pause_set(chat, changes, actor, by)


def _is_new(chat: Chat, column: str, changes: dict[str, Any], name: str) -> bool:
    return name in changes and changes[name] != getattr(chat, column)


def _labels_set(chat: Chat, names: Collection[str], actor: Actor) -> None:
    had = set(Label.objects.filter(chat_labels__chat=chat))
    wanted = set()
    for name in names:
        label = Label.objects.filter(name__iexact=name).first()
        if label is None:
            label = Label.objects.create(name=name)
            audit_record(
                action="label.create", actor=actor, object_type="label", object_id=label.pk
            )
        wanted.add(label)
    for label in wanted - had:
        chats_label(chat_ids=[chat.pk], label=label, actor=actor)
    for label in had - wanted:
        chats_unlabel(chat_ids=[chat.pk], label=label, actor=actor)


def _pause_set(chat: Chat, changes: dict[str, Any], actor: Actor, by: int | None) -> None:
    now = timezone.now()
    if changes["paused"]:
        until = changes.get("paused_until")
        chat_pause(chat_id=chat.pk, until=until, by=by, actor=actor, now=now)
        return
    chat_resume(
        chat_id=chat.pk, actor=actor, now=now, enqueue=answer_soon, max_age=max_answer_age()
    )
