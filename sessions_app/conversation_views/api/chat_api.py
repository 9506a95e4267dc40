"""REST views of chats: people and groups."""

from __future__ import annotations

from django.db.models import Prefetch
from rest_framework.request import Request
from rest_framework.response import Response

from memoryproject.foundation.rest_kit.operations import (
    CHANGED_MEANWHILE,
    described,
    path_parameter,
    response_example,
    versioned,
)
from memoryproject.foundation.rest_kit.views import ApiView, ListView, etag_of_document, etagged
from sessions_app.forgetting.presentation import FORGETTING, forget_once, forgets
from sessions_app.models import Chat, ChatAddress
from sessions_app.presentation import examples
from sessions_app.presentation.filters import WHATSAPP_CHAT_SCHEMA, ChatFilters, chat_within
from sessions_app.presentation.serializers import ChatSerializer

NAMED = path_parameter("whatsapp_chat", "Any of the chat's addresses.", WHATSAPP_CHAT_SCHEMA)


class ChatsView(ListView):
    scopes = {"GET": "read"}
    staff_rights = {"GET": ["sessions_app.view_chat"]}
    queryset = Chat.objects.prefetch_related(
        Prefetch("addresses", queryset=ChatAddress.objects.filter(left_at__isnull=True))
    )
    serializer_class = ChatSerializer
    filterset_class = ChatFilters
    reach_field = "pk"
    ordering = ("-created_at", "-id")

    @described(
        summary="List chats, the newest first",
        examples=[response_example("One chat", examples.CHAT_ROW)],
    )
    def get(self, request: Request) -> Response:
        """List people and groups, with the addresses by which they are known."""
        return self.page_of(self.within_reach())


class ChatView(ApiView):
    scopes = {"GET": "read", "DELETE": "forget"}
    staff_rights = {"GET": ["sessions_app.view_chat"]}
    answers = {"DELETE": [CHANGED_MEANWHILE]}
    raises = FORGETTING

    @described(
        operation_id="chats_get",
        summary="One chat",
        **versioned(ChatSerializer, NAMED),
        examples=[response_example("A person", examples.CHAT_ROW)],
    )
    def get(self, request: Request, whatsapp_chat: str) -> Response:
        """Return the chat that has this address now; any of its addresses will do."""
        chat = chat_within(self.caller, whatsapp_chat)
        self.record_read(object_type="chat", object_id=chat.pk)
        return etagged(request, ChatSerializer(chat).data)

    @forgets(
        examples.receipt("chat", examples.CHAT_ID, sessions_app_message=2),
        NAMED,
        operation_id="chats_erase",
        summary="Erase a person or a group, with everything in the chat",
    )
    def delete(self, request: Request, whatsapp_chat: str) -> Response:
        """Erase the conversations, memories and documents of the chat.

        What other chats learned of them is erased, too. It can't be undone; export first what has
        to be kept. With `If-Match` only the version that you read: else 412.
        """
        return forget_once(
            self,
            kind="chat",
            find=lambda: chat_within(self.caller, whatsapp_chat).pk,
            etag=lambda: etag_of_document(
                ChatSerializer(chat_within(self.caller, whatsapp_chat)).data
            ),
        )
