"""Find the chat that an event belongs to, and keep its addresses correct.

One person can be known by phone, by business-scoped id (BSUID), by another address, and by two
providers. An event that shows two addresses together links them. A phone number is found by each
form that WhatsApp treats as the same account. The first rule is that nobody gets access to another
person's chat: a number that may have changed hands is detached from the old chat. It is not
trusted.
"""

import hashlib
import logging
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import cast
from uuid import UUID

from django.db import connection
from django.db.models import Q
from django.utils import timezone

from memoryproject.foundation.integrations.whatsapp.events import AddressChanged, Party
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import (
    BSUID_DOMAIN,
    EXTERNAL_DOMAIN,
    GROUP_DOMAIN,
    PERSON_DOMAIN,
    address_forms,
    all_forms,
    whatsapp_chat_normalise,
)
from memoryproject.foundation.process.narrowing import instance
from sessions_app.conversations.session_lifecycle import activity_record
from sessions_app.models import Chat, ChatAddress, ChatSession, InboundDelivery, Provider
from sessions_app.models.chats import CLIENT, chat_role
from sessions_app.signals import one_person_found

logger = logging.getLogger(__name__)

# A change that is reported once more, by another of our numbers, may have a later time.
CHANGE_SLACK = timedelta(days=1)


def addresses_lock(addresses: Iterable[str]) -> None:
    """Serialise all work on these addresses, in each form, until the transaction ends."""
    digests = (hashlib.sha256(each.encode()).digest() for each in sorted(all_forms(addresses)))
    keys = [int.from_bytes(digest[:8], "big", signed=True) for digest in digests]
    if not keys:
        return
    # PostgreSQL evaluates the columns of a row from left to right.
    locks = ", ".join(["pg_advisory_xact_lock(%s)"] * len(keys))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {locks}", keys)


def chat_find(whatsapp_chat: str) -> Chat | None:
    """Return the chat of an address, main or not; else that of another form of its number."""
    forms = address_forms(whatsapp_chat)
    links = ChatAddress.objects.filter(address__in=forms, left_at__isnull=True)
    found = {link.address: link.chat for link in links.select_related("chat").order_by("-id")}
    if whatsapp_chat not in found:
        chats = Chat.objects.filter(whatsapp_chat__in=forms)
        found = {chat.whatsapp_chat: chat for chat in chats} | found
    return next((found[form] for form in forms if form in found), None)


def chats_of_other_forms(chats: Collection[Chat]) -> dict[UUID, list[Chat]]:
    """Return, by their id, the chats whose number has a chat of its own in another form.

    Both are one WhatsApp account, in which people talked before the forms were known as one.
    """
    of = {form: chat.pk for chat in chats for form in address_forms(chat.whatsapp_chat)[1:]}
    links = ChatAddress.objects.filter(address__in=of, left_at__isnull=True)
    found: dict[UUID, list[Chat]] = {}
    for link in links.select_related("chat").order_by("id"):
        others = found.setdefault(of[link.address], [])
        if link.chat_id != of[link.address] and link.chat not in others:
            others.append(link.chat)
    return {key: others for key, others in found.items() if others}


def chat_known(*, party: Party, group_id: str | None) -> Chat | None:
    """Return the chat of a group or of a person, if it exists."""
    known = [group_address(group_id)] if group_id else party.addresses()
    return next(filter(None, map(chat_find, known)), None)


def chat_for_group(*, provider: str, number_id: str, group_id: str, name: str = "") -> Chat:
    """Return the chat of a group, locked; create it if it is new. Call it in a transaction."""
    address = group_address(group_id)
    addresses_lock([address])
    chat = chat_find(address)
    if chat is None:
        chat = _create(provider=provider, number_id=number_id, address=address, name=name)
    Chat.objects.select_for_update(no_key=True).values_list("pk").get(pk=chat.pk)
    return _seen(chat, provider=provider, number_id=number_id, name=name)


def chat_for_party(*, provider: str, number_id: str, party: Party, at: datetime) -> Chat:
    """Return the chat of a person as ``chat_of_party`` does; create it if it is new."""
    chat = chat_of_party(provider=provider, number_id=number_id, party=party, at=at, create=True)
    return cast(Chat, chat)


def chat_of_party(
    *, provider: str, number_id: str, party: Party, at: datetime, create: bool = False
) -> Chat | None:
    """Return the chat of a person, locked, linked to the addresses that this event shows.

    at: the time of the event, by the provider's clock.
    Returns None only if the person is unknown and ``create`` is False.
    Call it in a transaction.
    """
    shown = party.addresses()
    addresses_lock(shown)
    known = _known(shown, at)
    bsuid = f"{party.bsuid}@bsuid" if party.bsuid else None
    for address in list(known):
        if bsuid and address != bsuid and _belongs_to_another(known[address], bsuid, known):
            _detach(known.pop(address).chat, [address])
    _leave_out_other_forms(known, shown)
    chats = {link.chat_id: link.chat for link in known.values()}
    chat = _one_person(list(chats.values()))
    if chat is None and not create:
        return None
    if chat is None:
        chat = _create(provider=provider, number_id=number_id, address=shown[0], name=party.name)
    origin = next((link.origin for link in known.values() if link.chat_id == chat.pk), None)
    for address in shown:
        link = next((known[form] for form in address_forms(address) if form in known), None)
        if link is not None and link.left_at is not None:
            # A message from before the person left an address doesn't link it to them again.
            continue
        there = link and (link.address, link.chat_id, link.provider)
        if there != (address, chat.pk, provider):
            _link(chat, provider=provider, address=address, origin=origin)
        # Programs may write another form than WhatsApp.
        by_api = provider == str(Provider.CONSOLE) and chat.whatsapp_chat in address_forms(address)
        if address == f"{party.phone}@c.us" and not by_api:
            _take_phone(chat, address, at, origin, is_written=create)
    return _seen(chat, provider=provider, number_id=number_id, name=party.name)


def address_change(event: AddressChanged, *, godfather: Collection[str]) -> Chat:
    """Move a person from one number (or business-scoped id) to another.

    The new address joins the old chat. If the new address has a chat that began only after the
    change, both belong to one person and are merged. Any other chat there belongs to the number's
    previous owner and stays theirs, without the number. Only the owner's number (``godfather``)
    keeps its chat: a client's is not reached by it. Call it in a transaction.
    """
    provider, new, at = event.provider, event.new, event.timestamp
    gone, come = event.old.addresses(), new.addresses()
    addresses_lock([*gone, *come])
    if (moved := _moved_already(gone, come, at)) is not None:
        return moved
    chat = chat_for_party(provider=provider, number_id=event.number_id, party=event.old, at=at)
    before = all_forms(gone)
    origin = chat.addresses.filter(address__in=before).values_list("origin", flat=True).first()
    is_client = chat_role(chat, godfather=godfather) == CLIENT
    for address in come:
        forms = address_forms(address)
        # The person moved on since then, as was reported sooner.
        is_reached = not ChatAddress.objects.filter(address__in=forms, left_at__gt=at).exists()
        others = Chat.objects.filter(addresses__address__in=forms).exclude(pk=chat.pk)
        for other in others.distinct():
            # Another form of the same number is no new number.
            if address in before or _began_with(other, chat, new, at):
                chat = _merge(chat, other)
            elif is_client and not all_forms([address]).isdisjoint(godfather):
                is_reached = False
            else:
                phones = other.addresses.filter(address__endswith=f"@{PERSON_DOMAIN}")
                _detach(other, forms if is_reached else [each.address for each in phones])
        if is_reached:
            _link(chat, provider=provider, address=address, origin=origin)
            if address == f"{new.phone}@c.us":
                _take_phone(chat, address, at, origin)
    # A new number leaves the old number behind, a new id the old id; not one the other.
    replaced = {address.partition("@")[2] for address in come}
    left = [each for each in before - all_forms(come) if each.partition("@")[2] in replaced]
    ChatAddress.objects.filter(chat=chat, address__in=left).update(left_at=at)
    _reached_without(chat, left)
    logger.info("Chat %s moved to a new address.", chat.id)
    return chat


def _moved_already(gone: list[str], come: list[str], at: datetime) -> Chat | None:
    """Return the chat that already made this change: it was reported twice or by two providers."""
    theirs = ChatAddress.objects.filter(address__in=all_forms(gone))
    arrived = Q(left_at=None, chat__in=theirs.filter(left_at__gte=at - CHANGE_SLACK).values("chat"))
    moved_on = Q(left_at__gte=at, chat__in=theirs.values("chat"))
    there = ChatAddress.objects.filter(arrived | moved_on, address__in=all_forms(come))
    link = there.exclude(address__in=all_forms(gone)).select_related("chat").first()
    return link.chat if link else None


def _began_with(other: Chat, chat: Chat, new: Party, at: datetime) -> bool:
    """Return whether a chat began after the change of an address, and with nobody else's id."""
    if other.created_at <= at or other.messages.filter(timestamp__lte=at).exists():
        return False
    ids = ChatAddress.objects.filter(address__endswith="@bsuid", left_at__isnull=True)
    theirs = ids.filter(chat=other).exclude(address=f"{new.bsuid}@bsuid")
    return not (theirs.exists() and ids.filter(chat=chat).exists())


def _known(addresses: list[str], at: datetime) -> dict[str, ChatAddress]:
    """Return the links of these addresses, in each form, with their chats locked.

    Detaches a link that its person left before ``at``: the address belongs to somebody else
    now.
    """
    known = {}
    chats: dict[UUID, Chat] = {}
    found = ChatAddress.objects.filter(address__in=all_forms(addresses)).select_related("chat")
    # Links change only under the lock of their addresses: waiting for a chat doesn't outdate them.
    links = list(found.select_for_update(no_key=True, of=("chat",)).order_by("id"))
    current = [link for link in links if link.left_at is None]
    in_use = {(link.chat_id, form) for link in current for form in address_forms(link.address)}
    for link in links:
        # One object for a chat, so that each detachment sees those before it.
        link.chat = chats.setdefault(link.chat_id, link.chat)
        if link.left_at is None or at <= link.left_at:
            known[link.address] = link
        elif (link.chat_id, link.address) not in in_use:
            _detach(link.chat, [link.address])
    return known


def _leave_out_other_forms(known: dict[str, ChatAddress], shown: list[str]) -> None:
    """Take out the other forms of a number whose chat is not the one of the form that is shown.

    Where people have talked in both chats, only staff join them.
    """
    phones = [link for link in known.values() if link.address.endswith("@c.us")]
    phones.sort(key=lambda link: (link.address not in shown, link.left_at is not None, -link.pk))
    if len({link.chat_id for link in phones}) < 2:
        return
    has_talked = _has_talked(phones[0].chat)
    for link in phones:
        if link.chat_id == phones[0].chat_id or not _has_talked(link.chat):
            continue
        if has_talked:
            del known[link.address]
        has_talked = True


def _has_talked(chat: Chat) -> bool:
    return chat.messages.exists() or chat.turns.exists()


def _belongs_to_another(link: ChatAddress, bsuid: str, known: dict[str, ChatAddress]) -> bool:
    """Return whether the person of this link isn't the one of this business-scoped id.

    They are known under another id, or that id's person, in another chat, by another number.
    """
    own = known.get(bsuid)
    if own is not None and own.chat_id != link.chat_id:
        phones = own.chat.addresses.filter(address__endswith="@c.us", origin=own.origin)
        if phones.exclude(address__in=address_forms(link.address)).exists():
            return True
    others = link.chat.addresses.filter(
        address__endswith="@bsuid", left_at__isnull=True, origin=link.origin
    )
    return others.exists() and not others.filter(address=bsuid).exists()


def _detach(chat: Chat, addresses: Collection[str]) -> None:
    """Remove addresses from the old chat, which keeps its memory: the number changed hands."""
    chat.addresses.filter(address__in=addresses).delete()
    _reached_without(chat, addresses)
    logger.warning("Address of chat %s changed hands and was detached from it.", chat.id)


def _reached_without(chat: Chat, addresses: Collection[str]) -> None:
    """Give a chat another main address, if it was one of those that it has no longer."""
    if chat.whatsapp_chat in addresses:
        rest = chat.addresses.filter(left_at__isnull=True).first()
        chat.whatsapp_chat = rest.address if rest else f"{chat.id.hex}@detached"
        chat.client_phone = _phone_of(chat.whatsapp_chat)
        chat.save(update_fields=["whatsapp_chat", "client_phone", "updated_at"])


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
        subject_id__in=address_forms(chat.whatsapp_chat),
        event="SavedContacts",
        change__isnull=False,
    )
    newest = saved.order_by("-id").first()
    if newest is not None and newest.change is not None:
        # An erasure of the chat finds it by the chat.
        saved.update(chat=chat)
        chat.staff_name = newest.change["name"]
        chat.save(update_fields=["staff_name"])


def _link(chat: Chat, *, provider: str, address: str, origin: UUID | None = None) -> None:
    if chat.addresses.filter(provider=provider, address=address, left_at__isnull=True).exists():
        return
    ChatAddress.objects.update_or_create(
        provider=provider,
        address=address,
        defaults={"chat": chat, "left_at": None, "origin": origin},
    )


def _take_phone(
    chat: Chat, address: str, at: datetime, origin: UUID | None, *, is_written: bool = True
) -> None:
    """Make the phone the chat's main address; the person left the other phones of its origin.

    Of several forms of a number it is the one from which WhatsApp brought the newest message.
    ``is_written``: this form came with a message, not with a status.
    """
    forms = address_forms(address)
    if chat.whatsapp_chat == address:
        return
    if chat.whatsapp_chat in forms:
        wrote = chat.messages.filter(sender=chat.whatsapp_chat).exclude(provider=Provider.CONSOLE)
        if is_written:
            wrote = wrote.filter(timestamp__gt=at, received_at__gt=at)
        if wrote.exists():
            return
    current = chat.addresses.filter(left_at__isnull=True, origin=origin)
    phones = current.filter(address__endswith="@c.us")
    phones.exclude(address__in=forms).update(left_at=at)
    chat.whatsapp_chat = address
    chat.client_phone = _phone_of(address)
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


def group_address(group_id: str) -> str:
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
