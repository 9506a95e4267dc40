"""A person at a glance, over the API."""

from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memories_app.visibility import memories_for_staff
from memoryproject.foundation.rest_kit.operations import described, path_parameter
from memoryproject.foundation.rest_kit.serializers import Moment
from memoryproject.foundation.rest_kit.views import ApiView
from sessions_app.person.person_card import OPEN, OVERDUE, person_card
from sessions_app.presentation.access import WHATSAPP_CHAT_SCHEMA, chat_within, memories_in_reach


class PersonLineSerializer(serializers.Serializer[Any]):
    """A line, with its evidence."""

    topic = serializers.CharField()
    text = serializers.CharField()
    count = serializers.IntegerField()
    said_at = Moment()
    day = serializers.DateField(allow_null=True)
    until = serializers.DateField(allow_null=True)
    state = serializers.ChoiceField(["", OPEN, OVERDUE])
    memory_id = serializers.UUIDField(allow_null=True)
    session_id = serializers.UUIDField(allow_null=True)
    message_id = serializers.UUIDField(allow_null=True)


class PersonSerializer(serializers.Serializer[Any]):
    """What is known of a person: active memories and the latest memory cards, by rules alone."""

    whatsapp_chat = serializers.CharField()
    client_name = serializers.CharField()
    language = serializers.CharField()
    who = PersonLineSerializer(many=True)
    preferences = PersonLineSerializer(many=True)
    open = PersonLineSerializer(many=True)
    promises = PersonLineSerializer(many=True)
    dates = PersonLineSerializer(many=True)


class PersonView(ApiView):
    scopes = {"GET": "read"}
    staff_rights = {
        "GET": ["sessions_app.view_chat", "memories_app.view_memory", "cards_app.view_memorycard"]
    }

    @described(
        operation_id="chats_person",
        parameters=[
            path_parameter("whatsapp_chat", "Any of the chat's addresses.", WHATSAPP_CHAT_SCHEMA)
        ],
        responses={200: PersonSerializer},
    )
    def get(self, request: Request, whatsapp_chat: str) -> Response:
        """Return what is known of the person in short, each line with its evidence.

        It is made at each call, without a model, of active memories and the latest memory cards.
        A token that is bound to chats is not shown what only the owner sees.
        """
        chat = chat_within(self.caller, whatsapp_chat)
        memories = memories_for_staff().filter(memories_in_reach(self.caller))
        card = person_card(chat=chat, memories=memories, with_cards=True, now=timezone.now())
        self.record_read(object_type="chat", object_id=chat.pk, chat_id=chat.pk)
        names = {"whatsapp_chat": chat.whatsapp_chat, "client_name": chat.client_name}
        language = chat.fixed_language or chat.language
        return Response(PersonSerializer({**names, "language": language, **card}).data)
