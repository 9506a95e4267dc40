"""A person at a glance, over the API."""

from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memories_app.visibility import memories_for_staff
from memoryproject.foundation.rest_kit import fields
from memoryproject.foundation.rest_kit.operations import described, path_parameter
from memoryproject.foundation.rest_kit.views import ApiView
from sessions_app.person.person_card import OPEN, OVERDUE, person_card
from sessions_app.presentation.access import WHATSAPP_CHAT_SCHEMA, chat_within, memories_in_reach


class PersonLineSerializer(serializers.Serializer[Any]):
    """A line, with its evidence."""

    topic = fields.text("What it is about, such as home, family, work, diet, size; else other.")
    text = fields.text("As it was remembered, or as the memory card has it.")
    count = fields.number("How often it was mentioned.")
    said_at = fields.moment("When it was said; of a card's line, when its session began.")
    day = serializers.DateField(
        allow_null=True,
        help_text="When a promise is due, or something begins, in the business's time zone.",
    )
    until = serializers.DateField(allow_null=True, help_text="The last day on which it holds.")
    state = serializers.ChoiceField(
        ["", OPEN, OVERDUE], help_text="Of a promise: open or overdue; else empty."
    )
    memory_id = fields.uuid("The memory; null: it stands on a memory card.", allow_null=True)
    session_id = fields.uuid("Where it was said; null: not known.", allow_null=True)
    message_id = fields.uuid("The message that says it; null: not known.", allow_null=True)


class PersonSerializer(serializers.Serializer[Any]):
    """What is known of a person: active memories and the latest memory cards, by rules alone."""

    whatsapp_chat = fields.text("The stored form of its id.")
    client_name = fields.text("The name on WhatsApp; empty where it isn't known.")
    language = fields.text("The one that texts are sent in; empty: not known yet.")
    who = PersonLineSerializer(many=True, help_text="Name, home, family, work and other facts.")
    preferences = PersonLineSerializer(
        many=True, help_text="Diet and allergies first, then likes, sizes, habits and wishes."
    )
    open = PersonLineSerializer(
        many=True, help_text="What the latest conversations left open, and what is to be done."
    )
    promises = PersonLineSerializer(
        many=True, help_text="What was promised to them and isn't kept yet, overdue ones first."
    )
    dates = PersonLineSerializer(
        many=True, help_text="Birthdays, appointments and periods that are ahead."
    )


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
