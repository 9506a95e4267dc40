"""The ids of chats: each spelling of an id becomes the one form that is stored.

One person is one chat. So every id that comes from outside goes through ``whatsapp_chat_normalise``
before a chat is looked up or created.

| stored form | spellings |
| --- | --- |
| ``<phone>@c.us`` | the phone alone, ``+``, ``@s.whatsapp.net``, with ``:<device>``, capitals |
| ``<group id>@g.us`` | ``@G.US`` |
| ``<BSUID>@bsuid`` | the BSUID alone, its country in small letters |
| ``<number>@lid`` | ``@LID``, with ``:<device>`` |
| ``<name>@external`` | ``@EXTERNAL``: a chat of an integrator, of nobody on WhatsApp |
| ``<name>@c.us`` | capitals: a name in place of a phone, as in old data (ERR-SESSION-007) |

A phone has its country code and no leading zero, because ``0501234567`` is somebody in each
country. Ids of groups, BSUIDs and external names are case-sensitive.
"""

import hashlib
import re
from collections.abc import Iterable
from contextlib import suppress

from memoryproject.foundation.text.phone_numbers import phone_forms

EXAMPLE = "15550100123@c.us"
MAX_WHATSAPP_CHAT = 255

PERSON_DOMAIN = "c.us"
GROUP_DOMAIN = "g.us"
BSUID_DOMAIN = "bsuid"
LID_DOMAIN = "lid"
EXTERNAL_DOMAIN = "external"
# The same accounts as c.us, in the form of WhatsApp's own protocol.
PERSON_DOMAINS = (PERSON_DOMAIN, "s.whatsapp.net")

# The names of a program's own chats: up to this length as they are, or this with their hash.
MAX_PLAIN_NAME = 64
HASHED = "x-"

_PHONE = "[1-9][0-9]{0,19}"
_DEVICE = "(:[0-9]{1,4})?"
_NAME = "[A-Za-z][A-Za-z0-9_-]*"
_GROUP = "[A-Za-z0-9][A-Za-z0-9_=+-]*"
_OPAQUE = "[A-Za-z0-9][A-Za-z0-9._-]*"
_COUNTRY = r"[A-Za-z]{2}\.([Ee][Nn][Tt]\.)?"
_BSUID = f"{_COUNTRY}[A-Za-z0-9]{{1,160}}"


def _any_case(domain: str) -> str:
    """Return a pattern without flags, which JSON Schema has not."""
    letters = (
        f"[{one.lower()}{one.upper()}]" if one.isalpha() else re.escape(one) for one in domain
    )
    return "".join(letters)


def _at(name: str, *domains: str) -> str:
    return f"{name}@({'|'.join(map(_any_case, domains))})"


# In the syntax of JSON Schema.
PATTERN = (
    "^("
    + "|".join(
        (
            rf"\+?{_PHONE}",
            _at(rf"\+?{_PHONE}{_DEVICE}", *PERSON_DOMAINS),
            _at(_NAME, PERSON_DOMAIN),
            _at(_GROUP, GROUP_DOMAIN),
            _BSUID,
            _at(_OPAQUE, BSUID_DOMAIN, EXTERNAL_DOMAIN),
            _at(f"[0-9]{{1,20}}{_DEVICE}", LID_DOMAIN),
        )
    )
    + ")$"
)
_SPELLING = re.compile(PATTERN)
_PREFIX = re.compile(f"^{_COUNTRY}")
# A part of an address that could end or change a path.
_UNSAFE = re.compile(r"[\s/\\]|\A\.*\Z")


class WhatsAppChatError(ValueError):
    """The text is no id of a chat."""

    def __init__(self) -> None:
        super().__init__(
            f"It is no id of a chat: write it like {EXAMPLE} for a person, with the country code "
            "and without leading zeros; …@g.us for a group; …@bsuid; or …@external for a chat of "
            "your own that is nobody on WhatsApp."
        )


def whatsapp_chat_normalise(text: str) -> str:
    """Return the stored form of a chat's id. Raises WhatsAppChatError for any other text."""
    if len(text) > MAX_WHATSAPP_CHAT or _SPELLING.fullmatch(text) is None:
        raise WhatsAppChatError
    name, _, domain = text.partition("@")
    domain = domain.lower()
    if not domain:
        domain = PERSON_DOMAIN if name.lstrip("+").isdigit() else BSUID_DOMAIN
    if domain in PERSON_DOMAINS:
        # Of a person's devices, all are the same chat.
        return f"{name.lstrip('+').partition(':')[0].lower()}@{PERSON_DOMAIN}"
    if domain == LID_DOMAIN:
        return f"{name.partition(':')[0]}@{LID_DOMAIN}"
    if domain == BSUID_DOMAIN:
        name = _PREFIX.sub(lambda found: found[0].upper(), name, count=1)
    return f"{name}@{domain}"


def outside_chat(name: str) -> str:
    """Return the id of the chat that a program names as it likes, always the same for a name.

    An id of a chat with its domain is that chat. Any other name, also a number, becomes …@external:
    as it is, or by its hash where it has characters that no id has.
    """
    given = name.strip()
    domains = (*PERSON_DOMAINS, GROUP_DOMAIN, BSUID_DOMAIN, LID_DOMAIN, EXTERNAL_DOMAIN)
    if given.rpartition("@")[2].lower() in domains:
        with suppress(WhatsAppChatError):
            return whatsapp_chat_normalise(given)
    is_plain = re.fullmatch(_OPAQUE, given) and len(given) <= MAX_PLAIN_NAME
    if not is_plain or given.startswith(HASHED):
        given = HASHED + hashlib.sha256(given.encode(errors="surrogatepass")).hexdigest()[:32]
    return f"{given}@{EXTERNAL_DOMAIN}"


def whatsapp_chat_of_provider(text: str) -> str:
    """Return the stored form of an address that a provider sent.

    Forms may come up that this module doesn't know: they are kept as they are (ERR-SESSION-007).
    The result is empty for what is no address: with white space, slashes or control characters.
    """
    try:
        return whatsapp_chat_normalise(text)
    except WhatsAppChatError:
        return "" if _UNSAFE.search(text) or not text.isprintable() else text


def address_forms(whatsapp_chat: str) -> list[str]:
    """Return the addresses that are one WhatsApp account with this one, which stands first.

    ``whatsapp_chat``: in its stored form. Only phone numbers of some countries have several.
    """
    name, _, domain = whatsapp_chat.partition("@")
    if domain != PERSON_DOMAIN or not name.isdecimal():
        return [whatsapp_chat]
    return [f"{form}@{PERSON_DOMAIN}" for form in phone_forms(name)]


def all_forms(addresses: Iterable[str]) -> set[str]:
    """Return these addresses with all their other forms."""
    return {form for address in addresses for form in address_forms(address)}
