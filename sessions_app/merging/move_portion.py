"""Move the rows that go with addresses that are split off."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Max, Q, Sum

from cards_app.models import MemoryCard
from memories_app.documents.facade import shown_name
from memories_app.store.facade import SameFile, memories_give, same_files_restore
from sessions_app.conversations.facade import cards_outdate
from sessions_app.merging.portion import Portion
from sessions_app.models import (
    Bookmark,
    Chat,
    ChatSession,
    ContactMerge,
    InboundDelivery,
    Message,
    Note,
    ReadMark,
    ReviewedMark,
    TranscriptBatch,
    Turn,
)
from sessions_app.models.review import UpTo
from sessions_app.models.sessions import SessionStatus
from sessions_app.models.turn_states import turns_move
from sessions_app.models.turns import TurnState
from sessions_app.summaries.facade import summaries_retract
from sessions_app.turns.facade import sent_document_name


def portion_move(
    portion: Portion, *, kept: Chat, gone: Chat, record: ContactMerge | None, now: datetime
) -> None:
    """Move everything of the portion from one chat to the other.

    Both chats, and the sessions that are divided, are locked by the caller.
    """
    parts = {key: _divide(key, portion.taken, gone, now) for key in portion.taken_from}
    parts |= {key: _divide(key, portion.left, kept, now) for key in portion.left_in}
    turns = Turn.objects.filter(
        Q(session__in=portion.sessions) | Q(pk__in=portion.turns), chat=kept
    )
    # A worker that is answering there loses the lease and will not write.
    turns_move(
        turns.filter(state=TurnState.RUNNING),
        TurnState.PENDING,
        lease_token=None,
        lease_until=None,
    )
    turns.update(chat=gone)
    for model in (ChatSession, Message, TranscriptBatch):
        key = "pk__in" if model is ChatSession else "session__in"
        model._default_manager.filter(**{key: portion.sessions}).update(chat=gone)
    MemoryCard.objects.filter(session_id__in=portion.sessions).update(chat_id=gone.pk)
    moved = portion.messages().values("pk")
    about = portion.messages().exclude(provider_message_id=None).values("provider_message_id")
    InboundDelivery.objects.filter(
        Q(message__in=moved) | Q(subject_id__in=about), chat=kept
    ).update(chat=gone)
    Note.objects.filter(pk__in=portion.notes).update(chat=gone)
    Bookmark.objects.filter(message__in=moved).update(chat=gone)
    _marks_copy(kept, gone, parts)
    rows = record.rows if record else {}
    joined = rows.get("joined", {})
    memories_give(
        from_chat=kept.pk,
        to_chat=gone.pk,
        memories=portion.memories,
        documents=portion.documents,
        joined={UUID(key): UUID(other) for key, other in joined.items()},
        pinned={UUID(key) for key in rows.get("pinned", ())},
    )
    _files_restore(rows.get("files", ()), kept, gone)


def _files_restore(files: Sequence[SameFile], kept: Chat, gone: Chat) -> None:
    """Make the copies of files again, but those whose message was erased or deleted since."""
    sources = [file["source_message_id"] for file in files if file["source_message_id"]]
    messages = Message.objects.filter(pk__in=sources, revoked_at=None).only("media")
    names = {
        str(each.pk): shown_name(
            sent_document_name(str(each.media.get("filename", "")), gone.language)
        )
        for each in messages
    }
    there = [file for file in files if file["source_message_id"] in (None, *names)]
    same_files_restore(files=there, names=names, from_chat=kept.pk, to_chat=gone.pk)


def _divide(session_id: UUID, messages: Collection[UUID], chat: Chat, now: datetime) -> UUID:
    """Move these messages of a session into a session of their own, which has ended.

    Summaries of both are made anew, and so are the cards.
    """
    session = ChatSession.objects.select_for_update(no_key=True).get(pk=session_id)
    rows = Message.objects.filter(session=session, pk__in=messages)
    first = rows.order_by("order_num").values_list("order_num", flat=True).first() or 1
    summaries_retract(session=session, order_num=first)
    in_window = rows.filter(order_num__gte=session.window_start)
    found = rows.aggregate(tokens=Sum("tokens"), last=Max("received_at"), number=Max("order_num"))
    part = ChatSession.objects.create(
        chat=chat,
        status=SessionStatus.EXPIRED,
        created_at=session.created_at,
        last_active=found["last"] or now,
        expired_at=now,
        message_counter=found["number"] or 0,
        total_tokens=found["tokens"] or 0,
    )
    session.total_tokens -= in_window.aggregate(all=Sum("tokens"))["all"] or 0
    session.save(update_fields=["total_tokens"])
    turns = Turn.objects.filter(Q(message__in=messages) | Q(reply__in=messages), session=session)
    turns_move(
        turns.filter(state=TurnState.RUNNING),
        TurnState.PENDING,
        lease_token=None,
        lease_until=None,
    )
    turns.update(session=part, chat=chat)
    rows.update(session=part, chat=chat)
    cards_outdate(session_ids=[session.pk, part.pk])
    return part.pk


def _marks_copy(kept: Chat, gone: Chat, parts: dict[UUID, UUID]) -> None:
    """Let both chats be read and reviewed as far as the one was.

    Places keep their order: a chat's sessions keep the times at which they began.
    """
    for model in (ReadMark, ReviewedMark):
        marks: list[UpTo] = list(model._default_manager.filter(chat=kept))
        for mark in marks:
            mark.pk = gone.pk if model is ReviewedMark else None
            mark.chat_id = gone.pk  # type: ignore[attr-defined]
            mark.session_key = parts.get(mark.session_key, mark.session_key)
        model._default_manager.bulk_create(marks)
