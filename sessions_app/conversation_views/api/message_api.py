"""Messages of a session: getMessages, addMessages and clearMessages of seed 003."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from memoryproject.foundation.rest_kit.answers import NOT_FORGOTTEN, conflicting
from memoryproject.foundation.rest_kit.idempotency import idempotent
from memoryproject.foundation.rest_kit.operations import answered, described, sent
from memoryproject.foundation.rest_kit.views import ListView
from sessions_app.conversation_views.session_actions import MemoryDisabledError
from sessions_app.conversations.facade import MAX_MESSAGES, ConversationMessage
from sessions_app.forgetting.dependencies import build_forget_dependencies
from sessions_app.forgetting.facade import object_forget
from sessions_app.forgetting.presentation import FORGETTING
from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.models import Chat, Message
from sessions_app.presentation import examples
from sessions_app.presentation.lookup import session_within
from sessions_app.presentation.refusals import CHAT_MEMORY, memory_disabled
from sessions_app.presentation.serializers import (
    MessageSerializer,
    MessagesQuery,
    NewMessagesSerializer,
    ReceiptSerializer,
    StoredMessagesSerializer,
)

SAID = {"role": "user", "content": "When does TestCorp pay?"}


class MessagesView(ListView):
    scopes = {"GET": "read", "POST": "write", "DELETE": "forget"}
    answers = {
        "POST": [conflicting("The session is archived.", "The session is archived: read-only.")],
        "DELETE": [NOT_FORGOTTEN],
    }
    raises = {**CHAT_MEMORY, **FORGETTING, MemoryDisabledError: memory_disabled}
    queryset = Message.objects.values_list(*MessageSerializer().fields, named=True)
    query_serializer_class = MessagesQuery
    serializer_class = MessageSerializer
    ordering = ("-order_num",)
    default_limit = MAX_MESSAGES

    @described(
        operation_id="sessions_messages_list",
        summary="The newest messages, oldest first",
        examples=[answered("One message", examples.MESSAGE)],
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        """Return the newest messages; `next` leads to older messages.

        A summary has its own order_num and stands after the messages that it sums up. `before` is
        exclusive.
        """
        rows = self.within_reach().filter(session=session_id)
        if "before" in self.query:
            rows = rows.filter(timestamp__lt=self.query["before"])
        page = self.page_of(rows)
        page.data["results"] = page.data["results"][::-1]
        if self.caller.is_staff or not page.data["results"]:
            # A message is enough to know that the session is within reach.
            session = session_within(self.caller, session_id)
            self.record_read(object_type="session", object_id=session.pk, chat_id=session.chat_id)
        return page

    @described(
        operation_id="sessions_messages_add",
        summary="Store messages at the end of a session",
        request=NewMessagesSerializer,
        responses={201: StoredMessagesSerializer},
        examples=[
            sent("One message", {"messages": [SAID]}),
            answered("As stored", {"messages": [examples.MESSAGE]}, status=201),
        ],
    )
    @idempotent(atomic=True)
    def post(self, request: Request, session_id: UUID) -> Response:
        """Store all of the messages or none, in the order given; at most 1,000."""
        body = self.body(NewMessagesSerializer)
        rules = build_intake_rules()

        def check(chat: Chat) -> None:
            if not rules.remember(chat):
                raise MemoryDisabledError

        now = timezone.now()
        stored = rules.chat_memory.add_messages(
            conversation_id=session_id,
            messages=[_new_message(each, now) for each in body["messages"]],
            now=now,
            chat_ids=self.caller.chat_ids,
            check=check,
        )
        values = [SimpleNamespace(session_id=session_id, **vars(each)) for each in stored]
        return Response({"messages": MessageSerializer(values, many=True).data}, status=201)

    @described(
        operation_id="sessions_messages_clear",
        summary="Clear a session: delete its messages and what was derived from them",
        responses={200: ReceiptSerializer},
        examples=[
            answered(
                "The receipt",
                examples.receipt("messages", examples.SESSION_ID, sessions_app_message=2),
            )
        ],
    )
    def delete(self, request: Request, session_id: UUID) -> Response:
        """Delete the messages; the session stays, empty, and continues its numbering."""
        session = session_within(self.caller, session_id)
        receipt = object_forget(
            kind="messages",
            object_id=session.pk,
            dependencies=build_forget_dependencies(),
            actor=self.caller.actor,
        )
        return Response(receipt.as_dict())


def _new_message(each: dict[str, Any], now: Any) -> ConversationMessage:
    return ConversationMessage(**{"timestamp": now, **each})
