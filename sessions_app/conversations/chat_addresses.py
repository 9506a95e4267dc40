"""Find the chat that an event belongs to, and keep its addresses correct.

One person can be known by phone, by business-scoped id (BSUID), by another address, and by two
providers. An event that shows two addresses together links them. The first rule is that nobody
gets access to another person's chat: a number that may have changed hands is detached from the
old chat. It is not trusted.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Literal, overload
from uuid import UUID

from django.db import connection
from django.utils import timezone

from memoryproject.foundation.integrations.whatsapp.events import Party
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import (
    BSUID_DOMAIN,
    EXTERNAL_DOMAIN,
    GROUP_DOMAIN,
    PERSON_DOMAIN,
    whatsapp_chat_normalise,
)
from memoryproject.foundation.process.narrowing import instance
from sessions_app.conversations.session_lifecycle import activity_record
from sessions_app.models import Chat, ChatAddress, ChatSession, InboundDelivery
from sessions_app.models.chats import Provider
from sessions_app.signals import one_person_found

logger = logging.getLogger(__name__)

# Webhooks arrive out of order: a message shortly before the announced number change may already
# come from the new number.
CHANGE_SLACK = timedelta(hours=1)


def addresses_lock(addresses: Iterable[str]) -> None:
    """Serialise all work on these addresses until the transaction ends."""
    keys = []
    for address in sorted(set(addresses)):
        digest = hashlib.sha256(address.encode()).digest()
        keys.append(int.from_bytes(digest[:8], "big", signed=True))
    if not keys:
        return
    # PostgreSQL evaluates the columns of a row from left to right.
    locks = ", ".join(["pg_advisory_xact_lock(%s)"] * len(keys))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {locks}", keys)


def chat_find(whatsapp_chat: str) -> Chat | None:
    """Return the chat of an address, main or not."""
    address = (
        ChatAddress.objects.filter(address=whatsapp_chat, left_at__isnull=True)
        .select_related("chat")
        .first()
    )
    return address.chat if address else Chat.objects.filter(whatsapp_chat=whatsapp_chat).first()


def chat_known(*, party: Party, group_id: str | None) -> Chat | None:
    """Return the chat of a group or of a person, if it exists."""
    known = [_group_address(group_id)] if group_id else party.addresses()
    return next(filter(None, map(chat_find, known)), None)


def chat_for_group(*, provider: str, number_id: str, group_id: str, name: str = "") -> Chat:
    """Return the chat of a group; create it if it is new. Call it in a transaction."""
    address = _group_address(group_id)
    addresses_lock([address])
    chat = chat_find(address)
    if chat is None:
        chat = _create(provider=provider, number_id=number_id, address=address, name=name)
    return _seen(chat, provider=provider, number_id=number_id, name=name)


@overload
def chat_for_party(
    *, provider: str, number_id: str, party: Party, at: datetime, create: Literal[True] = True
) -> Chat: ...


@overload
def chat_for_party(
    *, provider: str, number_id: str, party: Party, at: datetime, create: bool
) -> Chat | None: ...


def chat_for_party(
    *, provider: str, number_id: str, party: Party, at: datetime, create: bool = True
) -> Chat | None:
    """Return the chat of a person, linked to the addresses that this event shows.

    at: the time of the event, by the provider's clock.
    Returns None only if the person is unknown and ``create`` is False.
    Call it in a transaction.
    """
    shown = party.addresses()
    addresses_lock(shown)
    known = _known(shown, at)
    bsuid = f"{party.bsuid}@bsuid" if party.bsuid else None
    for address in list(known):
        if bsuid and address != bsuid and _belongs_to_another(known[address], bsuid):
            _detach(known.pop(address))
    chats = {link.chat_id: link.chat for link in known.values()}
    chat = _one_person(list(chats.values()))
    if chat is None and not create:
        return None
    if chat is None:
        chat = _create(provider=provider, number_id=number_id, address=shown[0], name=party.name)
    origin = next((link.origin for link in known.values() if link.chat_id == chat.pk), None)
    # A message from before the person left an address doesn't link it to them again.
    left = {address for address, link in known.items() if link.left_at is not None}
    for address in shown:
        link = known.get(address)
        is_linked = link is not None and (link.chat_id, link.provider) == (chat.pk, provider)
        if address not in left and not is_linked:
            _link(chat, provider=provider, address=address, origin=origin)
    if party.phone and f"{party.phone}@c.us" not in left:
        _take_phone(chat, party.phone, at, origin)
    return _seen(chat, provider=provider, number_id=number_id, name=party.name)


def address_change(*, provider: str, number_id: str, old: Party, new: Party, at: datetime) -> Chat:
    """Move a person from one number (or business-scoped id) to another.

    The new address joins the old chat. If the new address has a chat that began only with the
    change, both belong to one person and are merged. An older chat there belongs to the
    number's previous owner and stays theirs. Call it in a transaction.
    """
    gone, come = old.addresses(), new.addresses()
    addresses_lock([*gone, *come])
    moved = _moved_already(gone, come)
    if moved is not None:
        return moved
    chat = chat_for_party(provider=provider, number_id=number_id, party=old, at=at)
    origin = chat.addresses.filter(address__in=gone).values_list("origin", flat=True).first()
    for address in come:
        for link in ChatAddress.objects.filter(address=address).exclude(chat=chat):
            if _began_after(link.chat, at):
                chat = _merge(chat, link.chat)
            else:
                _detach(link)
        _link(chat, provider=provider, address=address, origin=origin)
    # A new number leaves the old number behind, a new id the old id; not one the other.
    replaced = {address.partition("@")[2] for address in come}
    left = [
        address for address in gone if address not in come and address.partition("@")[2] in replaced
    ]
    ChatAddress.objects.filter(chat=chat, address__in=left).update(left_at=at)
    if new.phone:
        _take_phone(chat, new.phone, at, origin)
    logger.info("Chat %s moved to a new address.", chat.id)
    return chat


def _moved_already(gone: list[str], come: list[str]) -> Chat | None:
    """Return the chat that already made this change: it was reported twice or by two providers."""
    left = ChatAddress.objects.filter(address__in=gone, left_at__isnull=False).values("chat")
    arrived = ChatAddress.objects.filter(
        address__in=come, left_at__isnull=True, chat__in=left
    ).select_related("chat")
    link = arrived.first()
    return link.chat if link else None


def _began_after(chat: Chat, at: datetime) -> bool:
    first = chat.messages.order_by("timestamp").values_list("timestamp", flat=True).first()
    return first is None or first >= at - CHANGE_SLACK


def _known(addresses: list[str], at: datetime) -> dict[str, ChatAddress]:
    """Return the links of these addresses.

    Detaches a link that its person left before ``at``: the address belongs to somebody else
    now.
    """
    known = {}
    links = ChatAddress.objects.filter(address__in=addresses)
    for link in links.select_related("chat").order_by("id"):
        if link.left_at is not None and at > link.left_at:
            _detach(link)
        else:
            known[link.address] = link
    return known


def _belongs_to_another(link: ChatAddress, bsuid: str) -> bool:
    """Return whether the person of this link is known under another business-scoped id."""
    others = link.chat.addresses.filter(
        address__endswith="@bsuid", left_at__isnull=True, origin=link.origin
    )
    return others.exists() and not others.filter(address=bsuid).exists()


def _detach(link: ChatAddress) -> None:
    """Remove the address from the old chat, which keeps its memory: the number changed hands."""
    chat = link.chat
    address = link.address
    ChatAddress.objects.filter(chat=chat, address=address).delete()
    if chat.whatsapp_chat == address:
        rest = chat.addresses.filter(left_at__isnull=True).first()
        chat.whatsapp_chat = rest.address if rest else f"{chat.id.hex}@detached"
        chat.client_phone = _phone_of(chat.whatsapp_chat)
        chat.save(update_fields=["whatsapp_chat", "client_phone", "updated_at"])
    logger.warning("Address of chat %s changed hands and was detached from it.", chat.id)


def _one_person(chats: list[Chat]) -> Chat | None:
    """Return the chat of all these links, merged into the oldest if there are several."""
    if not chats:
        return None
    first, *others = sorted(chats, key=lambda chat: (chat.created_at, chat.id))
    for other in others:
        first = _merge(first, other)
    return first


def _merge(one: Chat, other: Chat) -> Chat:
    """Have the receiver of ``one_person_found`` merge two chats; return the one that stays."""
    ((_, kept),) = one_person_found.send(sender=Chat, one=one, other=other)
    return instance(kept, Chat)


def _create(*, provider: str, number_id: str, address: str, name: str) -> Chat:
    if _is_unusual(address):
        logger.warning("Unusual WhatsApp chat id %s: accepted as it is.", address)
    chat = Chat.objects.create(
        whatsapp_chat=address,
        provider=provider,
        number_id=number_id,
        is_group=address.endswith("@g.us"),
        client_name=name[:255],
        client_phone=_phone_of(address),
    )
    activity_record(chat_id=chat.pk, at=chat.created_at)
    _saved_name_take(chat)
    _link(chat, provider=provider, address=address)
    return chat


def _saved_name_take(chat: Chat) -> None:
    """Give a new chat the name that the owner's phone has for its person."""
    saved = InboundDelivery.objects.filter(
        subject_id=chat.whatsapp_chat, event="SavedContacts", change__isnull=False
    )
    newest = saved.order_by("-id").first()
    if newest is not None and newest.change is not None:
        # An erasure of the chat finds it by the chat.
        saved.update(chat=chat)
        chat.staff_name = newest.change["name"]
        chat.save(update_fields=["staff_name"])


def _link(chat: Chat, *, provider: str, address: str, origin: UUID | None = None) -> None:
    linked = chat.addresses.filter(provider=provider, address=address, left_at__isnull=True)
    if linked.exists():
        return
    ChatAddress.objects.update_or_create(
        provider=provider,
        address=address,
        defaults={"chat": chat, "left_at": None, "origin": origin},
    )


def _take_phone(chat: Chat, phone: str, at: datetime, origin: UUID | None) -> None:
    """Make the phone the chat's main address; the person left the other phones of its origin."""
    address = f"{phone}@c.us"
    if chat.whatsapp_chat == address:
        return
    current = chat.addresses.filter(left_at__isnull=True, origin=origin)
    phones = current.filter(address__endswith="@c.us")
    phones.exclude(address=address).update(left_at=at)
    chat.whatsapp_chat = address
    chat.client_phone = phone
    chat.save(update_fields=["whatsapp_chat", "client_phone", "updated_at"])


def _seen(chat: Chat, *, provider: str, number_id: str, name: str) -> Chat:
    """Store the provider by which the chat was last seen, and its name."""
    # A terminal conversation doesn't replace the provider that reaches the person.
    changed: dict[str, str] = {}
    if provider != str(Provider.CONSOLE):
        changed = {"provider": provider, "number_id": number_id}
    if name and name != chat.client_name:
        changed["client_name"] = name[:255]
    stale = {key: value for key, value in changed.items() if getattr(chat, key) != value}
    for key, value in stale.items():
        setattr(chat, key, value)
    if stale:
        chat.save(update_fields=[*stale, "updated_at"])
    return chat


def _is_unusual(address: str) -> bool:
    """Return whether nobody knows yet how to write to this address (ERR-SESSION-007)."""
    name, _, domain = address.partition("@")
    if domain == PERSON_DOMAIN:
        return not name.isdigit()
    return domain not in (GROUP_DOMAIN, BSUID_DOMAIN, EXTERNAL_DOMAIN)


def _group_address(group_id: str) -> str:
    return group_id if "@" in group_id else f"{group_id}@g.us"


def _phone_of(address: str) -> str:
    number, _, domain = address.partition("@")
    return number if domain == "c.us" and number.isdigit() else ""


def chat_at_or_new(whatsapp_chat: str, at: datetime | None = None) -> Chat:
    """Return the chat of this id, in any spelling; create it, as of ``at``, if it is new.

    Call it in a transaction. Raises WhatsAppChatError.
    """
    address = whatsapp_chat_normalise(whatsapp_chat)
    provider = str(Provider.CONSOLE)
    addresses_lock([address])
    known = chat_find(address)
    if known is not None:
        # An id alone doesn't show which of a person's addresses is the current one.
        return known
    if address.endswith("@g.us"):
        return chat_for_group(provider=provider, number_id="", group_id=address)
    at = at or timezone.now()
    return chat_for_party(provider=provider, number_id="", party=party_of(address), at=at)


def chat_of_session(session_id: UUID) -> Chat | None:
    """Return the chat of a session, locked; None if the session doesn't exist."""
    there = ChatSession.objects.filter(pk=session_id)
    while True:
        chat_id = there.values_list("chat_id", flat=True).first()
        if chat_id is None:
            return None
        chat = Chat.objects.select_for_update(no_key=True).filter(pk=chat_id).first()
        # A merge may have moved the session to another chat meanwhile.
        if chat is not None and there.filter(chat=chat).exists():
            return chat


def party_of(whatsapp_chat: str) -> Party:
    """Return the party behind an address in ``whatsapp_chat`` form."""
    name, _, domain = whatsapp_chat.partition("@")
    if domain == "c.us" and name.isdigit():
        return Party(phone=name)
    if domain == "bsuid":
        return Party(bsuid=name)
    return Party(other=whatsapp_chat)
