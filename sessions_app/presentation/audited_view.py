"""The bases of pages on which staff read messages or write rows, and the search of long lists."""

import re
from collections.abc import Sequence
from typing import Any, ClassVar
from uuid import UUID

from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse

from memoryproject.foundation.admin_kit.staff_admin import ReadOnlyAdmin, StaffAdmin
from memoryproject.foundation.audit.audit_events import (
    staff_edit_record,
    staff_read_record,
    staff_record,
)
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.conversations.chat_queries import with_address
from sessions_app.models import (
    Chat,
    ChatSession,
    InboundDelivery,
    Message,
    MessageEmbedding,
    OutboundPart,
)
from sessions_app.recall.facade import (
    MAX_UNINDEXED_ROWS,
    messages_with,
    messages_with_parts,
    newest_messages_found,
)


class RecordedAdmin(StaffAdmin):
    """Base of forms that write rows. ``recorded_as``: a row's name in the audit log."""

    recorded_as: ClassVar[str] = ""

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        action = f"{self.recorded_as}.{'update' if change else 'create'}"
        staff_edit_record(request, action, self.recorded_as, obj.pk, form.changed_data)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        key = obj.pk
        super().delete_model(request, obj)
        staff_record(request, f"{self.recorded_as}.delete", self.recorded_as, key)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Require no further permission for what goes with a row."""
        gone, counts, _missing, protected = super().get_deleted_objects(objs, request)
        return gone, counts, set(), protected


class ConversationAdmin(ReadOnlyAdmin):
    """Base of the audited pages.

    ``read_as`` is the name of the object in the audit log. ``list_is_read`` is True if the list
    shows texts, too.
    """

    read_as: ClassVar[str] = ""
    list_is_read: ClassVar[bool] = False

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        if (row := kwargs.get("obj")) is not None:
            staff_read_record(request, self.read_as, row.pk, chat_id=_chat_of(row))
        return super().render_change_form(request, context, *args, **kwargs)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        page = super().changelist_view(request, extra_context)
        # Actions and invalid filters are answered with a redirect.
        if self.list_is_read and page.status_code == 200:
            self._record_list(request)
        return page

    def _record_list(self, request: HttpRequest) -> None:
        """Audit the conversation that a list is limited to; the search text isn't recorded."""
        session = _first(ChatSession, request.GET.get("session__session_id__exact", ""))
        chat = _first(Chat, request.GET.get("chat__id__exact", ""))
        chat_id = session.chat_id if session else chat.pk if chat else None
        of = ("session", session.pk) if session else ()
        searched = bool(request.GET.get("q"))
        staff_read_record(request, *of, chat_id=chat_id, list=self.read_as, searched=searched)


def _first(model: type[Any], key: str) -> Any:
    """Return the row that a list's filter names, if it exists."""
    pk = uuid_or_none(key)
    return None if pk is None else model.objects.filter(pk=pk).first()


def _chat_of(obj: Model) -> UUID | None:
    """Return the chat of a conversation's row."""
    if isinstance(obj, Chat):
        return obj.pk
    for way in ("session", "turn"):
        if not hasattr(obj, "chat_id") and hasattr(obj, way):
            obj = getattr(obj, way)
    chat_id: UUID | None = getattr(obj, "chat_id", None)
    return chat_id


# Search rows by whole ids, by chat, or by indexed words: a substring would read a million rows.


MAX_CHATS = 1_000
MAX_MESSAGES = 2_000
# A WhatsApp address, or a number of so many digits that it can't be a word, as people write it.
_ADDRESS = re.compile(r"\S*@\S*|\+?\(?\d[\d ()./-]{4,}\d")
# Providers' ids are long and contain no space.
_MIN_ID_LENGTH = 15


def messages_found(queryset: QuerySet[Message], term: str) -> QuerySet[Message]:
    """Filter messages by a whole id, by the chat's address, or by words.

    The id is the message's, its session's, its chat's or the provider's. If no message has the
    words, parts of words match.
    """
    text = _cleaned(term)
    if not text:
        return queryset
    if (key := uuid_or_none(text)) is not None:
        return queryset.filter(Q(pk=key) | Q(session=key) | Q(chat=key))
    # People write long numbers, too, such as those of orders.
    if _ADDRESS.fullmatch(text) and (chats := _chats_addressed(text)):
        return queryset.filter(chat__in=chats)
    if _may_be_id(text):
        same_id = list(
            Message.objects.filter(provider_message_id=text).values_list("pk", flat=True)
        )
        if same_id:
            return queryset.filter(pk__in=same_id)
    wanted = messages_with(text)
    # Not ``exists``: PostgreSQL estimates every word as frequent, and would scan row by row.
    if wanted is not None and newest_messages_found(Message.objects.all(), text, 0, 1):
        return queryset.filter(wanted)
    part = messages_with_parts(Message.objects.all(), text)
    return queryset.none() if part is None else queryset.filter(part)


def vectors_found(queryset: QuerySet[MessageEmbedding], term: str) -> QuerySet[MessageEmbedding]:
    """Filter vectors by their messages, of which the newest MAX_MESSAGES count."""
    if not _cleaned(term):
        return queryset
    messages = messages_found(Message.objects.order_by(MAX_UNINDEXED_ROWS), term)
    return queryset.filter(message__in=messages.values("pk")[:MAX_MESSAGES])


def deliveries_found(queryset: QuerySet[InboundDelivery], term: str) -> QuerySet[InboundDelivery]:
    """Filter deliveries by a whole provider id, or by the chat's address."""
    text = _cleaned(term)
    if not text:
        return queryset
    if _ADDRESS.fullmatch(text):
        return queryset.filter(chat__in=_chats_addressed(text))
    messages = Message.objects.filter(provider_message_id=text).values_list("pk", flat=True)
    same = Q(delivery_key=text) | Q(subject_id=text) | Q(message__in=list(messages))
    return queryset.filter(same)


def parts_found(queryset: QuerySet[OutboundPart], term: str) -> QuerySet[OutboundPart]:
    """Filter parts by a whole id (the turn's, the provider's), or by the chat's address."""
    text = _cleaned(term)
    if not text:
        return queryset
    if (key := uuid_or_none(text)) is not None:
        return queryset.filter(Q(pk=key) | Q(turn__turn_id=key))
    if _ADDRESS.fullmatch(text):
        return queryset.filter(turn__chat__in=_chats_addressed(text))
    return queryset.filter(provider_message_id=text)


def _cleaned(term: str) -> str:
    return term.strip().replace("\x00", "")


def _may_be_id(text: str) -> bool:
    return len(text) >= _MIN_ID_LENGTH and not any(map(str.isspace, text))


def _chats_addressed(text: str) -> Sequence[Any]:
    """Return ids rather than a subquery, so that the index finds the rows of the few chats."""
    chats = Chat.objects.filter(with_address(text)).order_by().values_list("pk", flat=True)
    return list(chats[:MAX_CHATS])
