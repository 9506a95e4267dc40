"""Read numbers as people type them, and show them so; find the other forms of a number."""

import re
from collections.abc import Iterable
from unicodedata import decimal

_SIGNS = re.compile(r"\(0\)|[\s()\-‐-―−./\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_INTERNATIONAL = re.compile(r"[1-9][0-9]{6,14}")
_DIGITS = re.compile(r"\d{7,15}")
_SCHEME = re.compile(r"(?:whatsapp|tel):", re.IGNORECASE)
# Other lengths without a + are those of ids: of a table, of Telegram, of Facebook.
_BARE = re.compile(r"[1-9][0-9]{10,12}")
# Country codes whose numbers are divided as people there write them; others are one group.
_GROUPS = (
    re.compile(r"(972)(5\d)(\d{3})(\d{4})"),
    re.compile(r"(972)(\d)(\d{3})(\d{4})"),
    re.compile(r"(1)(\d{3})(\d{3})(\d{4})"),
)


def number_read(text: str) -> str | None:
    """Return the digits of an international number in any notation; None if it is none."""
    digits = _SIGNS.sub("", digits_plain(text[:64])).lstrip("+＋").removeprefix("00")
    return digits if _INTERNATIONAL.fullmatch(digits) else None


def number_meant(text: str, home: Iterable[str] = ()) -> str:
    """Return the digits of an international number in a text that may be any id; "" if it is none.

    Without + or 00 it must have the length of a number of its country. ``home``: numbers of the
    countries in which one is dialled that begins with a single 0.
    """
    import phonenumbers  # noqa: PLC0415 slow to import

    given = _SIGNS.sub("", digits_plain(_SCHEME.sub("", text[:64]))).replace("＋", "+")
    if given.startswith(("+", "00")):
        return number_read(given) or ""
    is_local = given.startswith("0")
    if not given.isdecimal() or not (is_local or _BARE.fullmatch(given)):
        return ""
    for number in home if is_local else [given]:
        try:
            parsed = phonenumbers.parse(f"+{number}")
            if is_local:
                region = phonenumbers.region_code_for_country_code(parsed.country_code or 0)
                parsed = phonenumbers.parse(given, region)
        except phonenumbers.NumberParseException:
            continue
        if phonenumbers.is_possible_number(parsed) and not parsed.italian_leading_zero:
            return f"{parsed.country_code}{parsed.national_number}"
    return ""


def digits_plain(text: str) -> str:
    """Return the text with the digits of all scripts as 0 to 9."""
    return "".join(str(decimal(each)) if each.isdecimal() else each for each in text)


def number_shown(whatsapp_chat: str) -> str:
    """Return a person's number, such as +972 55-010-0101; other addresses as they are."""
    number, _, domain = whatsapp_chat.partition("@")
    if domain != "c.us" or not _DIGITS.fullmatch(number):
        return whatsapp_chat
    for groups in _GROUPS:
        if found := groups.fullmatch(number):
            country, *rest = found.groups()
            return f"+{country} {'-'.join(rest)}"
    return f"+{number}"


# Countries that gave numbers in use more digits. WhatsApp may show one account under either form.
# A landline that got no further digits is not among them.
_PLANS = (
    # Brazil: a 9 before mobile numbers; the local part of a landline begins with 2 to 5.
    (re.compile(r"55([1-9][1-9])9?([6-9]\d{7})"), (r"55\1\2", r"55\g<1>9\2")),
    # Mexico: until 2019 a 1 before mobile numbers.
    (re.compile(r"521?([2-9]\d{9})"), (r"52\1", r"521\1")),
    # Ivory Coast: since 2021 a prefix of the operator, which the second digit tells.
    (re.compile(r"225(?:01)?([04-9][0-3]\d{6})"), (r"225\1", r"22501\1")),
    (re.compile(r"225(?:05)?([04-9][4-6]\d{6})"), (r"225\1", r"22505\1")),
    (re.compile(r"225(?:07)?([04-9][7-9]\d{6})"), (r"225\1", r"22507\1")),
    # Benin: since 2024 01 before each number.
    (re.compile(r"229(?:01)?([4-9]\d{7})"), (r"229\1", r"22901\1")),
)
_ARGENTINE = re.compile(r"549?([1-3]\d{9})")
_ARGENTINE_15 = re.compile(r"54[1-3]\d{11}")


def phone_forms(digits: str) -> list[str]:
    """Return the forms of an international number that are one WhatsApp account, this one first.

    Every form has the same forms.
    """
    forms = _argentine_forms(digits) if digits.startswith("54") else []
    for plan, templates in _PLANS:
        if found := plan.fullmatch(digits):
            forms = [found.expand(template) for template in templates]
    return list(dict.fromkeys([digits, *forms]))


def _argentine_forms(digits: str) -> list[str]:
    """Return 54 9 <number>, 54 <number> and, as people write it, 54 <area> 15 <local part>."""
    import phonenumbers  # noqa: PLC0415 slow to import

    if _ARGENTINE_15.fullmatch(digits):
        # Only the library knows where an area code ends.
        digits = f"54{phonenumbers.parse(f'+{digits}').national_number}"
    found = _ARGENTINE.fullmatch(digits)
    if found is None:
        return []
    mobile = phonenumbers.PhoneNumber(54, int(f"9{found[1]}"))
    shown = phonenumbers.format_number(mobile, phonenumbers.PhoneNumberFormat.NATIONAL)
    with_15 = "54" + "".join(filter(str.isdigit, shown)).removeprefix("0")
    forms = [f"549{found[1]}", f"54{found[1]}"]
    return [*forms, with_15] if phonenumbers.parse(f"+{with_15}") == mobile else forms
