"""Audit each view of the admin's pages on which staff read messages."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django.db.models import Model
from django.http import HttpRequest, HttpResponse

from memoryproject.foundation.admin_kit.staff_admin import ReadOnlyAdmin
from memoryproject.foundation.audit.audit_events import audit_record, staff_actor
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.models import Chat, ChatSession


class ConversationAdmin(ReadOnlyAdmin):
    """Base of the audited pages.

    ``read_as`` is the name of the object in the audit log. ``list_is_read`` is True if the list
    shows texts, too.
    """

    read_as: ClassVar[str] = ""
    list_is_read: ClassVar[bool] = False

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        if obj is not None:
            audit_record(
                action="conversation.read",
                actor=staff_actor(request),
                object_type=self.read_as,
                object_id=obj.pk,
                chat_id=_chat_of(obj),
            )
        return super().render_change_form(request, context, add, change, form_url, obj)

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
        audit_record(
            action="conversation.read",
            actor=staff_actor(request),
            object_type="session" if session else "",
            object_id=session.pk if session else "",
            details={"list": self.read_as, "searched": bool(request.GET.get("q"))},
            chat_id=chat_id,
        )


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
