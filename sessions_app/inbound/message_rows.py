"""Build the message to store from an event."""

from memoryproject.foundation.integrations.whatsapp.events import InboundMessage, OwnSend
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import PERSON_DOMAIN
from memoryproject.foundation.text.phone_numbers import number_shown, phone_forms
from sessions_app.conversations.message_store import NewMessage
from sessions_app.conversations.plain_words import Command
from sessions_app.inbound.message_changes import quote_metadata
from sessions_app.models import Chat, OwnAddress
from sessions_app.models.messages import BY_PHONE, IMPORTED, Role


def new_message(event: InboundMessage, chat: Chat, command: Command | None) -> NewMessage:
    """Return the message of an event, to be stored in its chat."""
    addresses = event.party.addresses()
    person = addresses[0] if addresses else chat.whatsapp_chat
    ours = event.business_address or event.number_id
    metadata = {**event.metadata, **quote_metadata(event, chat)}
    # What is moved in from elsewhere says itself who wrote it.
    if event.from_business and IMPORTED not in metadata:
        metadata[BY_PHONE] = True
    name = event.party.name or (number_shown(person) if person != chat.whatsapp_chat else "")
    if event.group_id and not event.from_business and name:
        metadata["sender_name"] = name
    if command is not None:
        metadata["command"] = command.name
    return NewMessage(
        role=Role.ASSISTANT if event.from_business else Role.USER,
        content=event.text,
        timestamp=event.timestamp,
        sender=ours if event.from_business else person,
        recipient=chat.whatsapp_chat if event.from_business else ours,
        kind=event.kind,
        provider=event.provider,
        number_id=event.number_id,
        provider_message_id=event.provider_message_id,
        media=event.media.as_dict() if event.media else {},
        metadata=metadata,
    )


def own_addresses_learn(event: InboundMessage | OwnSend) -> None:
    """Store our own hidden id, if the event shows it, and our number, if the event mentions it."""
    ours = [event.business_lid] if event.business_lid else []
    if isinstance(event, InboundMessage) and event.mentions_us and event.business_address.isdigit():
        ours += [f"{n}@{PERSON_DOMAIN}" for n in phone_forms(event.business_address)]
    for address in ours:
        OwnAddress.objects.get_or_create(
            provider=event.provider, number_id=event.number_id, address=address
        )
